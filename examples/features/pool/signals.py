"""A function is called for each signal of the process, or the program waits for one.

feature: pool/signals
prints:
    the function got SIGHUP
    the program got SIGTERM
"""

import os
import signal
import threading

import paceline

heard = threading.Event()


def hear(number: int) -> None:
    print("the function got", signal.Signals(number).name)
    heard.set()


with paceline.Signals([signal.SIGHUP], on_signal=hear), paceline.Signals() as ends:
    os.kill(os.getpid(), signal.SIGHUP)
    heard.wait(60)
    os.kill(os.getpid(), signal.SIGTERM)
    number = ends.wait(60)  # for SIGTERM or SIGINT
    print("the program got", signal.Signals(number or 0).name)
