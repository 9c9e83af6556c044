"""A round, whatever happens on the way, held to the textbook (C14, C18, C20, C24, C41, C44, C45).

load ──► plan ──► rewrite ──► commit ──► reports say which logs were changed
 └── at any call others do something ──┘          │
      a conflict: planned again                   │
textbook: what the round leaves of each ◄─────────┘
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from lithify.errors import LithifyError, PolicyError, UnknownVersionError
from lithify.model.settings.topic_settings import TopicSettings
from lithify.model.topic.state import TopicState
from lithify.reports.rounds.round import LogReport, RoundReport
from lithify.service.documents import reports_of
from lithify.service.round.compact import RunRequest, compact
from support.checked.topic import NAME, CheckedTopic, Moment
from support.checked.trouble import RandomPlace, Trouble
from support.faults.ports import CrashError
from support.textbook.log import TextbookLog
from support.textbook.topic import PastRound


def check_round(
    topic: CheckedTopic,
    partitions: tuple[int, ...] | None = None,
    given_ms: int | None = None,
    trouble: Trouble = None,
) -> bool:
    """A round; returns whether it got through without trouble."""
    round_ = _Round(topic, given_ms, [topic.moment()], may_be_blind=isinstance(trouble, tuple))
    request = RunRequest(partitions, given_ms)
    reports: list[RoundReport] = []

    def act(place: RandomPlace) -> None:
        reports.append(compact(place.warehouse, place.engine, NAME, request))  # type: ignore[arg-type]

    done = topic.attempt(act, trouble, round_.meanwhile)
    round_.settle()
    asked = range(len(round_.moments[-1].model.logs)) if partitions is None else partitions
    assert round_.landed <= set(asked), "a log that was not asked for"
    if done.struck:
        return False
    if done.error is not None:
        assert not round_.landed, f"done, and refused: {done.error!r}"
        round_.check_refused(done.error)
        return False
    failed = {log.partition: log for report in reports for log in report.logs if log.error is not None}
    assert not failed.keys() & round_.landed, failed
    for log in failed.values():
        round_.check_failed(log)
    round_.check_quiet(set(asked) - round_.landed - failed.keys())
    return not failed and len(round_.moments) == 1


@dataclass(slots=True)
class _Round:
    """A round under way: what it may go by, and the logs of which it has landed."""

    topic: CheckedTopic
    given_ms: int | None
    moments: list[Moment]
    landed: set[int] = field(default_factory=set)
    was_loaded: bool = True
    """Before others came in between."""
    may_be_blind: bool = False
    """A strike may have kept it from reading the positions of groups."""

    @property
    def times_ms(self) -> set[int]:
        """By which it may have judged: at each attempt anew, once it had waited for its turn."""
        shown = {*(moment.now_ms for moment in self.moments), self.topic.place.clock.now_ms()}
        return shown if self.given_ms is None else {self.given_ms}

    def meanwhile(self, others: Callable[[], object], calls: Sequence[str]) -> None:
        self.settle()
        self.was_loaded = "load" in calls
        others()
        self.moments.append(self.topic.moment())

    def settle(self) -> None:
        """Lays the rounds that were committed since the last moment over the textbook."""
        topic, state, version = self.topic, self.topic.state, self.moments[-1].state.version
        stored = list(reports_of(topic.place.warehouse.store, state))
        fresh = [report for report in reversed(stored) if report.version > version]
        for report in fresh:
            over = {log.partition: topic.model.logs[log.partition] for log in report.logs if log.changed}
            horizons = {log.partition: log.horizon for log in report.logs if log.changed}
            after = [self._after(p, report, state, horizons[p]) for p in over]
            past = PastRound(report.run_id, over, horizons, {log.partition: log.start for log in after})
            topic.model = replace(topic.model.with_logs(*after), rounds=(*topic.model.rounds, past)).read_as(
                topic.model
            )
            kept = topic.place.warehouse.store.versions(NAME)
            assert report.run_id in [v.closed_by for v in kept] or len(kept) == topic.model.settings.versions_kept
            assert not over.keys() & self.landed, "a log was done twice"
            self.landed |= over.keys()
        if fresh:
            topic.look(self.moments[0].now_ms)

    def _after(self, partition: int, report: RoundReport, state: TopicState, horizon: int) -> TextbookLog:
        said = next(log for log in report.logs if log.partition == partition)
        moment = self._planned(said)
        planned, segments = moment.model, moment.segments
        committed_ms = state.log(partition).last_round_ms
        assert committed_ms is not None
        trusted_ms = 0 if self.given_ms is not None else self.moments[-1].state.clock_ms or 0
        earliest_ms, latest_ms = (max(edge(self.times_ms), trusted_ms) for edge in (min, max))
        assert earliest_ms <= committed_ms <= latest_ms, "a time that no clock showed (C18)"
        assert min(self.times_ms) <= report.now_ms <= max(self.times_ms), "judged by a time that no clock showed"
        there = self.topic.offsets(partition)
        log = self._as_read(planned.logs[partition], planned.settings, said, report.groups_error)
        done = log.rounded(segments[partition], planned.settings, report.now_ms, there)
        assert done.horizon == horizon, f"H of log {partition} is {done.horizon}, not {horizon} (C14)"
        log = self.topic.model.logs[partition]
        assert not log.beaten_later(done, planned.settings), "a late record came back (C20)"
        return log.with_round(done, planned.settings, committed_ms, max(self.times_ms), report.run_id)

    def _as_read(
        self, log: TextbookLog, settings: TopicSettings, said: LogReport, groups_error: str | None
    ) -> TextbookLog:
        """The log with the positions that the round found: those of a moment (C61, C62)."""
        assert groups_error is None or self.may_be_blind, groups_error
        for way in self._ways_read(log):
            found = way.read_by(settings.holding_groups), way.read_by(settings.trimming_groups)
            if found == (said.tombstones_read_below, said.backlog_read_below):
                return way
        raise AssertionError(f"groups had not read so far at any time: {said}")

    def _ways_read(self, log: TextbookLog) -> list[TextbookLog]:
        """A log as groups had read it at each moment, or as it seems where the positions could not be read."""
        logs = [m.model.logs[log.partition] for m in self.moments if log.partition < len(m.model.logs)]
        ways = [*(way.readers for way in logs), *([{}] if self.may_be_blind else [])]
        return [replace(log, readers=readers) for readers in ways]

    def _planned(self, said: LogReport) -> Moment:
        """What the round of a log was planned on at last: a conflict has it planned again, or what came late (C44)."""
        first, last, partition = self.moments[0], self.moments[-1], said.partition
        if partition not in first.state.partitions:
            return last
        changed = first.model.settings != last.model.settings
        conflict = changed or first.model.logs[partition].epoch != last.model.logs[partition].epoch
        if conflict or not self.was_loaded:
            return last
        cut = said.deleted_below != first.state.log(partition).deleted_below
        if said.log_end_offset == first.model.logs[partition].end and not cut:
            return first
        by_order = first.model.settings.compaction_strategy != "offset"
        assert by_order and (cut or self._may_drop(first, partition)), "what changes no winner had it planned again"
        return last

    def _may_drop(self, moment: Moment, partition: int) -> bool:
        """Whether a round of a log would drop deletes that may beat later records (C20)."""
        settings = moment.model.settings
        ways = self._ways_read(moment.model.logs[partition]) if settings.compaction_strategy != "offset" else []
        dones = (log.rounded(moment.segments[partition], settings, t, ()) for log in ways for t in self.times_ms)
        return any(done.expired for done in dones)

    def check_refused(self, error: LithifyError | CrashError) -> None:
        """C23: where the topic did not compact, when it was planned first or last; C7: what it had loaded is swept."""
        if type(error) is PolicyError and not all(moment.model.settings.compacts for moment in self.moments):
            return
        if type(error) is not UnknownVersionError or self.moments[0].state.version == self.topic.state.version:
            raise error

    def check_failed(self, log: LogReport) -> None:
        """C45: a log may fail where a sweep came in between: its run was abandoned, or what it read is gone."""
        there, first, last = self.topic.place.warehouse.files, self.moments[0], self.moments[-1]
        read = [s.path for s in (*first.segments[log.partition], *first.views[log.partition])]
        abandoned = last.fences > first.fences
        assert abandoned or there.missing(read) or not last.model.settings.compacts, log

    def check_quiet(self, partitions: Iterable[int]) -> None:
        """C41: a log that no report says was changed had nothing to change, when it was planned first or last."""
        for partition in partitions:
            ways = [moment for moment in self.moments if partition in moment.state.partitions]
            quiet = any(
                self._is_quiet(read, way, now_ms)
                for way in ways
                for now_ms in self.times_ms
                for read in self._ways_read(way.model.logs[partition])
            )
            assert quiet, f"log {partition} was left as it was"

    def _is_quiet(self, log: TextbookLog, moment: Moment, now_ms: int) -> bool:
        planned, segments = moment.model, moment.segments[log.partition]
        done = log.rounded(segments, planned.settings, now_ms, self.topic.offsets(log.partition))
        after = log.with_round(done, planned.settings, now_ms, now_ms, "")
        same = after.reading(compacted=True) == log.reading(compacted=True) and after.dirty_from == log.dirty_from
        return (
            same and not log.round_required and (done.held or not log.hidden or not self._stores_deleted(log, moment))
        )

    def _stores_deleted(self, log: TextbookLog, moment: Moment) -> bool:
        """Whether something is stored that was deleted (C26): retention may have taken it since."""
        segments, view, below = moment.segments[log.partition], moment.views[log.partition], log.deleted_below
        if log.view is None:
            return any(s.base_offset < below for s in segments)
        return any(s.base_offset < below for s in view) or any(s.end_offset <= below for s in segments)
