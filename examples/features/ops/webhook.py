"""A webhook sends messages of the hub to a URL by HTTP POST; here to a server of this program.

feature: ops/webhook
prints:
    the server got {'hot': True}
    1 delivered, 0 failed
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

    with http, paceline.Hub(pool) as hub:
        url = f"http://{http.addresses[0]}/notices"
        with paceline.Webhook(url, timeout=10, retries=3) as webhook:
            hub.subscribe("alarms.>", lambda message: webhook.post(message.payload))
            hub.publish("alarms.roof", b'{"hot":true}')
            print("the server got", posted.get(timeout=60))
            webhook.flush(60)
            stats = webhook.stats()
            print(f"{stats.delivered} delivered, {stats.failed} failed")
