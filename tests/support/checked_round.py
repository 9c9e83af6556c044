"""A round, whatever happens on the way, held to the textbook (C14, C18, C20, C24, C41, C44).

plan ──► rewrite ──► others do something ──► commit ──► reports say which logs were changed
 │                        └─ a conflict: planned again ─┘            │
 └─► textbook: what the round leaves of each ◄───────────────────────┘
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from faults.injection import FaultyEngine, Injector
from lithify.errors import PolicyError
from lithify.model.log import TopicState
from lithify.model.report import RoundReport
from lithify.ports import Warehouse
from lithify.service.compact import RunRequest, compact
from support.checked_topic import NAME, CheckedTopic, Strike
from support.memory_topic import InterruptedEngine
from support.textbook_log import TextbookLog
from support.textbook_topic import PastRound, Segments, TextbookTopic


def check_round(
    topic: CheckedTopic,
    partitions: tuple[int, ...] | None = None,
    now_ms: int | None = None,
    race: Callable[[], object] | None = None,
    strike: Strike = None,
) -> bool:
    """A round; others do `race` between its rewrite and its commit, the first time."""
    attempt = _Attempt(topic, topic.model, topic.segments(), topic.place.clock.now_ms(), now_ms)
    version = topic.state.version
    interrupted = InterruptedEngine(topic.place.engine, lambda: attempt.raced(race), 1)  # type: ignore[arg-type]
    request = RunRequest(partitions, now_ms)
    reports: list[RoundReport] = []

    def act(warehouse: Warehouse) -> None:
        engine = interrupted if strike is None else FaultyEngine(interrupted, _injector_of(warehouse))
        reports.append(compact(warehouse, engine, NAME, request))  # type: ignore[arg-type]

    error, injector = topic.attempt(act, strike)
    struck = injector is not None and injector.struck
    if not topic.model.settings.compacts:
        assert type(error) is PolicyError or struck, error
        assert attempt.has_raced or topic.state.version == version
        return False
    if error is not None and not struck:
        raise error
    failed = [log for report in reports for log in report.logs if log.error is not None]
    assert struck or not failed, failed
    asked = tuple(range(len(attempt.model.logs))) if partitions is None else partitions
    landed = attempt.settle(asked, version)
    if error is None:
        attempt.check_quiet(set(asked) - landed - {log.partition for log in failed})
    return error is None and not failed


def _injector_of(warehouse: Warehouse) -> Injector:
    """The one that stands between a verb and its ports."""
    found = warehouse.store._injector  # type: ignore[attr-defined]
    assert isinstance(found, Injector)
    return found


@dataclass(slots=True)
class _Attempt:
    """A round under way: what it was planned on, and what others did meanwhile."""

    topic: CheckedTopic
    model: TextbookTopic
    segments: Segments
    begun_ms: int
    given_ms: int | None
    has_raced: bool = False
    again: tuple[TextbookTopic, Segments] | None = None

    @property
    def planned_ms(self) -> int:
        return self.begun_ms if self.given_ms is None else self.given_ms

    def raced(self, race: Callable[[], object] | None) -> None:
        self.has_raced = True
        if race is not None:
            race()
        self.again = self.topic.model, self.topic.segments()

    def settle(self, asked: Iterable[int], version: int) -> set[int]:
        """Lays the rounds that were committed over the textbook; returns their partitions."""
        topic, state = self.topic, self.topic.state
        stored = [RoundReport.from_json(r) for r in topic.place.warehouse.store.reports(state)]
        fresh = [report for report in reversed(stored) if report.version > version]
        landed: set[int] = set()
        for report in fresh:
            over = {log.partition: topic.model.logs[log.partition] for log in report.logs if log.changed}
            assert over.keys() <= set(asked), "a log that nobody asked for"
            horizons = {log.partition: log.horizon for log in report.logs if log.changed}
            after = [self._after(p, report, state, horizons[p]) for p in over]
            past = PastRound(report.run_id, over, horizons, {log.partition: log.start for log in after})
            topic.model = replace(topic.model.with_logs(*after), rounds=(*topic.model.rounds, past))
            kept = topic.place.warehouse.store.versions(NAME)
            assert report.run_id in [v.closed_by for v in kept] or len(kept) == topic.model.settings.versions_kept
            landed |= over.keys()
        if fresh:
            topic.look(self.begun_ms)
        return landed

    def _after(self, partition: int, report: RoundReport, state: TopicState, horizon: int) -> TextbookLog:
        planned, segments = self._planned(partition)
        committed_ms = state.log(partition).last_round_ms
        assert committed_ms is not None
        latest_ms = self.topic.place.clock.now_ms()
        bounds = [self.begun_ms, latest_ms] if self.given_ms is None else [self.given_ms] * 2
        assert min(bounds) <= committed_ms <= max(bounds), "a time that no clock showed (C18)"
        there = self.topic.offsets(partition)
        done = planned.logs[partition].rounded(segments.get(partition, ()), planned.settings, self.planned_ms, there)
        assert done.horizon == horizon, f"H of log {partition} is {done.horizon}, not {horizon} (C14)"
        log = self.topic.model.logs[partition]
        return log.with_round(done, planned.settings, committed_ms, report.run_id)

    def _planned(self, partition: int) -> tuple[TextbookTopic, Segments]:
        """What the round of a log was planned on at last: a conflict has it planned again (C44)."""
        if self.again is None:
            return self.model, self.segments
        before, now = self.model, self.again[0]
        old, new = before.logs[partition], now.logs[partition]
        conflict = (
            before.settings != now.settings
            or old.cuts != new.cuts
            or (old.view is None) != (new.view is None)
            or old.last_round != new.last_round
        )
        return self.again if conflict else (self.model, self.segments)

    def check_quiet(self, partitions: Iterable[int]) -> None:
        """C41: a log that no report says was changed had nothing to change, when it was planned first or last."""
        for partition in partitions:
            ways = [way for way in ((self.model, self.segments), self.again) if way is not None]
            assert any(self._is_quiet(partition, *way) for way in ways), f"log {partition} was left as it was"

    def _is_quiet(self, partition: int, planned: TextbookTopic, segments: Segments) -> bool:
        log, now_ms = planned.logs[partition], self.planned_ms
        done = log.rounded(segments.get(partition, ()), planned.settings, now_ms, self.topic.offsets(partition))
        after = log.with_round(done, planned.settings, now_ms, "")
        same = after.reading(compacted=True) == log.reading(compacted=True)
        return same and after.dirty_from == log.dirty_from and not log.owed and (done.held or not log.hidden)
