"""Datagrams of UDP: a handler gets them, and answers each of their senders.

feature: server/datagrams
"""

import queue

import paceline
from paceline import Datagram, UdpRef

answers: "queue.Queue[bytes]" = queue.Queue()


def echo(udp: UdpRef, datagrams: list[Datagram]) -> None:
    udp.send_batch((each.data, each.peer) for each in datagrams)


def receive(udp: UdpRef, datagrams: list[Datagram]) -> None:
    for each in datagrams:
        answers.put(each.data)


with paceline.Pool() as pool:
    with (
        paceline.Udp(pool, echo, "127.0.0.1:0") as server,
        paceline.Udp(pool, receive, "127.0.0.1:0") as client,
    ):
        for _ in range(10):
            client.send(b"hello", server.address)
        assert [answers.get(timeout=60) for _ in range(10)] == [b"hello"] * 10
