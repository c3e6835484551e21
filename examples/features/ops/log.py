"""A structured log goes to a function, to a file of JSON lines that is rotated, or to `logging`, which is the default.

feature: ops/log
prints:
    the function got pool.started
    net is logged from the level warn on
    the file has pool.started, info
"""

import json
import os
import tempfile

import paceline
from paceline import LogRecord


def tell(record: LogRecord) -> None:
    print("the function got", record.event)


with tempfile.TemporaryDirectory() as folder:
    file = os.path.join(folder, "paceline.log")
    log = paceline.Log(file, levels="info,net=debug", callback=tell, max_size=1 << 20)
    with paceline.Pool(2, log=log):
        log.flush(60)
        log.set_levels("warn")  # at any time
        print("net is logged from the level", log.levels()["net"], "on")
    log.close(60)
    with open(file, encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            print(f"the file has {record['event']}, {record['level']}")
