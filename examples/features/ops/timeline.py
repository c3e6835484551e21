"""A timeline records what each thread of a pool does, for Perfetto.

feature: ops/timeline
prints:
    recorded: pool shop
    records lost: 0
"""

import json

import paceline

with paceline.Pool(2, name="shop") as pool:
    # https://ui.perfetto.dev opens a file of this text.
    trace = json.loads(pool.trace(0.02))
    for event in trace["traceEvents"]:
        if event["name"] == "process_name":
            print("recorded:", event["args"]["name"])
    print("records lost:", trace["otherData"]["lost"])
