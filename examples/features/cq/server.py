"""A completion queue brings what happens to connections as data; the completion of an entry says what is written, and
whether the connection is closed.

feature: cq/server
prints:
    hello
    bye
    the server has closed the connection
"""

import socket
import threading

import paceline
from paceline import Complete, ConnEvent, EntryKind


def serve(queue: paceline.CompletionQueue) -> None:
    try:
        while True:
            for entry in queue.wait():
                if entry.kind != EntryKind.CONN:
                    continue  # the server has ended
                if entry.detail.event == ConnEvent.DATA:  # an echo, which ends with "bye"
                    flags = Complete.CLOSE if entry.data == b"bye\n" else Complete(0)
                    queue.complete(entry, data=entry.data, flags=flags)
                else:
                    queue.done(entry)
    except paceline.ShutDownError:
        pass  # the queue is closed


with paceline.Pool() as pool, paceline.CompletionQueue(pool) as queue:
    (address,) = queue.serve("127.0.0.1:0", tag=1, wanted=[ConnEvent.OPENED])
    thread = threading.Thread(target=serve, args=(queue,))  # or several of them
    thread.start()
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), 60) as peer, peer.makefile() as lines:
        for text in (b"hello\n", b"bye\n"):
            peer.sendall(text)
            print(lines.readline(), end="")
        if not lines.readline():
            print("the server has closed the connection")
    queue.close()
    thread.join()
