"""What a round and a verification leave on the disk while they run: nothing of the credentials.

a session of ours                 everything in folders that only this user can enter
a session of the user's own       world-readable and plain, as Spark's defaults are
"""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import json, os, sys, tempfile, threading, time
from pathlib import Path
import lithify
from lithify.spark import sizing

ours, folder = sys.argv[1] == "ours", Path(sys.argv[2])
secret = os.environ["PYICEBERG_CATALOG__PROD__S3__SECRET_ACCESS_KEY"]
conf = {"spark.master": "local[2]", "spark.shuffle.compress": "false", "spark.rdd.compress": "false"}
conf["spark.sql.shuffle.partitions"] = "2"  # of a session of the user's they are 200
found, modes, done = set(), set(), threading.Event()

def look():
    while not done.is_set():
        for parent, _, names in os.walk(folder):
            for path in (os.path.join(parent, name) for name in names):
                try:
                    with open(path, "rb") as file:
                        if secret.encode() in file.read():
                            found.add(path)
                except OSError:
                    pass
        modes.update((entry.name, entry.stat().st_mode) for entry in os.scandir(folder))
        time.sleep(0.02)

threading.Thread(target=look, daemon=True).start()
session = None
if not ours:
    from pyspark.sql import SparkSession
    builder = SparkSession.builder.config("spark.local.dir", str(folder))
    for name, value in conf.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
if sys.argv[3] == "shuffled":
    sizing.MAX_READS = 0
topic = lithify.open(catalog="prod").create_topic("t", 1)
for start in range(4):
    topic.append([lithify.Record(b"%d" % (n % 50), b"v") for n in range(start, 200)])
given = {"spark": session} if session is not None else {"spark_conf": {**conf, "spark.local.dir": str(folder)}}
report = topic.compact(**given)
topic.verify(**given)
time.sleep(0.1)
done.set()
print(json.dumps({"found": sorted(found), "modes": sorted(modes), "changed": report.to_json()["changed"]}))
"""


@pytest.mark.spark
@pytest.mark.parametrize("way", ["direct", "shuffled"])
@pytest.mark.parametrize("session", ["ours", "theirs"])
def test_no_credentials_are_on_disk(session: str, way: str, tmp_path: Path) -> None:
    local = tmp_path / "local"
    local.mkdir(mode=0o755)
    environment = {
        **os.environ,
        "PYICEBERG_CATALOG__PROD__TYPE": "sql",
        "PYICEBERG_CATALOG__PROD__URI": f"sqlite:///{tmp_path}/catalog.db",
        "PYICEBERG_CATALOG__PROD__WAREHOUSE": f"file://{tmp_path}/warehouse",
        "PYICEBERG_CATALOG__PROD__S3__SECRET_ACCESS_KEY": "7Hn-not-for-the-disk-q9",
    }
    environment.pop("SPARK_LOCAL_DIRS", None)
    (tmp_path / "warehouse").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, session, str(local), way],
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=True,
    )
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["changed"]
    assert told["found"] == []
    assert told["modes"], "nothing was looked at"
    if session == "ours":
        assert [name for name, mode in told["modes"] if stat.S_IMODE(mode) & 0o077] == []
        assert list(local.iterdir()) == [], "what was there goes with the session"
