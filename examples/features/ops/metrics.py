"""Figures of a pool, the process, the disks and a hub, as JSON or as text for a collector.

feature: ops/metrics
"""

import json

import paceline

with paceline.Pool() as pool:
    hub = paceline.Hub(pool)
    pool.add_disk("/")
    hub.publish("orders")
    text = pool.metrics("prometheus")
    assert "paceline_handles{pool=" in text and "# TYPE " in text
    assert "paceline_hub_published" in json.dumps(json.loads(hub.metrics("json")))
    hub.close()
