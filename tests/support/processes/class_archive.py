"""Archives of the classes of JVMs: those that tests start map them, instead of loading each class anew.

    .venv/jars/spark-<version>.jsa     what a Spark loaded that did a round and a stream
    .venv/jars/kafka-<version>.jsa     what a broker loaded that took records, and was stopped
    .venv/jars/pulsar-<version>.jsa    what a broker and its bookie loaded that compacted a topic, and were stopped
    .venv/jars/pulsar-<version>-ledgers.jsa    what a JVM loaded that wrote ledgers of that broker, and read them
    .venv/jars/<name>.of               the Java that the archive fits, and what was done

With it a JVM that starts Spark and runs a first job takes 7 instead of 12 seconds of CPU time, and a run of all
sections starts dozens. A JVM that an archive does not fit loads its classes as always.
"""

from __future__ import annotations

import inspect
import shlex
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from zlib import crc32

import pyspark
from filelock import FileLock

from lithify.spark.session.java import find_java
from lithify.spark.session.spark_home import made_without_zips
from support.processes.programs import SHORT_LIVED

ARCHIVE = Path(sys.prefix) / "jars" / f"spark-{pyspark.__version__}.jsa"
QUIET = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")
"""Nothing is said of an archive that does not fit: that would be on the JVM's stdout."""


def spark_home() -> Path:
    """Of all that tests start: an archive fits one class path, and each session would have a folder of its own."""
    folder = ARCHIVE.with_suffix(".home")
    folder.mkdir(parents=True, exist_ok=True)
    return made_without_zips(folder) or folder / "spark"


def spark_options() -> tuple[str, ...]:
    """For a JVM that runs Spark for minutes."""
    return options(ARCHIVE)


def options(archive: Path) -> tuple[str, ...]:
    """For a JVM that lives for minutes, and loads the classes of `archive` if that was made."""
    return (*SHORT_LIVED, f"-XX:SharedArchiveFile={archive}", *QUIET) if archive.exists() else SHORT_LIVED


def java_with(options: Sequence[str], home: Path) -> Path:
    """A `java`, made in the folder `home`, that takes these options before those that it is given."""
    java, found = home / "bin" / "java", find_java().executable
    text = f'#!/bin/sh\nexec {shlex.join((str(found), *options))} "$@"\n'
    if not (java.exists() and java.read_text() == text):
        java.parent.mkdir(parents=True, exist_ok=True)
        java.write_text(text)
        java.chmod(0o755)
    return java


def make_archives(trainings: Mapping[Path, Callable[[Sequence[str], Path], None]]) -> None:
    """Makes those that this Java has not made yet. A Java that can write none leaves none.

    A training starts a JVM with the options that it is given, which write the archive once it ends. It has a folder.
    """
    java = find_java().executable.resolve()
    for archive, train in trainings.items():
        of = f"{java} {java.stat().st_mtime_ns} {crc32(inspect.getsource(sys.modules[train.__module__]).encode())}"
        note = archive.with_suffix(".of")
        archive.parent.mkdir(exist_ok=True)
        with FileLock(f"{archive}.lock"), tempfile.TemporaryDirectory(dir=archive.parent) as scratch:
            if note.exists() and note.read_text() == of:
                continue
            archive.unlink(missing_ok=True)
            made = Path(scratch) / archive.name
            train((*SHORT_LIVED, f"-XX:ArchiveClassesAtExit={made}", *QUIET), Path(scratch))
            with suppress(FileNotFoundError):
                made.replace(archive)  # whole or not at all: a JVM that maps half an archive crashes
            note.write_text(of)
