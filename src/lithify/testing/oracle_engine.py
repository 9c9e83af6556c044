"""The engine that is right by definition: rounds in plain Python, whole logs at a time.

It reads every segment below the horizon, those that the plan passes over as well, and asks
`compaction.survivors`. A plan that passes over a segment with a loser in it fails here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from lithify.errors import LithifyError
from lithify.model.names import LogId
from lithify.model.record import Record, is_tombstone
from lithify.model.segment import Segment
from lithify.ports.engine import PlannedLog, Progress, Rewrites, Rewritten, RunLimits, Written
from lithify.ports.files import SegmentFiles
from lithify.rules.compaction.decisions import AddMask, Rewrite
from lithify.rules.compaction.outcome import LogFindings
from lithify.rules.compaction.planner import LogPlan
from lithify.rules.compaction.survivor_rules import SurvivorRules
from lithify.rules.compaction.survivors import Survivors, survivors
from lithify.rules.compaction.tombstones import Steps


class OracleEngine:
    """`RewriteEngine` over any `SegmentFiles`."""

    def __init__(self, files: SegmentFiles) -> None:
        self._files = files

    @contextmanager
    def open_round(
        self, logs: Sequence[PlannedLog], limits: RunLimits, run_id: str, progress: Progress
    ) -> Iterator[OracleRound]:
        progress("key_pass", 0, 1)
        yield OracleRound(self._files, logs, run_id)


class OracleRound:
    """One run. Remembers the survivors of each log between the two steps."""

    def __init__(self, files: SegmentFiles, logs: Sequence[PlannedLog], run_id: str) -> None:
        self._files = files
        self._logs = {log.id: log for log in logs}
        self._run_id = run_id
        self._survivors: dict[LogId, Survivors] = {}

    def find_survivors(self) -> Mapping[LogId, LogFindings | LithifyError]:
        findings: dict[LogId, LogFindings | LithifyError] = {}
        for log in self._logs:
            try:
                findings[log] = self._find(log)
            except LithifyError as error:
                findings[log] = error
        return findings

    def rewrite(self, rewrites: Rewrites) -> Written:
        return {log: tuple(self._rewrite(log, one) for one in mine) for log, mine in rewrites.items()}

    def _find(self, log: LogId) -> LogFindings:
        plan = self._logs[log].plan
        records = {s.path: records_of(self._files, s) for s in plan.sources}
        horizon = plan.horizon.offset
        above_horizon = [
            r for s in plan.above_horizon for r in records_of(self._files, s) if (r.offset or 0) >= horizon
        ]
        outcome = survivors([*(r for segment in records.values() for r in segment), *above_horizon], rules_of(plan))
        self._survivors[log] = outcome
        return findings_of(plan, records, outcome)

    def _rewrite(self, log: LogId, rewrite: Rewrite | AddMask) -> Rewritten | LithifyError:
        state = self._logs[log].topic
        if isinstance(rewrite, AddMask):
            left = {r.offset for r in self._survivors[log].records}
            segment = rewrite.source.segment
            try:
                dead = [r.offset or 0 for r in records_of(self._files, segment) if r.offset not in left]
                return Rewritten((self._files.masked(state, segment, dead, self._run_id),), 0)
            except LithifyError as error:
                return error
        first, last = rewrite.segments[0], rewrite.segments[-1]
        inside = range(first.base_offset, last.end_offset)
        records = [r for r in self._survivors[log].records if r.offset in inside]
        try:
            arrivals = self._files.receive(state, records, now_ms=0, keep_offsets=True)[rewrite.partition]
            written = self._files.write(state, arrivals, arrivals.first_offset or 0, self._run_id)
        except LithifyError as error:
            return error
        return Rewritten(written, sum(segment.size_bytes for segment in rewrite.segments))


def records_of(files: SegmentFiles, segment: Segment) -> tuple[Record, ...]:
    """All records of a segment."""
    return tuple(record for batch in files.read(segment, segment.base_offset) for record in batch.records())


def rules_of(plan: LogPlan) -> SurvivorRules:
    """The rules of a plan; none of its tombstones expires where those that wait are not asked again what they beat."""
    held = plan.base.held
    waits = held is not None and held.waits and plan.base.held_below(plan.horizon.offset)
    return replace(plan.rules, tombstones_expire_below=0) if waits and not plan.expires_tombstones else plan.rules


def findings_of(plan: LogPlan, records: Mapping[str, Sequence[Record]], outcome: Survivors) -> LogFindings:
    """What a key pass of `plan` reports, given what the oracle left of `records` (by path).

    `records` are those of all sources, or of the scanned segments only.
    """
    left = {record.offset for record in outcome.records}
    counts = {path: sum(r.offset in left for r in rs) for path, rs in records.items()}
    scanned = {s.path for s in plan.scanned}
    missed = [s.path for s in plan.clean if s.path not in scanned and counts.get(s.path, s.records) < s.records]
    assert not missed, f"the plan skips segments with records to remove: {missed}"

    def tombstones(segments: Sequence[Segment]) -> list[int]:
        rules = plan.rules
        return [r.offset or 0 for s in segments for r in records.get(s.path, ()) if _deletes(r, rules)]

    lost = Counter(step_of(plan.base.steps, o) for o in tombstones(plan.clean) if o not in left)
    dirty = [o for o in tombstones(plan.dirty) if o >= plan.rules.log_start]
    keyless = [r for path in scanned for r in records[path] if r.key is None]
    looked_at = {r.offset for s in plan.looked_at for r in records[s.path]}
    held = looked_at | {r.offset for s in plan.dirty for r in records[s.path]}
    return LogFindings(
        survivors={path: counts[path] for path in scanned},
        losers=outcome.losers,
        keyless_kept=sum(r.offset in left for r in keyless),
        keyless_expired=_keyless_expired(plan, keyless, left),
        dirty_tombstones=len(dirty),
        dirty_tombstones_kept=sum(o in left for o in dirty),
        clean_tombstones_lost=tuple(lost[index] for index in range(len(plan.base.steps))),
        clean_tombstones_held=sum(o in looked_at for o in outcome.held),
        tombstones_held=sum(o in held for o in outcome.held),
        tombstones_held_by_chunks=sum(o in held for o in outcome.held_by_chunks),
        tombstones_unversioned=outcome.tombstones_unversioned,
        bytes_read=sum(s.scan_bytes + s.mask_bytes for s in plan.scanned),
    )


def _keyless_expired(plan: LogPlan, keyless: Sequence[Record], left: set[int | None]) -> int:
    """Keyless records that are kept in general and gone for their age (C24)."""
    kept = (r for r in keyless if plan.rules.keep_keyless or r.passed_through)
    return sum(r.offset is not None and r.offset >= plan.rules.log_start and r.offset not in left for r in kept)


def _deletes(record: Record, rules: SurvivorRules) -> bool:
    """Whether the record deletes a key."""
    size = None if record.value is None else len(record.value)
    return record.key is not None and is_tombstone(size, empty_is_tombstone=rules.empty_is_tombstone)


def step_of(steps: Steps, offset: int) -> int | None:
    """Index of the step that covers `offset`, or None if no round has."""
    return next((index for index, step in enumerate(steps) if offset < step.end_offset), None)
