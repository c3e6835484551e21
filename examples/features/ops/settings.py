"""Settings of a whole service from files of JSON or YAML and from the environment.

feature: ops/settings
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
        assert len(pool.stats().threads) == 2
        tasks = settings.tasks()
        assert tasks["timeout"] == 2.0 and tasks["retries"].retries == 5
        assert settings.hub() == {"max_payload": 65536}
    os.environ["PACELINE_POOL_THREADS"] = "many"
    try:
        paceline.Pool(settings=settings)
        raise AssertionError("this is no number")
    except paceline.InvalidError as error:
        assert "PACELINE_POOL_THREADS" in str(error)
