"""Middleware runs around the handlers of routes, a fallback answers requests without a route, and a hook is called at
the end of each request.

feature: http/middleware
prints:
    200 hello, served by example
    404 nothing here, served by example
    the hook heard 200
    the hook heard 404
"""

import http.client
import queue
from collections.abc import Callable

import paceline
from paceline import Request, RequestEnd, Response

ends: "queue.Queue[RequestEnd]" = queue.Queue()
with paceline.Pool() as pool:
    server = paceline.Http(pool)

    @server.get("/")
    def hello(request: Request) -> Response:
        return Response("hello")

    @server.around
    def stamp(request: Request, run: Callable[[Request], Response]) -> Response:
        return run(request).header("X-Served-By", "example")  # or answers here, and runs nothing

    @server.fallback
    def missing(request: Request) -> Response:
        return Response("nothing here", 404)

    server.on_end(ends.put)
    with server:
        client = http.client.HTTPConnection(server.addresses[0], timeout=60)
        for path in ("/", "/none"):
            client.request("GET", path)
            answer = client.getresponse()
            print(answer.status, f"{answer.read().decode()}, served by {answer.headers['X-Served-By']}")
        client.close()
        for _ in range(2):
            print("the hook heard", ends.get(timeout=60).status)
