"""The Spark session of a run: the one that is given or active, else a local one made once.

given ──► it                   spark-submit, Spark Connect ──► theirs, by `getOrCreate`
else ──► local[*] of this machine, quiet, no web page, on a Java that `java.py` finds

A local one keeps its files encrypted in folders of this user alone, and its processes authenticate
each other (docs/security.md).
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock, current_thread, main_thread
from typing import cast

from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lithify.errors import EngineUnavailableError, LithifyError
from lithify.spark.session.java import find_java, java_home
from lithify.spark.session.reset import forget_dead_session

MASTER = "spark.master"
JAVA_OPTIONS = "spark.driver.extraJavaOptions"
COMPILES_LITTLE = "-XX:TieredStopAtLevel=1"
"""In rounds the JVM hands blocks to Python and back: to compile that well took it more than doing it. A
first round of 10 M records took 17 CPU-seconds so instead of 27, later ones 9 instead of 11."""
COMPILES_WELL = "-XX:TieredStopAtLevel=4"
"""Java's own way, for sessions in which the JVM goes over records itself."""
PURGE_DELAY_MS = "60000"
"""After so long a Python worker gives memory of Arrow's back that it does not use. With Arrow's own second it
frees between two row groups memory that it needs again, which took a fifth of the CPU time of a round."""
LOCAL_FOLDERS = "spark.local.dir"
_QUIET = Path(__file__).with_name("log4j2.properties")

_LOCALHOST = "127.0.0.1"
_LOCAL_CONF = {
    MASTER: "local[*]",
    "spark.app.name": "lithify",
    "spark.driver.host": _LOCALHOST,
    "spark.driver.bindAddress": _LOCALHOST,
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": str(2 * (os.cpu_count() or 1)),
}

_PRIVATE = {"spark.authenticate": "true", "spark.io.encryption.enabled": "true"}
"""Where driver and executors are of one machine and make up a secret; a cluster has to be given one."""

_making = Lock()


def session_factory(session: SparkSession | None, conf: Mapping[str, str]) -> Callable[[], SparkSession]:
    """What gives a run its session when it first needs one. `conf` is laid over a local one's own."""

    def make() -> SparkSession:
        if session is not None:
            return session
        with _making:
            forget_dead_session()
            return SparkSession.getActiveSession() or _made(conf)

    return make


def slots(session: SparkSession | None, conf: Mapping[str, str]) -> int:
    """How many tasks can run at once. Starts nothing: without a session, as a local one will have."""
    session = session or SparkSession.getActiveSession()
    if session is not None:
        try:
            return int(session.sparkContext.defaultParallelism)
        except PySparkException:  # Spark Connect has no context, and does not tell
            return int(session.conf.get("spark.default.parallelism", str(os.cpu_count() or 1)) or 1)
    master = conf.get(MASTER, "local[*]")
    threads = master.removeprefix("local[").partition("]")[0].partition(",")[0]
    return int(threads) if threads.isdigit() else os.cpu_count() or 1


def end_started(within_s: float) -> None:
    """Ends the JVM that this process has started, if it has one: in order if that takes no longer, else the hard way.

    In order it ends by itself when this process does. But it waits for every client of Kafka, and these wait
    for answers.
    """
    jvm = getattr(SparkContext._gateway, "proc", None)
    if jvm is None:
        return
    with suppress(OSError):
        jvm.stdin.close()
    try:
        jvm.wait(within_s)
    except subprocess.TimeoutExpired:
        jvm.kill()


def java_options(own: str, conf: Mapping[str, str]) -> str:
    """`own` and then those of `conf`: of two that contradict each other, Java takes the last one."""
    return f"{own} {conf.get(JAVA_OPTIONS, '')}".strip()


def _made(conf: Mapping[str, str]) -> SparkSession:
    if "PYSPARK_GATEWAY_PORT" in os.environ or "SPARK_REMOTE" in os.environ:
        return _get_or_create(conf)
    local = conf.get(MASTER, "local").partition("[")[0] == "local"
    merged = {**(_PRIVATE if local else {}), **_LOCAL_CONF, **conf}
    merged[JAVA_OPTIONS] = java_options(f"-Dlog4j2.configurationFile={_QUIET.as_uri()} {COMPILES_LITTLE}", conf)
    home = str(java_home(find_java()))
    # PySpark starts by scripts for bash, which has to be found also where the PATH is a short one.
    path = os.pathsep.join(filter(None, (os.environ.get("PATH"), os.defpath)))
    purge_delay = os.environ.get("MIMALLOC_PURGE_DELAY", PURGE_DELAY_MS)
    variables = _environment(JAVA_HOME=home, PYSPARK_PYTHON=sys.executable, PATH=path, MIMALLOC_PURGE_DELAY=purge_delay)
    folders = _private_folders(merged)
    # Spark asks for the address of the machine's name before it reads its settings, and some machines have none.
    address = {"SPARK_LOCAL_IP": os.environ.get("SPARK_LOCAL_IP", _LOCALHOST)} if local else {}
    with variables, _environment(SPARK_LOCAL_DIRS=",".join(folders), **address), _interrupts_held():
        session = _get_or_create(merged)
    for folder in folders:
        # The JVM deletes its own files when it ends, and after them those that are marked so.
        session.sparkContext._jvm.java.io.File(folder).deleteOnExit()
    return session


def _private_folders(conf: Mapping[str, str]) -> list[str]:
    """A new folder of mode 700 in each folder that Spark is configured to use, as Spark's own are readable for all."""
    given = os.environ.get("SPARK_LOCAL_DIRS") or conf.get(LOCAL_FOLDERS) or tempfile.gettempdir()
    try:
        return [tempfile.mkdtemp(prefix="lithify-spark-", dir=place.strip()) for place in given.split(",")]
    except OSError as error:
        raise EngineUnavailableError(
            f"{error.filename}: Spark can keep nothing there: {error.strerror}",
            hint=f"name another folder with --spark-conf {LOCAL_FOLDERS}=FOLDER",
        ) from error


def _get_or_create(conf: Mapping[str, str]) -> SparkSession:
    builder = SparkSession.builder
    for name, value in conf.items():
        builder = builder.config(name, value)
    try:
        return cast("SparkSession", builder.getOrCreate())
    except LithifyError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:300]
        raise EngineUnavailableError(
            f"Spark did not start: {reason}", hint="`lithify doctor` shows what is missing"
        ) from error


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Delays an interrupt until Spark has started, or its JVM would never end.

    PySpark would delete the file in which the JVM writes its port; the JVM then neither continues nor ends.
    The handler that PySpark sets goes as well: it calls the JVM in the middle of another call, which
    fails loudly, and code that runs a job here cancels it when interrupted.
    """
    if current_thread() is not main_thread():
        yield
        return
    held: list[int] = []

    def hold(number: int, _frame: object) -> None:
        held.append(number)

    before = signal.signal(signal.SIGINT, hold)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if held:
        raise KeyboardInterrupt


@contextmanager
def _environment(**values: str) -> Iterator[None]:
    """Environment variables for as long as Spark starts: what else runs here keeps its own."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
