"""Bodies in pieces: an answer that is produced as it leaves, and an upload that is taken as it comes.

feature: http/streaming
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
        assert is_whole
        self.request.respond(f"{self.size} bytes")


with paceline.Pool() as pool:
    http = paceline.Http(pool)

    @http.get("/")
    def download(request: Request) -> Response:
        def pieces() -> Iterator[bytes]:  # goes on whenever there is room
            for _ in range(3):
                yield b"piece "

        return Response(pieces())  # chunked, unless a length is given

    http.route_streaming("POST", "/")(Upload)
    with http:
        url = f"http://{http.addresses[0]}/"
        with urllib.request.urlopen(url, timeout=60) as answer:
            assert answer.read() == b"piece piece piece "
        with urllib.request.urlopen(url, data=b"hello", timeout=60) as answer:
            assert answer.read() == b"5 bytes"
