"""An archive on disk: history that outlives the hub; lines of JSON from it, and an archive from lines.

feature: hub/archive
"""

import os
import tempfile

import paceline
from paceline import Archive, History

with tempfile.TemporaryDirectory() as folder:
    archive = os.path.join(folder, "orders.sqlite")
    lines = os.path.join(folder, "orders.jsonl")
    with paceline.Pool() as pool:
        hub = paceline.Hub(pool, histories=[History("orders.>", archive=archive)])
        hub.publish_batch("orders.eu", [b"1", b"2", b"3"])
        hub.flush()  # until here it may be lost with the power
        assert hub.export_lines(lines, "orders.>") == 3
        hub.close()

    found = Archive(archive).query("orders.*")  # without a hub
    assert [message.payload for message in found] == [b"1", b"2", b"3"]
    assert [message.payload for message in paceline.read_lines(lines)] == [b"1", b"2", b"3"]
    copy = History("orders.>", archive=os.path.join(folder, "copy.sqlite"))
    read = Archive.import_lines(copy, lines)
    assert (read.messages, read.torn) == (3, 0)
