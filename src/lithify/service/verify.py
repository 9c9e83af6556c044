"""Proof that nothing was lost: `verify` (C1, C3, C4, C5, C8).

    kept version, before the last round   [ a b c d ]  ┐
    versions since then                   [ ... ]      ├─ every record that ever was since then
    newest version                        [ b' d ][ e ]┘  ──► what must be there, and is it?

It reads every file of these versions whole and works the answer out anew, by other means than the
round did: nothing of what the compactor found or counted is believed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from lithify.compaction.outcome import measured
from lithify.compaction.steps import tombstones_expire_below
from lithify.errors import UnknownVersionError
from lithify.model.log import LogState, TopicState, segments_of
from lithify.model.names import LogId, TopicName
from lithify.model.report import RoundReport
from lithify.model.segment import Segment
from lithify.model.verification import FINDINGS_KEPT, Finding, FindingKind, LogExpectation, VerifyReport
from lithify.ports import InspectedSegment, Inspector, Progress, Warehouse


@dataclass(frozen=True, slots=True)
class _Past:
    """The versions compared with, oldest first, and their files."""

    states: tuple[TopicState, ...]
    segments: tuple[Segment, ...]


def verify(
    warehouse: Warehouse,
    inspector: Inspector,
    name: TopicName,
    *,
    against: int | None = None,
    progress: Progress = lambda _phase, _done, _total: None,
) -> VerifyReport:
    """Checks the newest version of a topic against an earlier one.

    `against` defaults to the newest kept version: the one before the last round that removed
    something. Raises `UnknownTopicError` or `UnknownVersionError`.
    """
    started_ms = warehouse.clock.now_ms()
    state = warehouse.store.load(name)
    current = warehouse.store.segments(state)
    past = _past(warehouse, state, against)
    findings = [finding for log in state.logs for finding in metadata_findings(state, log, current)]
    result = inspector.inspect(
        state, _inspected(current, past.segments), _expectations(warehouse, state, past), FINDINGS_KEPT, progress
    )
    findings += _unexplained(result.findings, (*past.segments, *current))
    return VerifyReport(
        topic=str(name),
        version=state.version,
        against=past.states[0].version if past.states else None,
        findings=tuple(sorted(findings, key=_by_place)[:FINDINGS_KEPT]),
        more_findings=len(findings) > FINDINGS_KEPT,
        records=result.records,
        segments=len(current),
        bytes_read=result.bytes_read,
        duration_ms=warehouse.clock.now_ms() - started_ms,
    )


def _unexplained(found: tuple[Finding, ...], segments: tuple[Segment, ...]) -> list[Finding]:
    """Findings without those that a finding about a whole file explains: its records are gone with it."""
    broken = {f.path for f in found if f.kind in (FindingKind.FILE_MISSING, FindingKind.FILE_DAMAGED)}
    gone = [(s.partition, range(s.base_offset, s.end_offset)) for s in segments if s.path in broken]
    return [
        finding
        for finding in found
        if finding.path is not None or not any(finding.partition == p and finding.offset in o for p, o in gone)
    ]


def _by_place(finding: Finding) -> tuple[int, int, str, str]:
    return finding.partition, -1 if finding.offset is None else finding.offset, finding.kind.value, finding.message


def _past(warehouse: Warehouse, state: TopicState, against: int | None) -> _Past:
    """All kept versions from `against` on. Together they have every record that was there since."""
    kept = sorted(version.version for version in warehouse.store.versions(state.name))
    if against is None:
        kept = kept[-1:]
    elif against not in kept:
        raise UnknownVersionError(
            f"{state.name} keeps no version {against}",
            hint=f"kept: {', '.join(map(str, kept)) or 'none yet, a version is kept when a round removes something'}",
        )
    else:
        kept = [version for version in kept if version >= against]
    states = tuple(warehouse.store.load_version(state.name, version) for version in kept)
    segments = {s.path: s for past in states for s in warehouse.store.segments(past)}
    return _Past(states, tuple(segments.values()))


def _inspected(current: tuple[Segment, ...], past: tuple[Segment, ...]) -> tuple[InspectedSegment, ...]:
    """Every file once, with which side names it. A file that both name is read once."""
    now, then = {s.path: s for s in current}, {s.path: s for s in past}
    return tuple(InspectedSegment(s, in_past=path in then, in_current=path in now) for path, s in (then | now).items())


def _expectations(warehouse: Warehouse, state: TopicState, past: _Past) -> tuple[LogExpectation, ...]:
    reports = [RoundReport.from_json(report) for report in warehouse.store.reports(state)]
    since = past.states[0].version if past.states else state.version
    rounds = [report for report in reports if report.version > since]
    return tuple(_expectation(state, log, past, rounds) for log in state.logs)


def _expectation(state: TopicState, log: LogState, past: _Past, rounds: list[RoundReport]) -> LogExpectation:
    """What one log must hold: tombstones are judged anew at the time of each round since."""
    retention_ms = state.settings.delete_retention_ms
    expired = [0]
    for report in rounds:  # newest first
        mine = next((r for r in report.logs if r.partition == log.partition), None)
        before = [s for s in past.states if s.version < report.version]
        if mine is None or not before:
            continue
        base = before[-1].log(log.partition)
        expired.append(
            tombstones_expire_below(
                base.steps,
                horizon=mine.horizon,
                retention_ms=retention_ms,
                now_ms=report.now_ms,
            )
        )
    return LogExpectation(
        partition=log.partition,
        log_start=log.log_start_offset,
        first_dirty=log.first_dirty_offset,
        keep_keyless=state.settings.null_key == "retain",
        empty_is_tombstone=state.settings.empty_is_tombstone,
        known_up_to=past.states[-1].log(log.partition).log_end_offset if past.states else 0,
        tombstones_expired_below=max(expired),
        tombstones_gone_below=expired[1] if len(expired) > 1 else 0,
    )


def metadata_findings(state: TopicState, log: LogState, segments: tuple[Segment, ...]) -> Iterator[Finding]:
    """What the metadata says of a log and its segments, held against itself."""
    here = segments_of(segments, log.partition)
    name = LogId(state.name, log.partition)

    def wrong(message: str, path: str | None = None) -> Finding:
        return Finding(log.partition, FindingKind.WRONG_METADATA, f"{name}: {message}", path=path)

    if not log.log_start_offset <= log.first_dirty_offset <= log.log_end_offset:
        yield wrong(
            f"S <= D <= E does not hold: {log.log_start_offset}, {log.first_dirty_offset}, {log.log_end_offset}"
        )
    for earlier, later in pairwise(here):
        if earlier.end_offset > later.base_offset:
            yield wrong(f"{later.path} begins at {later.base_offset}, before {earlier.path} ends", later.path)
    if here and here[-1].end_offset > log.log_end_offset:
        yield wrong(f"{here[-1].path} ends at {here[-1].end_offset}, after the log end {log.log_end_offset}")
    counted = measured(log, here)
    for what in ("clean", "dirty", "oldest_dirty_timestamp_ms"):
        said, found = getattr(log, what), getattr(counted, what)
        if said != found:
            yield wrong(f"{what} is said to be {said}, the segments say {found}")
    last = here[-1].end_offset - 1 if here else None
    if (log.last_record.offset if log.last_record else None) != last:
        yield wrong(f"the last record is said to be at {log.last_record}, the segments end at {last}")
    for first, second in pairwise(log.steps):
        if first.end_offset >= second.end_offset or first.time_ms > second.time_ms:
            yield wrong(f"tombstone steps do not ascend: {first}, {second}")
