"""Files of JSON or YAML and environment variables have the settings of a whole service.

feature: ops/settings
prints:
    pool: 2 threads
    tasks: 5 retries, a timeout of 2.0 s
    hub: {'max_payload': 65536}
    PACELINE_POOL_THREADS: pool.threads is "many", but must be 0 to 1024
"""

import os
import tempfile

import paceline
from paceline import Settings

TEXT = """
pool: {threads: 3, name: shop}
tasks: {retries: 5, timeout: 2s}
hub: {max_payload: 64 KiB}
"""
with tempfile.TemporaryDirectory() as folder:
    file = os.path.join(folder, "service.yaml")
    with open(file, "w", encoding="utf-8") as out:
        out.write(TEXT)
    os.environ["PACELINE_POOL_THREADS"] = "2"  # wins over the file
    settings = Settings(file, environment=True)
    with paceline.Pool(settings=settings) as pool:
        print("pool:", len(pool.stats().threads), "threads")
        tasks = settings.tasks()
        print(f"tasks: {tasks['retries'].retries} retries, a timeout of {tasks['timeout']} s")
        print("hub:", settings.hub())
    os.environ["PACELINE_POOL_THREADS"] = "many"
    try:
        paceline.Pool(settings=settings)
    except paceline.InvalidError as error:
        print(error)
