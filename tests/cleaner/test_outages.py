"""An outage quarantines nothing, whatever is away and however long; when it is back everything is done (C31, C50)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from lithify.daemons.cleaner.event_reporter import LOOKS
from lithify.errors import Blame, DamagedError, EngineError, EngineUnavailableError, LithifyError, WarehouseError
from lithify.errors.defects import as_lithify_error
from lithify.model.names import LogId, TopicName
from lithify.reports.events import EventKind
from lithify.service.change.cut import delete_records
from support.topics.cleaner_lake import INTERVAL_MS, CleanerLake, OneCleaner

BACK_WITHIN_MS = 2 * 60_000 + INTERVAL_MS
"""What waits is tried every two minutes."""


def kinds(kind: type[LithifyError] = LithifyError) -> Iterator[type[LithifyError]]:
    yield kind
    for narrower in kind.__subclasses__():
        yield from kinds(narrower)


OUTAGES: list[Exception] = [
    *(
        kind("All masters are unresponsive! Giving up.")
        for kind in kinds()
        if kind.blames in (Blame.STORE, Blame.ENGINE)
    ),
    OSError(28, "No space left on device"),
    MemoryError(),
]


def test_every_kind_of_error_says_what_is_to_blame() -> None:
    """A kind that is added is decided here as well."""
    said: dict[Blame, set[str]] = {blame: set() for blame in Blame}
    for kind in kinds():
        said[kind.blames].add(kind.__name__)
    assert said[Blame.ENGINE] == {
        "UnusableEnvironmentError", "JavaNotFoundError", "ConnectorError", "EngineUnavailableError", "GatewayError",
    }  # fmt: skip
    assert said[Blame.STORE] == {
        "InsufficientSpaceError", "UnknownOutcomeError", "WarehouseError", "CoordinationError", "BrokerError",
    }  # fmt: skip
    assert {"ConflictError", "RoundAbandonedError", "UnknownTopicError", "PolicyError"} <= said[Blame.NONE]
    assert {"DamagedError", "AuditError", "EngineError", "DefectError"} <= said[Blame.LOG]


@pytest.fixture
def lake() -> CleanerLake:
    return CleanerLake()


@pytest.fixture
def topics(lake: CleanerLake) -> list[TopicName]:
    made = [lake.topic(name) for name in "abc"]
    for topic in made:
        lake.append(topic, "a=1 a=2")
    return made


def goes_by(lake: CleanerLake, cleaner: OneCleaner, ms: int) -> None:
    for _ in range(ms // INTERVAL_MS):
        cleaner.work()
        lake.wait()


def is_done(lake: CleanerLake, topics: list[TopicName]) -> bool:
    return [lake.text(topic) for topic in topics] == ["a=2"] * len(topics)


@pytest.mark.parametrize("error", OUTAGES, ids=lambda error: type(error).__name__)
def test_an_outage_of_the_engine_the_store_or_the_machine_quarantines_nothing(
    lake: CleanerLake, topics: list[TopicName], error: Exception
) -> None:
    lake.engine.job_fails = error
    alpha = lake.cleaner()
    hours = 8 if error is OUTAGES[0] else 1
    goes_by(lake, alpha, hours * 3_600_000)
    assert len(lake.engine.jobs) > 13 * hours
    assert alpha.told(EventKind.QUARANTINED) == []
    lake.engine.job_fails = None
    goes_by(lake, alpha, BACK_WITHIN_MS)
    assert is_done(lake, topics)


def test_rounds_that_need_no_engine_do_not_prove_that_it_is_there(lake: CleanerLake, topics: list[TopicName]) -> None:
    """Errors of the environment count only once others get through with the same means."""
    cut = lake.topic("cut")
    lake.engine.job_fails = EngineUnavailableError("Spark did not start")
    alpha = lake.cleaner()
    for _ in range(120):
        lake.append(cut, "a=1")
        delete_records(lake.warehouse, cut, 0, before=lake.state(cut).log(0).log_end_offset)
        goes_by(lake, alpha, 8 * INTERVAL_MS)
    assert {event.topic for event in alpha.told(EventKind.ROUND)} == {"cut"}
    assert alpha.told(EventKind.QUARANTINED) == []


@pytest.mark.parametrize("kind", [EngineUnavailableError, WarehouseError])
def test_what_fails_alone_while_others_get_through_is_quarantined(lake: CleanerLake, kind: type[LithifyError]) -> None:
    bad, good = lake.topic("bad"), lake.topic("good", min_cleanable_dirty_ratio=0)
    lake.append(bad, "a=1 a=2")
    lake.engine.fails[LogId(bad, 0)] = kind("a worker was killed")
    alpha = lake.cleaner()
    for _ in range(300):
        lake.append(good, "a=1 a=2")
        goes_by(lake, alpha, INTERVAL_MS)
    assert [event.topic for event in alpha.told(EventKind.QUARANTINED)] == ["bad"]


def test_what_the_log_itself_does_is_quarantined_also_when_it_is_alone(lake: CleanerLake) -> None:
    topic = lake.topic("bad")
    lake.append(topic, "a=1 a=2")
    lake.engine.fails[LogId(topic, 0)] = EngineError("a Spark job failed: ValueError: not a key")
    alpha = lake.cleaner()
    goes_by(lake, alpha, 3_600_000)
    assert len(alpha.told(EventKind.QUARANTINED)) == 1


@pytest.mark.parametrize("method", ["load", "get_document", "segments", "change_tokens"])
def test_a_store_that_is_away_when_topics_are_looked_at_makes_nothing_wait_for_long(
    lake: CleanerLake, topics: list[TopicName], monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    def away(*_: Any) -> Any:
        raise WarehouseError("s3://lake cannot be reached")

    alpha = lake.cleaner()
    with monkeypatch.context() as patched:
        patched.setattr(lake.warehouse.store, method, away)
        goes_by(lake, alpha, 3_600_000)
    assert alpha.told(EventKind.QUARANTINED) == []
    goes_by(lake, alpha, BACK_WITHIN_MS)
    assert is_done(lake, topics)


def test_an_outage_is_told_when_it_begins_seldom_while_it_goes_on_and_when_it_is_over(
    lake: CleanerLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: Any) -> Any:
        raise WarehouseError("the catalog cannot be reached")

    alpha = lake.cleaner()
    with monkeypatch.context() as patched:
        patched.setattr(lake.warehouse.store, "change_tokens", away)
        goes_by(lake, alpha, 25 * 60_000)
    assert len(alpha.told(EventKind.TROUBLE)) == 3
    goes_by(lake, alpha, 5 * INTERVAL_MS)
    (over,) = alpha.told(EventKind.RECOVERED)
    assert over.facts == {"what": LOOKS, "duration_ms": 25 * 60_000}


def test_damage_is_the_logs_own(lake: CleanerLake) -> None:
    assert DamagedError("1.parquet: the file is missing").blames is Blame.LOG
    assert as_lithify_error(OSError(5, "Input/output error"), "orders").blames is Blame.ENGINE
    assert as_lithify_error(TypeError("not a number"), "orders").blames is Blame.LOG


def test_a_log_that_ends_spark_each_time_fails_no_other_for_long(lake: CleanerLake, topics: list[TopicName]) -> None:
    """No log of its batch succeeds with it, which would be an outage of them all."""
    poison = lake.topic("poison")
    lake.append(poison, "a=1 a=2")
    real = lake.engine.open_round

    def ends_with_poison(logs: Any, *more: Any) -> Any:
        if any(log.id.topic == poison for log in logs):
            raise EngineUnavailableError("a Spark job failed: the JVM has gone")
        return real(logs, *more)

    lake.engine.open_round = ends_with_poison  # type: ignore[method-assign]
    alpha = lake.cleaner()
    goes_by(lake, alpha, 5 * 60_000)
    assert is_done(lake, topics)
