"""Limits of HTTP: what is too large or too slow is refused; keep-alive and pipelined requests share a connection.

feature: http/limits
"""

import http.client
import socket

import paceline
from paceline import Request

with paceline.Pool() as pool:
#Also heads, targets, headers, rates.
    server = paceline.Http(pool, max_body=1024)

    @server.post("/")
    def echo(request: Request) -> bytes:
        return request.body

    with server:
        host, _, port = server.addresses[0].rpartition(":")

        def status(method: str, path: str, body: bytes = b"") -> int:
            client = http.client.HTTPConnection(host, int(port), timeout=60)
            client.request(method, path, body)
            answer = client.getresponse()
            answer.read()
            client.close()
            return answer.status

        assert status("POST", "/", b"x" * 2000) == 413
        assert status("GET", "/") == 405 and status("GET", "/none") == 404

        with socket.create_connection((host, int(port)), 60) as peer:
            head = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n"
            peer.sendall(head + b"\r\none" + head + b"Connection: close\r\n\r\ntwo")
            both = b""
            while data := peer.recv(4096):
                both += data
        assert -1 < both.find(b"one") < both.find(b"two")
        with paceline.Http(pool, head_timeout=0.02) as strict:
            host, _, port = strict.addresses[0].rpartition(":")
            with socket.create_connection((host, int(port)), 60) as peer:
                peer.sendall(b"POST / HTTP/1.1\r\nHost:")  # and no more: such clients are not waited for
                assert peer.recv(64).startswith(b"HTTP/1.1 408 ")
        server.drain(60)  # the counters are exact at rest
        assert server.stats().refused["body_too_large"] == 1
