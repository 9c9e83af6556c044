"""A job that waits for executors that never come ends, and one whose executors come late does not."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from pyspark.status import SparkStageInfo

from lithify.errors import EngineUnavailableError
from lithify.ports.engine import WAITS
from lithify.spark.session.executors import LOOKS_WITHOUT, REPORTED_AFTER_LOOKS, Executors, PythonWorkers


def executors(master, counts):
    """As the driver counts them, itself among them."""
    found = iter(counts)
    status = SimpleNamespace(size=lambda: next(found))
    sc = SimpleNamespace(getExecutorMemoryStatus=lambda: status)
    return Executors(SimpleNamespace(master=master, _jsc=SimpleNamespace(sc=lambda: sc)))


@pytest.mark.parametrize("master", ["spark://host:7077", "local-cluster[1,1,1024]"])
def test_the_wait_for_executors_that_exit_at_once_ends(master):
    looked = executors(master, [1] * LOOKS_WITHOUT)
    for _ in range(LOOKS_WITHOUT - 1):
        looked.look()
    with pytest.raises(EngineUnavailableError, match=r"no executor has registered.*for 300 s.*stderr.*nothing was"):
        looked.look()


def test_one_that_came_begins_the_count_anew():
    looked = executors("spark://host:7077", [*[1] * (LOOKS_WITHOUT - 1), 2, *[1] * (LOOKS_WITHOUT - 1)])
    for _ in range(2 * LOOKS_WITHOUT - 1):
        looked.look()


@pytest.mark.parametrize("master", ["local", "local[*]", "local[2, 3]"])
def test_a_local_master_has_none_and_is_not_asked(master):
    assert executors(master, []).look()


@pytest.mark.parametrize("master", ["yarn", "k8s://https://h:1"])
def test_masters_with_limits_of_their_own_end_the_wait_themselves(master, told):
    looked = executors(master, [1] * (2 * LOOKS_WITHOUT))
    for _ in range(2 * LOOKS_WITHOUT):
        assert not looked.look()
    assert told() == [("WARNING", f"waiting for executors: {master} has not provided any")]


@pytest.fixture
def told(caplog):
    """Returns the levels and texts of what was told."""
    caplog.set_level("INFO", WAITS.name)
    return lambda: [(record.levelname, record.getMessage()) for record in caplog.records]


def test_a_wait_is_told_once_at_each_end(told):
    waited = REPORTED_AFTER_LOOKS + 3
    looked = executors("spark://host:7077", [*[1] * waited, 2, *[1] * (2 * REPORTED_AFTER_LOOKS), 2])
    for _ in range(REPORTED_AFTER_LOOKS - 1):
        looked.look()
    assert told() == []
    looked.look()
    began = (
        "WARNING",
        "waiting for executors: spark://host:7077 has not provided any; the job ends after 300 s without executors",
    )
    assert told() == [began]
    for _ in range(3 + 1 + 2 * REPORTED_AFTER_LOOKS + 1):
        looked.look()
    assert told() == [began, ("INFO", f"executors have registered, after {waited}.0 s")]


@pytest.mark.parametrize("master", ["spark://host:7077", "yarn"])
def test_no_wait_is_told_where_executors_are_there_or_come_soon(told, master):
    looked = executors(master, [*[1] * (REPORTED_AFTER_LOOKS - 1), *[2] * (2 * REPORTED_AFTER_LOOKS)])
    for _ in range(3 * REPORTED_AFTER_LOOKS - 1):
        looked.look()
    assert told() == []


class Context:
    """Of an application, as weak references need it."""


def stage(tasks, running, done=0):
    return SparkStageInfo(0, 0, "", tasks, running, done, 0)


def test_first_tasks_that_take_long_are_said_to_start_python_workers(told):
    context = Context()
    workers = PythonWorkers(context)
    workers.look([])  # nothing runs yet
    for _ in range(REPORTED_AFTER_LOOKS + 2):
        workers.look([stage(6, 2), stage(2, 0)])
    workers.look([stage(6, 2, done=1)])
    for _ in range(2 * REPORTED_AFTER_LOOKS):
        PythonWorkers(context).look([stage(8, 8)])  # a later job has them already
    assert told() == [
        ("INFO", "waiting for the first task to end: 2 of 8 tasks are starting Python workers"),
        ("INFO", f"the first task has ended, after {REPORTED_AFTER_LOOKS + 2}.0 s"),
    ]


def test_first_tasks_that_end_soon_are_not_told(told):
    workers = PythonWorkers(Context())
    for done in [*[0] * (REPORTED_AFTER_LOOKS - 1), 1, *[1] * REPORTED_AFTER_LOOKS]:
        workers.look([stage(8, 2, done)])
    assert told() == []
