"""A shop as a service: an HTTP API with JSON, an upload and server-sent events; jobs that are retried until a deadline; a
hub with a history between them; settings from a file, a log, an operations page with health, and an orderly end.

    python examples/python/service.py
    curl -i http://127.0.0.1:8080/orders -d '{"item": "tea", "quantity": 2}'
    curl -i http://127.0.0.1:8080/orders/1
    curl -i http://127.0.0.1:8080/orders/1/receipt -T README.md
    curl -N http://127.0.0.1:8080/events

The bank is busy twice for an order of "flaky", refuses "stolen", and never answers about "stuck". The operations page is at
http://127.0.0.1:9090/. SIGTERM or Ctrl-C ends the service: it completes the orders that it has accepted, sends the readers
of events the last ones, and exits with 0. An argument names another file of settings than service.yaml.
"""

from __future__ import annotations

import contextlib
import json
import sys
import threading
import time
import zlib
from collections.abc import Iterator
from typing import Any, Optional

import paceline
from paceline import PermanentFailure, Request, Response, TaskStatus

MAX_RECEIPT = 65536
#: How many seconds each part of the end may take.
DRAIN = 30.0
#: The key of the message that ends the streams of events.
THE_END = "orders.end"

files = sys.argv[1:] or ["examples/service/service.yaml"]
settings = paceline.Settings(*files, environment=True)
log = paceline.Log(settings=settings, logger=False)
pool = paceline.Pool(settings=settings, log=log)
workers = paceline.WorkerPool(pool, threads=4, settings=settings)
hub = paceline.Hub(pool, histories=settings.histories(), **settings.hub())
# Each reader of events has one of these threads.
http = paceline.Http(pool, settings.listen(), threads=16, **settings.http())
http.access_log("json")

orders: dict[int, dict[str, Any]] = {}
lock = threading.Lock()

ENDS = {
    TaskStatus.COMPLETED: "paid",
    TaskStatus.FAILED: "declined",
    TaskStatus.TIMED_OUT: "late",
}


def change(id: int, state: str, **more: int) -> None:
    """Changes the state of an order, and publishes the order."""
    with lock:
        orders[id].update(state=state, **more)
        payload = json.dumps(orders[id]).encode()
    hub.publish(f"orders.{id}", payload)


@workers.task(name="charge", **settings.tasks())
def charge(id: int, item: str) -> None:
    """It may block its thread as long as it likes: no request waits for it."""
    attempt = paceline.current_attempt()
    change(id, "charging", attempts=attempt.number)
    if item == "flaky" and attempt.number < 3:
        raise OSError("the bank is busy")
    if item == "stolen":
        raise PermanentFailure("the card is stolen")
    if item == "stuck":
        while not attempt.cancelled:
            time.sleep(0.005)
        raise OSError("the bank has not answered")


def refuse(status: int, field: str, error: str) -> Response:
    """An error that names the field and says what would be right."""
    return Response.json({"field": field, "error": error}, status)


@http.post("/orders")
def create(request: Request) -> Response:
    try:
        body = request.json()
    except ValueError:
        body = None
    if not isinstance(body, dict):
        return refuse(400, "body", "must be a JSON object")
    item, quantity = body.get("item"), body.get("quantity")
    if not isinstance(item, str) or not item:
        return refuse(422, "item", "must be a text that is not empty")
    # True is an int, too.
    if type(quantity) is not int or not 1 <= quantity <= 1000:
        return refuse(422, "quantity", "must be a whole number from 1 to 1000")
    with lock:
        id = len(orders) + 1
        order = {"id": id, "item": item, "quantity": quantity, "state": "accepted", "attempts": 0}
        orders[id] = dict(order)
    change(id, "accepted")
    try:
        task = charge.submit(id, item)
    except (paceline.Full, paceline.ShutDownError):
        change(id, "cancelled")
        return refuse(503, "order", "cannot be taken now")
    task.add_done_callback(lambda task: change(id, ENDS.get(task.status, "cancelled")))
    return Response.json(order, 201).header("Location", f"/orders/{id}")


@http.get("/orders")
def list_orders(request: Request) -> Response:
    with lock:
        return Response.json({"orders": list(orders.values())})


def find(request: Request) -> Optional[dict[str, Any]]:
    """The order that the path names."""
    id = request.params["id"]
    with lock:
        return dict(orders[int(id)]) if id.isdecimal() and int(id) in orders else None


@http.get("/orders/{id}")
def show(request: Request) -> Response:
    order = find(request)
    return refuse(404, "id", "names no order") if order is None else Response.json(order)


class Receipt(paceline.RequestBody):
    """An upload, counted and summed up (Adler-32) as it comes. It is never in memory as a whole."""

    def __init__(self, request: Request) -> None:
        self.request, self.size, self.sum = request, 0, 1

    def data(self, data: bytes) -> None:
        self.size += len(data)
        self.sum = zlib.adler32(data, self.sum)
        if self.size > MAX_RECEIPT:
            # The rest of it is dropped.
            self.request.respond(refuse(413, "receipt", "must have up to 65536 bytes"))

    def end(self, is_whole: bool) -> None:
        if is_whole:
            self.request.respond({"size": self.size, "adler32": f"{self.sum:08x}"})


@http.route_streaming("PUT", "/orders/{id}/receipt")
def receipt(request: Request) -> paceline.RequestBody | Response:
    if find(request) is None:
        return refuse(404, "id", "names no order")
    return Receipt(request)


def stream(first: int) -> Iterator[bytes]:
    """Server-sent events. Closed, as it is when its client has gone, it ends the replay."""
    yield b": the orders of the shop\n\n"
    with hub.replay_mailbox("orders.*", sequence=first) as mailbox:
        while True:
            messages = mailbox.pull(timeout=15)
            for message in messages:
                if message.key == THE_END:
                    return
                yield b"id: %d\nevent: order\ndata: %s\n\n" % (message.sequence, message.payload)
            if not messages:
                # So a client that has gone is noticed.
                yield b": still here\n\n"


@http.get("/events")
def events(request: Request) -> Response:
    """What has happened since the event that the client has seen last, and what happens from now on."""
    seen = request.header("Last-Event-ID") or ""
    last = int(seen) if seen.isdecimal() and len(seen) < 19 else 0
    # An id that no event has had yet is of another time: then all events are new.
    first = last + 1 if hub.query("orders.*", first=last, limit=1) else 1
    headers = {"Content-Type": "text/event-stream", "Cache-Control": "no-store"}
    return Response(stream(first), headers=headers)


def main() -> int:
    with paceline.Signals() as signals, paceline.ops.serve(pool, None, settings=settings) as ops:
        http.start()
        systemd = contextlib.ExitStack()
        with contextlib.suppress(paceline.UnsupportedError):  # The library has not the feature systemd.
            systemd.enter_context(paceline.Service(pool))
        print(f"the shop: http://{http.addresses[0]}/orders")
        print(f"the live page: http://{ops.address}/", flush=True)

        signals.wait()
        systemd.close()
        # Orders are refused from here on, and those that were accepted are completed.
        jobs = workers.shutdown(drain=DRAIN)
        # Their last states are published. Behind them comes what ends the streams of events, which the server waits for.
        hub.publish(THE_END, b"")
        answered = http.drain(DRAIN)
    end = pool.shutdown(drain=DRAIN)
    drained = jobs.drained and answered.drained and end.drained
    print(f"drained: {str(drained).lower()}, orders: {len(orders)}")
    log.close()
    return 0 if drained else 1


if __name__ == "__main__":
    sys.exit(main())
