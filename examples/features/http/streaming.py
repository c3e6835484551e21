"""A response is produced while it is sent, and the body of a request is handled while it arrives.

feature: http/streaming
prints:
    downloaded: piece 1, piece 2, piece 3
    uploaded: 5 bytes
"""

import urllib.request
from collections.abc import Iterator

import paceline
from paceline import Request, Response


class Upload(paceline.RequestBody):
    def __init__(self, request: Request) -> None:
        self.request, self.size = request, 0

    def data(self, data: bytes) -> None:
        self.size += len(data)

    def end(self, is_whole: bool) -> None:
        self.request.respond(f"{self.size} bytes")


with paceline.Pool() as pool:
    http = paceline.Http(pool)

    @http.get("/")
    def download(request: Request) -> Response:
        def pieces() -> Iterator[bytes]:  # goes on whenever there is room
            yield b"piece 1"
            yield b", piece 2"
            yield b", piece 3"

        return Response(pieces())  # chunked, unless a length is given

    http.route_streaming("POST", "/")(Upload)
    with http:
        url = f"http://{http.addresses[0]}/"
        with urllib.request.urlopen(url, timeout=60) as answer:
            print("downloaded:", answer.read().decode())
        with urllib.request.urlopen(url, data=b"hello", timeout=60) as answer:
            print("uploaded:", answer.read().decode())
