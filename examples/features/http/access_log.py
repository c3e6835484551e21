"""An access log: a line in Apache's combined format for each request, which the log gives to a function.

feature: http/access_log
"""

import queue
import urllib.request

import paceline
from paceline import LogRecord, Request

records: "queue.Queue[LogRecord]" = queue.Queue()
log = paceline.Log(callback=records.put, logger=False)
with paceline.Pool() as pool:
    http = paceline.Http(pool)

    @http.get("/")
    def hello(request: Request) -> str:
        return "hello"

    # Without a log: the pool's. "json": fields, which the file of a log has as JSON.
    http.access_log("combined", log)
    with http:
        with urllib.request.urlopen(f"http://{http.addresses[0]}/", timeout=60) as answer:
            assert answer.read() == b"hello"
        line = records.get(timeout=60).message
        assert (
            line.startswith("127.0.0.1 - - [") and '] "GET / HTTP/1.1" 200 5 "-" "Python-urllib' in line
        )
log.close(60)
