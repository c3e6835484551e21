"""A handler of HTTP may return None; another thread sends the response later.

feature: http/later
prints:
    202 Accepted
    {"ok":true}
"""

import urllib.request

import paceline
from paceline import Request, Response

with paceline.Pool() as pool:
    http = paceline.Http(pool)

    @http.get("/slow")
    def slow(request: Request) -> None:
        pool.post(request.respond, Response.json({"ok": True}, 202))

    with http:
        with urllib.request.urlopen(f"http://{http.addresses[0]}/slow", timeout=60) as answer:
            print(answer.status, answer.reason)
            print(answer.read().decode())
