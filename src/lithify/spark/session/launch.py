"""Starts the JVM of a session, by Spark's own script as PySpark does, but before PySpark is imported.

    begin_early ──► the JVM starts beside imports ──► launched ──► PySpark connects (`start.py`)
         └─ nobody takes it ──► it is ended with this process

The JVM reads its stdin, a pipe whose other end only this process has: it ends with this process, killed or not.
A local session encrypts its files in folders that only this user can read, and its processes authenticate
each other (docs/understand/security.md).
"""

from __future__ import annotations

import atexit
import os
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Lock, current_thread, main_thread

from lithify.errors import EngineUnavailableError, LithifyError
from lithify.spark.session.class_archive import discard_outdated, make_at_exit
from lithify.spark.session.java import find_java
from lithify.spark.session.java_home import is_kept, java_home
from lithify.spark.session.masters import check_master
from lithify.spark.session.reasons import MASTER, start_failure
from lithify.spark.session.spark_home import SPARK_HOME, installed_spark, made_without_zips
from lithify.waits.deadline import Deadline

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
OTHER_GATEWAYS = ("PYSPARK_GATEWAY_PORT", "SPARK_REMOTE")
"""Environment variables of a Spark that runs already: by `spark-submit`, or a Spark Connect."""
_SUBMIT_OPTIONS = "SPARK_SUBMIT_OPTS"
_QUIET = Path(__file__).with_name("log4j2.properties")
_LOOK_S = 0.02
_PREFIX = "lithify-spark-"
STARTS_WITHIN_S = 600.0
"""A JVM that has said nothing for as long hangs; under heavy load one has taken half a minute."""
LEFT_S = 86400.0
"""An empty folder of that age is unused: a JVM that starts takes less, and a session has files."""

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


@dataclass(frozen=True, slots=True)
class Jvm:
    """A JVM that starts, or has started. `settings` are its session's."""

    process: subprocess.Popen[bytes]
    settings: Mapping[str, str]
    folders: tuple[str, ...]

    def gateway(self, held: Sequence[int] = ()) -> dict[str, str]:
        """The environment variables by which PySpark connects to it, once it has said where it listens.

        An interrupt that is `held` meanwhile ends it.
        """
        said, pause, deadline = _address_file(self.folders), Event(), Deadline(STARTS_WITHIN_S)
        while not said.exists():
            if held:
                self.end()
                raise KeyboardInterrupt
            if self.process.poll() is not None:
                self.end()
                raise start_failure(RuntimeError("JAVA_GATEWAY_EXITED"), self.settings)
            try:
                pause.wait(min(_LOOK_S, deadline.left_s()))
            except TimeoutError:
                self.end()
                raise EngineUnavailableError(
                    f"Spark did not start: its JVM was stopped after {STARTS_WITHIN_S:.0f} s without output",
                    hint="run it again; if that fails too, check the version of Java with `lithify doctor`",
                ) from None
        port, length = struct.unpack_from(">ii", content := said.read_bytes())
        said.unlink()
        secret = content[8 : 8 + length].decode()
        return {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret, **pythons(self.settings)}

    def end(self) -> None:
        """Ends it before it has a session."""
        self.process.kill()
        self.process.wait()
        _delete(self.folders)


@dataclass(slots=True)
class _Early:
    lock: Lock = field(default_factory=Lock)
    begun: tuple[Mapping[str, str], Jvm] | None = None


_early = _Early()


def is_local(conf: Mapping[str, str]) -> bool:
    """Whether a session with these settings runs on this machine alone."""
    return conf.get(MASTER, "local").partition("[")[0] == "local"


def pythons(conf: Mapping[str, str]) -> dict[str, str]:
    """The environment variables by which Spark finds Python: this one, unless another is set for a cluster's workers.

    PySpark's scripts run the driver's Python as well, and the workers' Python may not be on this machine.
    """
    of_workers = sys.executable if is_local(conf) else os.environ.get("PYSPARK_PYTHON") or sys.executable
    return {"PYSPARK_DRIVER_PYTHON": sys.executable, "PYSPARK_PYTHON": of_workers}


def java_options(own: str, conf: Mapping[str, str]) -> str:
    """`own` followed by the Java options in `conf`: of two that conflict, Java uses the last."""
    return f"{own} {conf.get(JAVA_OPTIONS, '')}".strip()


def own_settings(conf: Mapping[str, str]) -> dict[str, str]:
    """The settings of a session that Lithify starts: its own, then `conf`."""
    return {**(_PRIVATE if is_local(conf) else {}), **_OWN_CONF, **conf}


def begin_early(conf: Mapping[str, str]) -> None:
    """Starts the JVM of the local session that is sure to be asked for next, unless PySpark may have one already.

    What is wrong with it is said when the session is asked for.
    """
    if "pyspark" in sys.modules or not is_local(conf) or any(name in os.environ for name in OTHER_GATEWAYS):
        return
    with interrupts_held(), _early.lock:
        if _early.begun is None:
            try:
                _early.begun = dict(conf), _started(conf)
            except (LithifyError, OSError):
                return
            atexit.register(_end_early)


def launched(conf: Mapping[str, str]) -> Jvm:
    """A JVM for a session with these settings: the one that began early, else a new one."""
    with _early.lock:
        begun, _early.begun = _early.begun, None
    if begun is not None:
        if begun[0] == conf and begun[1].process.poll() is None:
            return begun[1]
        begun[1].end()
    return _started(conf)


def _end_early() -> None:
    with _early.lock:
        begun, _early.begun = _early.begun, None
    if begun is not None:
        begun[1].end()


def _started(conf: Mapping[str, str]) -> Jvm:
    local, settings = is_local(conf), own_settings(conf)
    check_master(settings[MASTER])
    settings[JAVA_OPTIONS] = java_options(f"-Dlog4j2.configurationFile={_QUIET.as_uri()} {COMPILES_LITTLE}", conf)
    java = find_java()
    home = java_home(java)
    folders = _private_folders(settings)
    variables = {
        **pythons(conf),
        "JAVA_HOME": str(home),
        # The script needs bash and its programs, which must be found even if PATH is short.
        "PATH": os.pathsep.join(filter(None, (os.environ.get("PATH"), os.defpath))),
        "MIMALLOC_PURGE_DELAY": os.environ.get("MIMALLOC_PURGE_DELAY", PURGE_DELAY_MS),
        "SPARK_LOCAL_DIRS": ",".join(folders),
        "SPARK_CONNECT_MODE": "0",
        "_PYSPARK_DRIVER_CONN_INFO_PATH": str(_address_file(folders)),
    }
    if local:
        # Spark resolves the host name before it reads its settings, and some hosts cannot be resolved.
        variables["SPARK_LOCAL_IP"] = os.environ.get("SPARK_LOCAL_IP", _LOCALHOST)
    spark = made_without_zips(home) if local and is_kept(home) else None
    if spark is not None:
        variables[SPARK_HOME] = str(spark)
        discard_outdated(home, java.executable)
    try:
        process = _run(spark or Path(os.environ.get(SPARK_HOME) or installed_spark()), settings, variables)
    except (OSError, ValueError) as error:  # also of PYSPARK_SUBMIT_ARGS, which a quote may leave open
        _delete(folders)
        raise start_failure(error, settings) from error
    if spark is not None:
        options = f"{os.environ.get(_SUBMIT_OPTIONS, '')} {settings[JAVA_OPTIONS]}"
        make_at_exit(home, java.executable, process.pid, options)
    return Jvm(process, settings, tuple(folders))


def _run(spark: Path, settings: Mapping[str, str], variables: Mapping[str, str]) -> subprocess.Popen[bytes]:
    of_settings = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    rest = shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell"))
    return subprocess.Popen(
        [spark / "bin" / "spark-submit", *of_settings, *rest],
        stdin=subprocess.PIPE,
        env={**os.environ, **variables},
        preexec_fn=_ignore_interrupts,  # noqa: PLW1509 - as PySpark does; a Ctrl-C is for this process
    )


@contextmanager
def interrupts_held() -> Iterator[list[int]]:
    """Delays SIGINT until what starts can be ended: those that came are in the list.

    Also removes the signal handler that PySpark sets: it calls the JVM during another call, which fails; code
    that runs a job here cancels it when interrupted.
    """
    held: list[int] = []
    if current_thread() is not main_thread():
        yield held
        return

    def hold(number: int, _frame: object) -> None:
        held.append(number)

    before = signal.signal(signal.SIGINT, hold)
    try:
        yield held
    except Exception as error:  # a Ctrl-C at a terminal also ends the scripts that start the JVM
        if held:
            raise KeyboardInterrupt from error
        raise
    finally:
        signal.signal(signal.SIGINT, before)
    if held:
        raise KeyboardInterrupt


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _delete(folders: Iterable[str]) -> None:
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


def _address_file(folders: Sequence[str]) -> Path:
    return Path(folders[0], "gateway")


def _private_folders(conf: Mapping[str, str]) -> list[str]:
    """Creates a folder of mode 700 in each of Spark's local folders, as Spark's own are readable by all."""
    given = os.environ.get("SPARK_LOCAL_DIRS") or conf.get(LOCAL_FOLDERS)
    places = [place.strip() for place in given.split(",")] if given else [tempfile.gettempdir()]
    hint = f"give another folder with --spark-conf {LOCAL_FOLDERS}=FOLDER"
    if "," in places[0]:
        raise EngineUnavailableError(f"{places[0]}: Spark reads a folder with a comma in its name as two", hint=hint)
    try:
        folders = [tempfile.mkdtemp(prefix=_PREFIX, dir=place) for place in places]
    except OSError as error:
        raise EngineUnavailableError(
            f"{error.filename}: Spark cannot write there: {error.strerror}", hint=hint
        ) from error
    for folder in folders:
        _delete_left(Path(folder))
    return folders


def _delete_left(new: Path) -> None:
    """Deletes what programs left beside it that were ended before Spark had started: old folders that are empty."""
    for folder in new.parent.glob(f"{_PREFIX}*"):
        with suppress(OSError):  # it has files, or is another user's
            if new.stat().st_mtime - folder.stat().st_mtime > LEFT_S:
                folder.rmdir()
