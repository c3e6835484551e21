"""An archive on disk keeps the history of a hub beyond its end; it is exported to lines of JSON and imported from them.

feature: hub/archive
prints:
    written: 3 lines
    in the archive: 1 2 3
    in the file of lines: 1 2 3
    imported into another archive: 3 messages
"""

import os
import tempfile

import paceline
from paceline import Archive, History

with tempfile.TemporaryDirectory() as folder:
    archive = os.path.join(folder, "orders.sqlite")
    lines = os.path.join(folder, "orders.jsonl")
    histories = [History("orders.>", archive=archive)]
    with paceline.Pool() as pool, paceline.Hub(pool, histories=histories) as hub:
        hub.publish_batch("orders.eu", [b"1", b"2", b"3"])
        hub.flush()  # before this, a loss of power could lose them
        print("written:", hub.export_lines(lines, "orders.>"), "lines")

    found = Archive(archive).query("orders.*")  # without a hub
    print("in the archive:", *(message.payload.decode() for message in found))
    read = paceline.read_lines(lines)
    print("in the file of lines:", *(message.payload.decode() for message in read))
    copy = History("orders.>", archive=os.path.join(folder, "copy.sqlite"))
    imported = Archive.import_lines(copy, lines)
    print("imported into another archive:", imported.messages, "messages")
