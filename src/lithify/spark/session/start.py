"""The Spark session of a run: the given or active one, else a local one that is created once.

given or active ──► that one   spark-submit, Spark Connect ──► theirs, by `getOrCreate`
else ──► local[*], little logging, no web UI, on a Java that `java.py` finds

A local session encrypts its files in folders that only this user can read, and its processes authenticate
each other (docs/security.md).
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock, current_thread, main_thread
from typing import cast
from weakref import WeakSet

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lithify.errors import EngineUnavailableError, LithifyError
from lithify.model.settings.secrets import keep
from lithify.spark.session.ended_session import end_quietly, forget_dead_session
from lithify.spark.session.java import find_java, java_home
from lithify.spark.session.masters import check_master
from lithify.spark.session.reasons import MASTER, start_failure
from lithify.spark.session.spark_home import SPARK_HOME, made_without_zips
from lithify.spark.session.workers import check_workers, trust_workers

JAVA_OPTIONS = "spark.driver.extraJavaOptions"
COMPILES_LITTLE = "-XX:TieredStopAtLevel=1"
"""In rounds the JVM only passes blocks to and from Python; optimising that code took longer than running it. A
first round of 10 M records took 17 instead of 27 CPU-seconds with this, later ones 9 instead of 11."""
COMPILES_WELL = "-XX:TieredStopAtLevel=4"
"""Java's default, for sessions in which the JVM processes records itself."""
PURGE_DELAY_MS = "60000"
"""After this time a Python worker returns Arrow's unused memory to the system. With Arrow's default of a second it
returns memory between two row groups and gets it again, which took a fifth of the CPU time of a round."""
LOCAL_FOLDERS = "spark.local.dir"
_QUIET = Path(__file__).with_name("log4j2.properties")

_LOCALHOST = "127.0.0.1"
_OWN_CONF = {
    MASTER: "local[*]",
    "spark.app.name": "lithify",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.adaptive.enabled": "false",  # plans every stage anew; how many tasks a round has, Lithify decides
    "spark.buffer.pageSize": "4m",  # by default 32 MiB here, which each table that is sent to all tasks would fill
    "spark.sql.shuffle.partitions": str(2 * (os.cpu_count() or 1)),
}

_PRIVATE = {
    "spark.authenticate": "true",
    "spark.io.encryption.enabled": "true",
    "spark.driver.host": _LOCALHOST,
    "spark.driver.bindAddress": _LOCALHOST,
}
"""For local masters, where Spark generates the secret; a cluster needs a configured one, and must reach the driver."""

TellStart = Callable[[int, int], None]
"""Called with (0, 1) before a session is started, and with (1, 1) once it has started."""

_making = Lock()
_kept = WeakSet[SparkSession]()


def session_factory(
    session: SparkSession | None, conf: Mapping[str, str], starts: TellStart = lambda _done, _total: None
) -> Callable[[], SparkSession]:
    """A function that returns the session of a run, or starts it. `conf` overrides settings of a local one.

    If it starts one, it calls `starts` before and after. It raises `EngineUnavailableError` or `JavaNotFoundError`.
    """

    def make() -> SparkSession:
        if session is not None:
            usable = session
        else:
            with _making:
                forget_dead_session()
                active = SparkSession.getActiveSession()
                if active is None:
                    starts(0, 1)
                    active = _started(conf)
                    starts(1, 1)
                usable = active
        check_workers(usable)
        _keep_secrets(usable)
        return usable

    return make


def _keep_secrets(session: SparkSession) -> None:
    """Those of its settings, also of a session that its owner has configured: once, as each is a call of its JVM."""
    if session not in _kept:
        with suppress(PySparkException, Py4JError):  # what the session has to do next says what is wrong with it
            keep(session.conf.getAll)
            _kept.add(session)


def slots(session: SparkSession | None, conf: Mapping[str, str]) -> int:
    """The number of tasks that can run at once. Starts no session: without one, that of a local one by `conf`."""
    session = session or SparkSession.getActiveSession()
    if session is not None:
        try:
            return int(session.sparkContext.defaultParallelism)
        except PySparkException:  # Spark Connect has no context
            return int(session.conf.get("spark.default.parallelism", str(os.cpu_count() or 1)) or 1)
    master = conf.get(MASTER, "local[*]")
    threads = master.removeprefix("local[").partition("]")[0].partition(",")[0]
    return int(threads) if threads.isdigit() else os.cpu_count() or 1


def java_options(own: str, conf: Mapping[str, str]) -> str:
    """`own` followed by the Java options in `conf`: of two that conflict, Java uses the last."""
    return f"{own} {conf.get(JAVA_OPTIONS, '')}".strip()


def own_settings(conf: Mapping[str, str]) -> dict[str, str]:
    """Those of a session that Lithify starts: its own, then `conf`."""
    return {**(_PRIVATE if _is_local(conf) else {}), **_OWN_CONF, **conf}


def _is_local(conf: Mapping[str, str]) -> bool:
    return conf.get(MASTER, "local").partition("[")[0] == "local"


def _started(conf: Mapping[str, str]) -> SparkSession:
    if "PYSPARK_GATEWAY_PORT" in os.environ or "SPARK_REMOTE" in os.environ:
        return _get_or_create(conf)
    local, merged = _is_local(conf), own_settings(conf)
    check_master(merged[MASTER])
    merged[JAVA_OPTIONS] = java_options(f"-Dlog4j2.configurationFile={_QUIET.as_uri()} {COMPILES_LITTLE}", conf)
    java = str(java_home(find_java()))
    # PySpark starts the JVM by bash scripts, so bash must be found even if PATH is short.
    path = os.pathsep.join(filter(None, (os.environ.get("PATH"), os.defpath)))
    purge_delay = os.environ.get("MIMALLOC_PURGE_DELAY", PURGE_DELAY_MS)
    # PySpark's scripts run the driver's Python as well, and that of workers may be none of this machine's.
    pythons = {"PYSPARK_DRIVER_PYTHON": sys.executable, "PYSPARK_PYTHON": _python_of_workers(local)}
    variables = _environment(JAVA_HOME=java, PATH=path, MIMALLOC_PURGE_DELAY=purge_delay, **pythons)
    folders = _private_folders(merged)
    # Spark resolves the host name before it reads its settings, and some hosts cannot be resolved.
    address = {"SPARK_LOCAL_IP": os.environ.get("SPARK_LOCAL_IP", _LOCALHOST)} if local else {}
    spark_home = made_without_zips(Path(folders[0])) if local else []
    home = {SPARK_HOME: str(spark_home[0])} if spark_home else {}
    with variables, _environment(SPARK_LOCAL_DIRS=",".join(folders), **address, **home), _interrupts_held():
        session = _get_or_create(merged)
    end_quietly(session.sparkContext)
    if local:
        trust_workers(session)
    for place in (*folders, *spark_home):
        # At exit the JVM deletes Spark's files first and then those registered here, the last of them first.
        session.sparkContext._jvm.java.io.File(str(place)).deleteOnExit()
    return session


def _python_of_workers(local: bool) -> str:
    """This one, unless another is set for a cluster."""
    return sys.executable if local else os.environ.get("PYSPARK_PYTHON") or sys.executable


def _private_folders(conf: Mapping[str, str]) -> list[str]:
    """Creates a folder of mode 700 in each of Spark's local folders, as those of Spark are readable by all."""
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
        raise start_failure(error, conf) from error


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Delays SIGINT until Spark has started, else its JVM would never end.

    PySpark would delete the file to which the JVM writes its port; the JVM then neither continues nor exits.
    Also removes the signal handler that PySpark sets: it calls the JVM during another call, which fails; code
    that runs a job here cancels it when interrupted.
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
    except Exception as error:  # a Ctrl-C at a terminal also ends the scripts that start the JVM
        if held:
            raise KeyboardInterrupt from error
        raise
    finally:
        signal.signal(signal.SIGINT, before)
    if held:
        raise KeyboardInterrupt


@contextmanager
def _environment(**values: str) -> Iterator[None]:
    """Sets environment variables while Spark starts, and restores them."""
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
