"""Rounds over a log that is nothing but values: planner, rules, decisions, audit and steps at work.

No store and no engine: what is tried here is the core alone. The key pass looks only at the
segments that the plan looks at, as an engine does; callers compare it with the whole-log oracle.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from lithify.model.log_arithmetic import measured
from lithify.model.record import Record
from lithify.model.segment import Mask, Segment
from lithify.model.settings.topic_settings import TopicSettings
from lithify.model.topic.log import LastRecord, LogState
from lithify.rules.compaction.audit import audit
from lithify.rules.compaction.decisions import AddMask, CountedSegment, Rewrite, work_of
from lithify.rules.compaction.outcome import LogOutcome, applied, decisions_of
from lithify.rules.compaction.planner import LogPlan, plan_log
from lithify.rules.compaction.round_commit import After, RoundTimes, state_after
from lithify.rules.compaction.survivors import survivors
from lithify.testing.memory_segments import segment_of
from lithify.testing.oracle_engine import findings_of
from support.builders import a_log


@dataclass(slots=True)
class PureLog:
    """A log as a list of segments with their records."""

    state: LogState = field(default_factory=lambda: LogState(0))
    segments: tuple[Segment, ...] = ()
    view: tuple[Segment, ...] = ()
    records: dict[str, tuple[Record, ...]] = field(default_factory=dict)
    written: int = 0

    @property
    def contents(self) -> tuple[Record, ...]:
        """Every record that the log stores, in offset order."""
        return self.records_in(self.segments)

    @property
    def compacted(self) -> tuple[Record, ...]:
        """What a reader of compacted data gets: the view and what follows it, or the log."""
        state = self.state
        if state.view is None:
            return tuple(r for r in self.contents if (r.offset or 0) >= state.log_start_offset)
        view = (r for r in self.records_in(self.view) if (r.offset or 0) >= state.deleted_below)
        return (*view, *(r for r in self.contents if (r.offset or 0) >= state.first_dirty_offset))

    def records_in(self, segments: Sequence[Segment]) -> tuple[Record, ...]:
        return tuple(record for segment in segments for record in self.records[segment.id])

    def append(self, records: Sequence[Record]) -> None:
        """One segment more; records without an offset go on from the log end."""
        offset = self.state.log_end_offset
        numbered = []
        for record in records:
            offset = offset if record.offset is None else record.offset
            numbered.append(record._replace(offset=offset, partition=0))
            offset += 1
        if numbered:
            self.segments += (self._write(numbered),)
            last = LastRecord(offset - 1, numbered[-1].timestamp or 0)
            self.state = measured(replace(self.state, log_end_offset=offset, last_record=last), self.segments)

    def draw(self, *segments: str) -> None:
        """A segment more for each text, as in `support.builders`; offsets go on from the log end."""
        for text in segments:
            self.append(a_log(text, first_offset=self.state.log_end_offset).records)

    def move_start(self, offset: int) -> None:
        """S goes up, and D with it where it is overtaken (C26)."""
        start = max(self.state.log_start_offset, offset)
        moved = replace(
            self.state, log_start_offset=start, first_dirty_offset=max(start, self.state.first_dirty_offset)
        )
        self.state = measured(moved, self.segments)

    def plan(self, settings: TopicSettings, now_ms: int) -> LogPlan:
        return plan_log(self.state, self.segments, settings, now_ms, self.view)

    def round(
        self,
        settings: TopicSettings,
        now_ms: int,
        *,
        commit_ms: int | None = None,
        meanwhile: Callable[[], None] = lambda: None,
    ) -> LogOutcome:
        """A round planned at `now_ms` and committed at `commit_ms`, after what others did `meanwhile`."""
        plan = self.plan(settings, now_ms)
        scanned = {s.path: self.records[s.id] for s in plan.scanned}
        above_horizon = [r for r in self.records_in(plan.above_horizon) if (r.offset or 0) >= plan.horizon.offset]
        chunks = [r for s in plan.chunks if s.path not in scanned for r in self.records[s.id] if r.passed_through]
        read = [r for records in scanned.values() for r in records]
        found = survivors([*read, *chunks, *above_horizon], plan.rules)
        findings = findings_of(plan, scanned, found)
        stays = set(offsets(found.records))
        decisions = decisions_of(plan, findings)
        written: dict[Rewrite | AddMask, tuple[Segment, ...]] = {}
        for one in work_of(decisions):
            kept = [r for s in one.segments for r in self.records[s.id] if s.path not in scanned or r.offset in stays]
            written[one] = (self._masked(one.source, kept) if isinstance(one, AddMask) else self._write(kept),)
        outcome = LogOutcome(plan, findings, applied(decisions, written), findings.bytes_read)
        audit("log 0", outcome)
        meanwhile()
        if outcome.changes:
            self._commit(outcome, settings, now_ms if commit_ms is None else commit_ms)
        return outcome

    def _commit(self, outcome: LogOutcome, settings: TopicSettings, now_ms: int) -> None:
        removed = {s.id for s in outcome.removed}
        assert removed <= {s.id for s in self.segments}
        left = [s for s in self.segments if s.id not in removed]
        self.segments = tuple(sorted((*left, *outcome.added), key=lambda s: s.base_offset))
        self.view = outcome.result if outcome.plan.view is not None else ()
        after = After(self.segments, self._last(self.segments), self._last(self.view))
        times = RoundTimes(now_ms, now_ms)
        self.state = state_after(outcome, self.state, after, settings, run_id=f"round{self.written}", times=times)

    def _last(self, segments: Sequence[Segment]) -> LastRecord | None:
        if not segments:
            return None
        last = self.records[segments[-1].id][-1]
        return LastRecord(last.offset or 0, last.timestamp or 0)

    def _masked(self, source: CountedSegment, left: Sequence[Record]) -> Segment:
        path = f"m{self.written}"
        self.written += 1
        self.records[path] = tuple(left)
        return replace(source.segment, records=len(left), mask=Mask(path, 8 * source.dead, source.dead))

    def _write(self, records: Sequence[Record]) -> Segment:
        path = f"s{self.written}"
        self.written += 1
        self.records[path] = tuple(records)
        return segment_of(path, records)


def a_pure_log(*segments: str) -> PureLog:
    """A log of segments that are drawn, with no round behind it."""
    log = PureLog()
    log.draw(*segments)
    return log


def offsets(records: Sequence[Record]) -> list[int]:
    return [record.offset or 0 for record in records]
