"""A real Spark cluster of our own, from the PyPI package alone: a master and workers with a core each, two of them.

    driver (these tests) ──► master ──► worker ──► executor ──► Python workers      killed at will, as a machine
                                   └──► worker ──► executor ──► Python workers      or the kernel would do it

Everything is on 127.0.0.1. What is killed the cluster starts again by itself.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lithify.spark.session.java import find_java
from support.processes.class_archive import spark_home, spark_options
from support.servers.tcp_proxy import free_port, takes_connections, wait_until

WORKERS = 2
START_S = 60.0
OPENED = (
    "java.lang",
    "java.lang.invoke",
    "java.lang.reflect",
    "java.io",
    "java.net",
    "java.nio",
    "java.util",
    "java.util.concurrent",
    "java.util.concurrent.atomic",
    "sun.nio.ch",
    "sun.nio.cs",
    "sun.security.action",
    "sun.util.calendar",
)
"""Packages of Java's that Spark looks into, as its own scripts open them."""


@dataclass(frozen=True, slots=True)
class SparkCluster:
    """A running cluster. `conf` is what a session needs to use it."""

    master: str
    workers: tuple[int, ...]
    """Process ids."""

    @property
    def conf(self) -> Mapping[str, str]:
        return {
            "spark.master": self.master,
            "spark.driver.host": "127.0.0.1",
            "spark.executor.cores": "1",
            "spark.executor.memory": "600m",
            "spark.executor.extraJavaOptions": " ".join(spark_options()),
            "spark.executorEnv.PYTHONPATH": _python_path(),
        }

    def executors(self) -> list[int]:
        """Process ids."""
        return children(self.workers, "CoarseGrainedExecutorBackend")

    def python_workers(self) -> list[int]:
        """Process ids of those that run tasks: each was forked by the daemon of its executor."""
        daemons = children(self.executors(), "pyspark.daemon")
        return children(daemons, "pyspark.daemon")


@contextmanager
def a_cluster(workers: int = WORKERS) -> Iterator[SparkCluster]:
    with tempfile.TemporaryDirectory(prefix="spark") as name:
        folder, port = Path(name), free_port()
        master = f"spark://127.0.0.1:{port}"
        running = [_spawn(folder, "master.Master", "--port", str(port), "--webui-port", str(free_port()))]
        try:
            wait_until(lambda: takes_connections(port), "the master does not start", START_S)
            for _ in range(workers):
                web = free_port()
                running.append(_spawn(folder, "worker.Worker", "--webui-port", str(web), "-c", "1", "-m", "1g", master))
                wait_until(lambda web=web: takes_connections(web), "a worker does not start", START_S)
            yield SparkCluster(master, tuple(process.pid for process in running[1:]))
        finally:
            for process in reversed(running):
                process.send_signal(signal.SIGTERM)
            for process in running:
                process.wait(timeout=START_S)


def _spawn(folder: Path, program: str, *arguments: str) -> subprocess.Popen[bytes]:
    home = spark_home()
    opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED]
    (first,) = (home / "jars").glob("slf4j-api-*.jar")  # as Spark's launcher has it, or the archive would not fit
    java = [str(find_java().executable), "-Xmx256m", *spark_options(), *opened, "-cp", f"{first}:{home}/jars/*"]
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(
            [*java, f"org.apache.spark.deploy.{program}", "--host", "127.0.0.1", *arguments],
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            env={
                **os.environ,
                "SPARK_HOME": str(home),
                "SPARK_SCALA_VERSION": "2.13",
                "SPARK_LOCAL_IP": "127.0.0.1",
                "SPARK_WORKER_DIR": str(folder),
                "PYSPARK_PYTHON": sys.executable,
                "PYTHONPATH": _python_path(),
            },
        )


def _python_path() -> str:
    return os.pathsep.join(filter(None, sys.path))


def children(parents: Collection[int], program: str) -> list[int]:
    """Process ids of those that run a program and were started by one of these."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            if parent in parents and program.encode() in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
        except OSError:  # it has ended
            continue
    return found
