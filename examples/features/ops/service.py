"""A service reports to systemd when it is ready, well and about to stop. Here a socket of the program stands for
systemd.

feature: ops/service
prints:
    READY=1
    WATCHDOG=1
    STATUS=serving
    STOPPING=1
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


def hear(wanted: str) -> None:
    """Waits until systemd is sent this."""
    while wanted not in systemd.recv(256).decode():
        pass
    print(wanted)


with paceline.Pool() as pool:
    # The function says whether the program is well, for example by WorkerPool.health().
    with paceline.Service(pool, lambda: True) as service:
        hear("READY=1")
        hear("WATCHDOG=1")
        service.status("serving")
        hear("STATUS=serving")
    hear("STOPPING=1")
systemd.close()
os.unlink(name)
