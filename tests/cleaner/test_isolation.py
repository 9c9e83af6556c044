"""One bad topic, one dead thread, one look that hangs: the others go on, and a cleaner reports it (C50)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from lithify.model.names import TopicName
from lithify.reports.events import CleanerEvent, EventKind
from lithify.reports.overview import Standing
from lithify.service.look.overview import StatusWatch
from lithify.service.look.quarantine import failing_logs
from support.faults.ports import call_name
from support.topics.cleaner_lake import CleanerLake

RAW = (
    TypeError("'NoneType' object is not subscriptable"),
    RecursionError("maximum recursion depth exceeded"),
    MemoryError(),
    KeyError("properties"),
    ZeroDivisionError("division by zero"),
    OSError(5, "Input/output error"),
)
"""What damaged bytes, a defect or a machine in trouble raise where no code turns it into an error of Lithify's."""


@dataclass(slots=True)
class BadFor:
    """A port that fails for one topic where it is called by `method`, and serves the others."""

    real: Any
    topic: TopicName
    error: Exception | None = None
    method: str = ""
    called: list[str] = field(default_factory=list)
    """With what it was called about the topic."""

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.real, name)
        if not callable(found):
            return found

        def call(*given: Any, **more: Any) -> Any:
            if any(self._is_bad(each) for each in given):
                self.called.append(call_name(name, given))
                if self.called[-1] == self.method and self.error is not None:
                    raise self.error
            return found(*given, **more)

        return call

    def _is_bad(self, given: object) -> bool:
        if isinstance(given, Sequence) and not isinstance(given, str):
            return any(self._is_bad(each) for each in given)
        return self.topic in (given, getattr(given, "name", None)) or str(self.topic) in str(given)


@pytest.fixture
def lake() -> CleanerLake:
    return CleanerLake()


@pytest.fixture
def bad(lake: CleanerLake) -> TopicName:
    """Sorts before the good one."""
    return lake.topic("bad")


@pytest.fixture
def good(lake: CleanerLake) -> TopicName:
    return lake.topic("good")


def compacted(events: Sequence[CleanerEvent]) -> set[str | None]:
    return {event.topic for event in events if event.kind is EventKind.ROUND}


def errors(events: Sequence[CleanerEvent]) -> list[str]:
    return [str(event.facts["error"]) for event in events if "error" in event.facts]


def calls_about(lake: CleanerLake, bad: TopicName) -> list[tuple[str, str]]:
    """Every call about a topic that a cleaner makes, as (port, method)."""
    spies = {port: BadFor(getattr(lake.warehouse, port), bad) for port in ("store", "files")}
    alpha = lake.cleaner("spy", warehouse=replace(lake.warehouse, **spies))
    lake.append(bad, "a=1 a=2")
    for _ in range(300):
        alpha.work()
        lake.wait()
    alpha.leases.leave()
    return [(port, method) for port, spy in spies.items() for method in dict.fromkeys(spy.called)]


@pytest.mark.parametrize("raw", RAW, ids=lambda raw: type(raw).__name__)
def test_whatever_fails_with_one_topic_the_others_go_on_and_it_is_reported(
    lake: CleanerLake, bad: TopicName, good: TopicName, raw: Exception
) -> None:
    """C50: at every call that a cleaner makes about a topic, for every kind of error."""
    calls = calls_about(lake, bad)
    assert {("store", "load"), ("store", "segments"), ("store", "commit")} <= set(calls)
    for port, method in calls:
        lake.append(bad, "a=1 a=2")
        lake.append(good, "a=1 a=2")
        struck = BadFor(getattr(lake.warehouse, port), bad, raw, method)
        alpha = lake.cleaner(f"{port}-{method}", warehouse=replace(lake.warehouse, **{port: struck}))
        for _ in range(6):
            alpha.work()
            lake.wait()
        assert alpha.cleaner.looks == 6, (method, errors(alpha.events))
        assert "good" in compacted(alpha.events), method
        told = [text for text in errors(alpha.events) if type(raw).__name__ in text or str(raw) in text]
        if method in struck.called and "bad" not in compacted(alpha.events):
            assert told, (method, alpha.events)
            assert all(type(raw).__name__ in text and "test_isolation.py" in text for text in told), told
        struck.error = None
        for _ in range(200):  # whatever it waits for, half an hour at most
            alpha.work()
            lake.wait()
        assert lake.text(bad).split() == ["a=2"], method
        alpha.leases.leave()


@pytest.mark.parametrize("method", ["load_at", "segments", "get_document failures"])
@pytest.mark.parametrize("raw", RAW, ids=lambda raw: type(raw).__name__)
def test_status_and_quarantine_show_a_topic_that_cannot_be_read_among_the_others(
    lake: CleanerLake, bad: TopicName, good: TopicName, method: str, raw: Exception
) -> None:
    lake.append(bad, "a=1 a=2")
    lake.append(good, "a=1 a=2")
    warehouse = replace(lake.warehouse, store=BadFor(lake.warehouse.store, bad, raw, method))

    shown = {topic.topic: topic for topic in StatusWatch(warehouse).overview().topics}

    assert shown["good"].state is Standing.DUE
    assert shown["bad"].state is Standing.UNREADABLE
    assert type(raw).__name__ in str(shown["bad"].error)
    if method == "get_document failures":
        (unreadable,) = failing_logs(warehouse).unreadable
        assert type(raw).__name__ in unreadable.error


def test_a_look_that_fails_as_a_whole_is_reported_and_the_next_one_is_tried(
    lake: CleanerLake, good: TopicName, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.append(good, "a=1 a=2")
    alpha = lake.cleaner()

    def broken() -> Any:
        raise TypeError("a row that is none")

    with monkeypatch.context() as patched:
        patched.setattr(lake.warehouse.store, "change_tokens", broken)
        alpha.work()
        lake.wait()
    (told,) = errors(alpha.events)
    assert "TypeError: a row that is none" in told and "test_isolation.py" in told
    assert compacted(alpha.work()) == {"good"}


def test_leases_that_fail_in_an_unforeseen_way_do_not_end_the_looks(
    lake: CleanerLake, good: TopicName, monkeypatch: pytest.MonkeyPatch
) -> None:
    alpha = lake.cleaner()

    def broken(*_: Any) -> Any:
        raise ValueError("not a number")

    with monkeypatch.context() as patched:
        patched.setattr(alpha.leases, "take", broken)
        alpha.work()
        lake.wait()
    assert "ValueError" in errors(alpha.events)[0]
    lake.append(good, "a=1 a=2")
    assert compacted(alpha.work()) == {"good"}
