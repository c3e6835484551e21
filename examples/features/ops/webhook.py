"""Notices by HTTP POST: what matches a pattern of the hub is sent to a URL, here of this program's own server.

feature: ops/webhook
"""

import queue
from typing import Any

import paceline
from paceline import Request, Response

posted: "queue.Queue[Any]" = queue.Queue()
with paceline.Pool() as pool:
    http = paceline.Http(pool)

    @http.post("/notices")
    def take(request: Request) -> Response:
        posted.put(request.json())
        return Response()

    with http:
        webhook = paceline.Webhook(f"http://{http.addresses[0]}/notices", timeout=10, retries=3)
        hub = paceline.Hub(pool)
        alarms = hub.subscribe("alarms.>", lambda message: webhook.post(message.payload))
        hub.publish("alarms.roof", b'{"hot":true}')
        assert posted.get(timeout=60) == {"hot": True}
        assert webhook.flush(60) and webhook.stats().delivered == 1
        webhook.close()
        hub.close()
