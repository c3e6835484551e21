"""A service of systemd: ready, well and stopping is told to it. Here a socket of the program's own stands for systemd.

feature: ops/service
"""

import os
import socket

import paceline

systemd = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
systemd.settimeout(60)
name = f"/tmp/service-py-{os.getpid()}"
systemd.bind(name)
os.environ["NOTIFY_SOCKET"] = name
os.environ["WATCHDOG_USEC"] = "20000"
os.environ["WATCHDOG_PID"] = str(os.getpid())


def hear(what: bytes) -> None:
    """Waits until this is told."""
    while what not in systemd.recv(256):
        pass


with paceline.Pool() as pool:
    # Whether the program is well, for example by WorkerPool.health().
    service = paceline.Service(pool, lambda: True)
    hear(b"READY=1")
    hear(b"WATCHDOG=1")
    service.status("serving")
    hear(b"STATUS=serving")
    service.close()
    hear(b"STOPPING=1")
systemd.close()
os.unlink(name)
