"""The Spark session of a run: the given or active one, else a local one that is created once.

given or active ──► that one   spark-submit, Spark Connect ──► theirs, by `getOrCreate`
else ──► local[*], little logging, no web UI, in a JVM that `launch.py` starts, or has started already
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from threading import Lock
from typing import cast
from weakref import WeakSet

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lithify.errors import LithifyError
from lithify.model.settings.secrets import keep
from lithify.spark.session.ended_session import end_quietly, forget_dead_session
from lithify.spark.session.launch import OTHER_GATEWAYS, interrupts_held, is_local, launched, own_settings, pythons
from lithify.spark.session.reasons import MASTER, start_failure
from lithify.spark.session.workers import check_workers, trust_workers

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
                if active is None and SparkSession._instantiatedSession is not None:  # another thread has started it
                    active = _started(conf)
                elif active is None:
                    starts(0, 1)
                    active = _started(conf)
                    starts(1, 1)
                usable = active
        check_workers(usable)
        _keep_secrets(usable)
        return usable

    return make


def _keep_secrets(session: SparkSession) -> None:
    """The secrets among its settings, even if its owner has configured them: once, as each is a call of its JVM."""
    if session not in _kept:
        with suppress(PySparkException, Py4JError):  # what the session has to do next says what is wrong with it
            keep(session.conf.getAll)
            _kept.add(session)


def slots(session: SparkSession | None, conf: Mapping[str, str]) -> int:
    """The number of tasks that can run at once. Starts no session: without one, it is a local one's by `conf`."""
    session = session or SparkSession.getActiveSession()
    if session is not None:
        try:
            return int(session.sparkContext.defaultParallelism)
        except PySparkException:  # Spark Connect has no context
            return int(session.conf.get("spark.default.parallelism", str(os.cpu_count() or 1)) or 1)
    master = conf.get(MASTER, "local[*]")
    threads = master.removeprefix("local[").partition("]")[0].partition(",")[0]
    return int(threads) if threads.isdigit() else os.cpu_count() or 1


def one_machine(session: SparkSession | None, conf: Mapping[str, str]) -> bool:
    """Whether all tasks are known to run on the driver's machine. Starts no session, as `slots` does not."""
    session = session or SparkSession.getActiveSession()
    if session is None:
        return is_local(conf) and not any(name in os.environ for name in OTHER_GATEWAYS)
    try:
        return str(session.sparkContext.master).startswith("local[")
    except PySparkException:  # Spark Connect has no context
        return False


def _started(conf: Mapping[str, str]) -> SparkSession:
    if any(name in os.environ for name in OTHER_GATEWAYS):
        return _get_or_create(conf, {})
    with interrupts_held() as held:
        if SparkContext._gateway is not None:  # the JVM of a session that was stopped, or did not start
            return _get_or_create(own_settings(conf), pythons(conf))
        jvm = launched(conf)
        try:
            session = _get_or_create(jvm.settings, jvm.gateway(held))
        finally:
            if SparkContext._gateway is None:
                jvm.end()
            else:
                SparkContext._gateway.proc = jvm.process
                with suppress(Py4JError, OSError):  # it has ended meanwhile
                    _delete_at_exit(jvm.folders)
        end_quietly(session.sparkContext)
        if is_local(conf):
            trust_workers(session)
    return session


def _delete_at_exit(folders: Sequence[str]) -> None:
    """At exit the JVM deletes Spark's files first and then those registered here, the last of them first."""
    for place in folders:
        SparkContext._jvm.java.io.File(place).deleteOnExit()


def _get_or_create(conf: Mapping[str, str], variables: Mapping[str, str]) -> SparkSession:
    builder = SparkSession.builder
    for name, value in conf.items():
        builder = builder.config(name, value)
    try:
        with _environment(**variables):
            return cast("SparkSession", builder.getOrCreate())
    except LithifyError:
        raise
    except Exception as error:
        raise start_failure(error, conf) from error


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
