"""A timeline of what each thread does, for Perfetto.

feature: ops/timeline
"""

import json

import paceline

with paceline.Pool(2) as pool:
    # https://ui.perfetto.dev opens a file of this text.
    text = pool.trace(0.02)
    trace = json.loads(text)
    assert trace["displayTimeUnit"] == "ns" and trace["otherData"]["lost"] == 0
    assert any(event["name"] == "thread_name" for event in trace["traceEvents"])
