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

with paceline.Pool() as pool:
    # Whether the program is well, for example by WorkerPool.health().
    service = paceline.Service(pool, lambda: True)
    assert b"READY=1" in systemd.recv(256)
    assert b"WATCHDOG=1" in systemd.recv(256)
    service.status("serving")
    while b"STATUS=serving" not in systemd.recv(256):
        pass
    service.close()
    while b"STOPPING=1" not in systemd.recv(256):
        pass
systemd.close()
os.unlink(name)
