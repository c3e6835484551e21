"""Uses what an installation has beyond the engine, each once, and prints what bindings/cpp/tests/consumer/complete.c does.
The argument is an empty directory."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable

import paceline


def archive() -> str:
    hub = paceline.Hub(pool, histories=[paceline.History(archive="archive.db")])
    hub.publish("orders", b"1")
    hub.flush()
    found = len(hub.query("orders"))
    hub.close()
    return f"{found} message, {'on disk' if os.path.exists('archive.db') else 'nowhere'}"


def webhook() -> str:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        made = paceline.Webhook(f"http://127.0.0.1:{listener.getsockname()[1]}/")
        made.post(b"{}")
        client, _ = listener.accept()
        with client:
            request = client.recv(1024)
            client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            made.flush()
        made.close()
        return request[:4].decode()


def systemd() -> str:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind("notify")
        os.environ["NOTIFY_SOCKET"] = os.path.abspath("notify")
        service = paceline.Service(pool)
        told = manager.recv(64).decode().split("\n")[0]
        service.close()
        return told


def metrics() -> str:
    with paceline.WorkerPool(pool, metrics=True) as workers:
        text = workers.metrics()
        return "Prometheus" if text.startswith("# ") else text


def config() -> str:
    with open("settings.yaml", "w") as file:
        file.write("pool:\n  threads: 3\n")
    with paceline.Pool(settings="settings.yaml") as configured:
        return f"{len(configured.stats().threads)} threads"


def run(part: Callable[[], str]) -> None:
    try:
        print(f"{part.__name__}: {part()}")
    except paceline.UnsupportedError:
        print(f"{part.__name__}: PACE_EUNSUPPORTED")


os.chdir(sys.argv[1])
with paceline.Pool(2) as pool:
    for each in (archive, webhook, systemd, metrics, config):
        run(each)
