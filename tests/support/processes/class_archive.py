"""An archive of the classes of Spark's JVM: those that tests start map it, instead of loading each class anew.

    .venv/jars/spark-<version>.jsa     what a Spark loaded that did a round; `scripts/check.py` has it made
    .venv/jars/spark-<version>.of      the Java that it fits

With it a JVM that starts Spark and runs a first job takes 7 instead of 12 seconds of CPU time, and a run of all
sections starts dozens. A JVM that it does not fit loads its classes as always.

    PYTHONPATH=tests python -m support.processes.class_archive      makes it, unless it is there
"""

from __future__ import annotations

import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import pyspark
from filelock import FileLock

from lithify.spark.session.java import find_java
from support.processes.programs import SHORT_LIVED, end, running, start
from support.servers.tcp_proxy import wait_until

ARCHIVE = Path(sys.prefix) / "jars" / f"spark-{pyspark.__version__}.jsa"
MAKE_S = 300.0
QUIET = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")
"""Nothing is said of an archive that does not fit: that would be on the JVM's stdout."""
TRAINING = """
import sys
import lithify
from lithify import Record, spark_source
from lithify.spark.session.start import session_factory

session = session_factory(None, {"spark.master": "local[2]"})()
topic = lithify.open(sys.argv[1]).create_topic("orders", 2)
for _ in range(2):
    topic.append([Record(b"k%d" % n, b"v", partition=n % 2) for n in range(10)])
assert topic.compact(spark=session).failed == ()
assert topic.verify(spark=session).findings == ()
spark_source.register(session, sys.argv[1])
frame = session.read.format("lithify").load("orders")
assert frame.groupBy("partition").count().count() == 2
session.stop()
"""


def spark_options() -> tuple[str, ...]:
    """For a JVM that runs Spark for minutes."""
    return (*SHORT_LIVED, f"-XX:SharedArchiveFile={ARCHIVE}", *QUIET) if ARCHIVE.exists() else SHORT_LIVED


def make() -> None:
    """Makes the archive unless there is one of this Java. A Java that can write none leaves none."""
    java = find_java().executable.resolve()
    of = f"{java} {java.stat().st_mtime_ns}"
    note = ARCHIVE.with_suffix(".of")
    ARCHIVE.parent.mkdir(exist_ok=True)
    with FileLock(f"{ARCHIVE}.lock"), tempfile.TemporaryDirectory(dir=ARCHIVE.parent) as scratch:
        if note.exists() and note.read_text() == of:
            return
        ARCHIVE.unlink(missing_ok=True)
        made = Path(scratch) / ARCHIVE.name
        _train(made, Path(scratch) / "lake")
        with suppress(FileNotFoundError):
            made.replace(ARCHIVE)  # whole or not at all: a JVM that maps half an archive crashes
        note.write_text(of)


def _train(archive: Path, lake: Path) -> None:
    """Runs Spark until its JVM has ended, which writes the archive then."""
    options = " ".join((*SHORT_LIVED, f"-XX:ArchiveClassesAtExit={archive}", *QUIET))
    program = start("-c", TRAINING, str(lake), env={"SPARK_SUBMIT_OPTS": options})
    try:
        _, errors = program.communicate(timeout=MAKE_S)
        assert program.returncode == 0, errors
        wait_until(lambda: not running(program.pid), "Spark's JVM does not end", MAKE_S)
    finally:
        end(program)


if __name__ == "__main__":
    make()
