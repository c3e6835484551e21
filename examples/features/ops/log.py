"""A structured log: to a function, to a file of JSON lines that is rotated, or to `logging`, which is the default.

feature: ops/log
"""

import json
import os
import tempfile

import paceline
from paceline import LogRecord

records: list[LogRecord] = []
with tempfile.TemporaryDirectory() as folder:
    file = os.path.join(folder, "paceline.log")
    log = paceline.Log(file, levels="info,net=debug", callback=records.append, max_size=1 << 20)
    with paceline.Pool(2, log=log):
        log.flush(60)
        assert [record.event for record in records][:1] == ["pool.started"]
        log.set_levels("warn")  # at any time
        assert log.levels()["net"] == "warn"
    log.close(60)
    with open(file, encoding="utf-8") as lines:
        first = json.loads(next(lines))
    assert (first["event"], first["level"]) == ("pool.started", "info")
