"""An access log has a line in Apache's combined format for each request; here the log gives it to a function.

feature: http/access_log
prints:
    hello
    127.0.0.1 - - [...] "GET / HTTP/1.1" 200 5 "-" "example/1.0"
"""

import queue
import re
from urllib.request import Request, urlopen

import paceline
from paceline import LogRecord

records: "queue.Queue[LogRecord]" = queue.Queue()
log = paceline.Log(callback=records.put, logger=False)
with paceline.Pool() as pool:
    http = paceline.Http(pool)

    @http.get("/")
    def hello(request: paceline.Request) -> str:
        return "hello"

    # Without a log it is the pool's. With "json" a record has fields instead of a line.
    http.access_log("combined", log)
    with http:
        request = Request(f"http://{http.addresses[0]}/", headers={"User-Agent": "example/1.0"})
        with urlopen(request, timeout=60) as answer:
            print(answer.read().decode())
        line = records.get(timeout=60).message
        print(re.sub(r"\[.*?\]", "[...]", line))  # without its time
log.close(60)
