"""A handler gets datagrams of UDP in batches, and answers each sender.

feature: server/datagrams
prints:
    HELLO 0
    HELLO 1
    HELLO 2
"""

import queue

import paceline
from paceline import Datagram, UdpRef

answers: "queue.Queue[str]" = queue.Queue()


def shout(udp: UdpRef, datagrams: list[Datagram]) -> None:
    udp.send_batch((each.data.upper(), each.peer) for each in datagrams)


def receive(udp: UdpRef, datagrams: list[Datagram]) -> None:
    for each in datagrams:
        answers.put(each.data.decode())


with paceline.Pool() as pool:
    with (
        paceline.Udp(pool, shout, "127.0.0.1:0") as server,
        paceline.Udp(pool, receive, "127.0.0.1:0") as client,
    ):
        for number in range(3):
            client.send(b"hello %d" % number, server.address)
            print(answers.get(timeout=60))
