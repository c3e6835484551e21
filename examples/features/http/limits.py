"""An HTTP server refuses requests that are too large or too slow. Several requests may share a connection, and be sent
before the first is answered.

feature: http/limits
prints:
    GET / with 0 bytes: 405 Method Not Allowed
    POST / with 2000 bytes: 413 Content Too Large
    two requests on one connection: 200 200
    a head that never ends: HTTP/1.1 408 Request Timeout
    refused as too large: 1
"""

import http.client
import socket

import paceline
from paceline import Request


def connect(server: paceline.Http) -> socket.socket:
    host, _, port = server.addresses[0].rpartition(":")
    return socket.create_connection((host, int(port)), 60)


with paceline.Pool() as pool:
    # There are limits for heads, targets, headers and rates, too.
    server = paceline.Http(pool, max_body=1024)

    @server.post("/")
    def echo(request: Request) -> bytes:
        return request.body

    with server:
        for method, size in (("GET", 0), ("POST", 2000)):
            client = http.client.HTTPConnection(server.addresses[0], timeout=60)
            client.request(method, "/", b"x" * size)
            answer = client.getresponse()
            print(f"{method} / with {size} bytes: {answer.status} {answer.reason}")
            client.close()

        with connect(server) as peer, peer.makefile() as lines:
            head = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n"
            peer.sendall(head + b"\r\none\n" + head + b"Connection: close\r\n\r\ntwo\n")
            statuses = [line.split()[1] for line in lines if line.startswith("HTTP/1.1 ")]
            print("two requests on one connection:", *statuses)
        with paceline.Http(pool, head_timeout=0.02) as strict:
            with connect(strict) as peer, peer.makefile() as lines:
                peer.sendall(b"POST / HTTP/1.1\r\nHost:")  # and no more: such clients are not waited for
                print("a head that never ends:", lines.readline().strip())
        server.drain(60)  # the counters are exact at rest
        print("refused as too large:", server.stats().refused["body_too_large"])
