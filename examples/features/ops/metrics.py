"""The metrics of a pool, the process, the disks and a hub come as JSON, or as text for Prometheus.

feature: ops/metrics
prints:
    paceline_hub_published_total{hub="orders"} 2.0
    system_disk_free_bytes{path="/"}
    system_disk_total_bytes{path="/"}
    in JSON: paceline_hub_published, 2
"""

import json

import paceline

with paceline.Pool() as pool, paceline.Hub(pool, name="orders") as hub:
    pool.add_disk("/")
    hub.publish_batch("orders", [b"", b""])
    for line in pool.metrics("prometheus").splitlines():
        if line.startswith("system_disk_"):
            print(line.split()[0])  # without its value, which changes
        elif line.startswith("paceline_hub_published_total"):
            print(line)
    for family in json.loads(hub.metrics("json"))["families"]:
        if family["name"] == "paceline_hub_published":
            print(f"in JSON: {family['name']}, {family['samples'][0]['value']}")
