"""What surrounds routes: middleware, a fallback for what has no route, and a hook that hears how each request ended.

feature: http/middleware
"""

import queue
import urllib.error
import urllib.request
from collections.abc import Callable

import paceline
from paceline import Request, RequestEnd, Response

ends: "queue.Queue[RequestEnd]" = queue.Queue()
with paceline.Pool() as pool:
    http = paceline.Http(pool)

    @http.get("/")
    def hello(request: Request) -> Response:
        return Response("hello")

    @http.around
    def stamp(request: Request, run: Callable[[Request], Response]) -> Response:
        return run(request).header("X-Served-By", "example")  # or answers here, and runs nothing

    @http.fallback
    def missing(request: Request) -> Response:
        return Response("nothing here", 404)

    http.on_end(ends.put)
    with http:
        url = f"http://{http.addresses[0]}/"
        with urllib.request.urlopen(url, timeout=60) as answer:
            assert (answer.read(), answer.headers["X-Served-By"]) == (b"hello", "example")
        try:
            urllib.request.urlopen(url + "none", timeout=60)
            raise AssertionError("there is no such path")
        except urllib.error.HTTPError as error:
            with error:
                assert (error.status, error.read()) == (404, b"nothing here")
        assert [ends.get(timeout=60).status for _ in range(2)] == [200, 404]
