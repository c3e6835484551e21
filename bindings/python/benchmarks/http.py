"""Requests per second and CPU per request of HTTP servers in Python, under ``wrk``, in turns.

    PYTHONPATH=bindings/python/src PACELINE_LIBRARY=target/release/libpaceline.so \
        python bindings/python/benchmarks/http.py --rounds 5 --seconds 3

Each answers GET / with 64 bytes, in a process of its own. What is not installed is left out.
"""

from __future__ import annotations

import sys

# A script's own directory comes first, and this one has the name of a standard module.
sys.path[:] = sys.path[1:]

import argparse
import importlib.util
import os
import re
import signal
import socket
import statistics
import subprocess
import time
from collections.abc import Callable

BODY = b"x" * 64


def serve_paceline(port: int) -> None:
    import threading

    import paceline

    pool = paceline.Pool(1)
    server = paceline.Http(pool, f"127.0.0.1:{port}")

    @server.get("/")
    def answer(request: paceline.Request) -> bytes:
        return BODY

    server.start()
    threading.Event().wait()


def serve_standard(port: int) -> None:
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Head and body in one send.
        wbufsize = -1
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(BODY)))
            self.end_headers()
            self.wfile.write(BODY)

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        request_queue_size = 1024
        daemon_threads = True

    Server(("127.0.0.1", port), Handler).serve_forever()


def serve_aiohttp(port: int) -> None:
    from aiohttp import web

    async def answer(_: web.Request) -> web.Response:
        return web.Response(body=BODY)

    app = web.Application()
    app.router.add_get("/", answer)
    web.run_app(app, host="127.0.0.1", port=port, access_log=None, print=None)


def serve_uvicorn(port: int) -> None:
    import uvicorn

    head = {
        "type": "http.response.start",
        "status": 200,
        "headers": [(b"content-length", b"64")],
    }

    async def app(scope: object, receive: object, send: Callable[..., object]) -> None:
        if scope["type"] == "http":  # type: ignore[index]
            await send(head)  # type: ignore[misc]
            await send({"type": "http.response.body", "body": BODY})  # type: ignore[misc]

    uvicorn.run(app, host="127.0.0.1", port=port, log_level="error", access_log=False)


SERVERS: dict[str, tuple[Callable[[int], None], str]] = {
    "paceline": (serve_paceline, "paceline"),
    "http.server": (serve_standard, "http"),
    "aiohttp": (serve_aiohttp, "aiohttp"),
    "uvicorn": (serve_uvicorn, "uvicorn"),
}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def cpu_of(pid: int) -> float:
    """Seconds of CPU that a process has used."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(name: str, connections: int, seconds: int) -> tuple[float, float, float]:
    """Requests per second, microseconds of CPU per request, p99 in milliseconds."""
    port = free_port()
    command = [sys.executable, __file__, "--serve", name, "--port", str(port)]
    server = subprocess.Popen(command, env=os.environ)
    try:
        end = time.monotonic() + 30
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.05)
        url = f"http://127.0.0.1:{port}/"
        wrk = ["wrk", "-t1", f"-c{connections}", "--latency"]
        subprocess.run([*wrk, "-d1", url], stdout=subprocess.DEVNULL, check=True)
        before = cpu_of(server.pid)
        told = subprocess.run(
            [*wrk, f"-d{seconds}", url], stdout=subprocess.PIPE, text=True, check=True
        ).stdout
        cpu = cpu_of(server.pid) - before
        found = re.search(r"(\d+) requests in", told)
        assert found is not None and "Non-2xx" not in told, told
        requests = int(found[1])
        rate = re.search(r"Requests/sec: +([\d.]+)", told)
        tail = re.search(r"99% +([\d.]+)(us|ms|s)", told)
        assert rate is not None and tail is not None, told
        unit = {"us": 0.001, "ms": 1.0, "s": 1000.0}[tail[2]]
        return float(rate[1]), cpu / requests * 1e6, float(tail[1]) * unit
    finally:
        server.send_signal(signal.SIGKILL)
        server.wait()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--connections", type=int, default=50)
    parser.add_argument("--serve")
    parser.add_argument("--port", type=int)
    options = parser.parse_args()
    if options.serve:
        SERVERS[options.serve][0](options.port)
        return
    names = [name for name, (_, module) in SERVERS.items() if importlib.util.find_spec(module)]
    results: dict[str, list[tuple[float, float, float]]] = {name: [] for name in names}
    for _ in range(options.rounds):
        for name in names:
            results[name].append(measure(name, options.connections, options.seconds))
    print(f"{'':12} {'requests/s':>11} {'CPU us/request':>15} {'p99 ms':>8}")
    for name in names:
        rate, cpu, tail = (statistics.median(column) for column in zip(*results[name]))
        print(f"{name:12} {rate:11,.0f} {cpu:15.1f} {tail:8.2f}")


if __name__ == "__main__":
    main()
