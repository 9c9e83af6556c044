"""Proof that nothing was lost: `verify` (C1, C3, C4, C5, C8, C33).

    kept version, before the last round   [ a b c d ]          ┐
    what closed it, and those after it    round, retain, ...   ├─ what must be there, and is it?
    newest version                        [ b' d ][ e ]        ┘

It reads every file of these versions whole, computes what each commit had to leave, by other
means than the round did, and compares record by record. It uses no results or counts of the
compactor; `rules/proof/transition.py` says what metadata alone cannot decide.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from lithify.errors import DamagedError, VersionSweptError
from lithify.model.finding import Finding, FindingKind, TombstoneCount
from lithify.model.log_arithmetic import last_readable
from lithify.model.names import LogId, TopicName
from lithify.model.segment import Segment, sizes_of
from lithify.model.topic.log import LastRecord
from lithify.model.topic.state import TopicState
from lithify.ports.engine import Progress
from lithify.ports.inspector import InspectionResult, Inspector, RecordFinding
from lithify.ports.store import Warehouse
from lithify.reports.verification import FINDINGS_KEPT, VerifyReport
from lithify.rules.proof.consistency import metadata_findings
from lithify.rules.proof.inspection import inspected
from lithify.rules.proof.transition import Proof, Transition, left_behind, proofs, view_proof
from lithify.service.last_record import last_record
from lithify.service.proof.trail import Trail, VersionSeen, trail_to

_SAYS = {
    FindingKind.RECORD_LOST: "the record is missing, and no rule of the topic removes it",
    FindingKind.RECORD_ALTERED: "the record is not what was written",
    FindingKind.RECORD_DUPLICATED: "the record exists more than once",
    FindingKind.RECORD_UNKNOWN: "the record is new, although its offset was taken",
    FindingKind.SUPERSEDED_KEPT: "a superseded record is still there",
    FindingKind.KEYLESS_KEPT: "a record without a key is still there",
    FindingKind.PAST_RETENTION_KEPT: "the record was past retention and is still there",
    FindingKind.TOMBSTONE_REMOVED_EARLY: "the tombstone was removed before its time",
    FindingKind.EXPIRED_TOMBSTONE_KEPT: "the tombstone had expired and is still there",
}

_BY_WINNERS = {FindingKind.RECORD_LOST, FindingKind.TOMBSTONE_REMOVED_EARLY, FindingKind.EXPIRED_TOMBSTONE_KEPT}
"""Findings that are not reliable below the horizon of a round with unreadable records."""


def verify(
    warehouse: Warehouse,
    inspector: Inspector,
    name: TopicName,
    *,
    against: int | None = None,
    progress: Progress = lambda _phase, _done, _total: None,
) -> VerifyReport:
    """Checks the newest version of a topic against an earlier one.

    `against` defaults to the version before the last round. Raises `UnknownTopicError`,
    `UnknownVersionError`, or `VersionSweptError` for a version that expired meanwhile.
    """
    started_ms = warehouse.clock.now_ms()
    warehouse.store.clear_file_cache()
    state = warehouse.store.load(name)
    findings: list[Finding] = []
    newest, trail = _versions(warehouse, state, against, findings)
    whole = _proofs(newest, trail)
    files = inspected(whole, newest.segments + newest.view, _counts(newest))
    result = inspector.inspect(files, whole, FINDINGS_KEPT, progress)
    _check_kept(warehouse, name, result)
    findings += _by_metadata(warehouse, newest, result)
    findings += [_left_behind(state.name, how, s) for how in _transitions(newest, trail) for s in left_behind(how)]
    findings += _miscounted(newest, result)
    findings += result.files
    findings += _named(state.name, whole, _unexplained(result, whole))
    current = {s.id: s for s in newest.segments + newest.view}
    return VerifyReport(
        topic=str(name),
        version=state.version,
        against=trail.versions[0].state.version if len(trail.versions) > 1 else None,
        findings=tuple(sorted(set(findings), key=_by_place)[:FINDINGS_KEPT]),
        more_findings=len(findings) > FINDINGS_KEPT or len(result.records) > FINDINGS_KEPT,
        records=sum(s.records for s in current.values()),
        segments=len(current),
        bytes_read=sum(sizes_of(file.segment for file in files).values()),
        duration_ms=warehouse.clock.now_ms() - started_ms,
    )


def _versions(
    warehouse: Warehouse, state: TopicState, against: int | None, findings: list[Finding]
) -> tuple[VersionSeen, Trail]:
    """The versions to compare. Damaged manifests or metadata become a finding, and less is compared."""
    newest = VersionSeen(state, (), ())
    try:
        newest = VersionSeen(state, warehouse.store.segments(state), ())
        newest = replace(newest, view=warehouse.store.view(state))
        return newest, trail_to(warehouse, newest, against)
    except DamagedError as error:
        missing = isinstance(error.__cause__, FileNotFoundError)
        kind = FindingKind.FILE_MISSING if missing else FindingKind.FILE_DAMAGED
        with_view = (log.partition for log in state.logs if log.view is not None)
        findings.append(Finding(next(with_view, 0), kind, error.message))
        return newest, Trail((newest,), (), ())


def _check_kept(warehouse: Warehouse, name: TopicName, result: InspectionResult) -> None:
    """Raises `VersionSweptError` for missing files that no version names any more: this is not damage (C7)."""
    missing = [file.path for file in result.files if file.kind is FindingKind.FILE_MISSING and file.path]
    try:
        named = warehouse.store.named_files(name) if missing else ()
    except DamagedError:  # what is missing may be needed, so it is told
        return
    for path in missing:
        if path not in named:
            raise VersionSweptError(
                f"{name}: a version expired and was swept while it was verified: {path} no longer exists",
                hint="verify again; no damage was found",
            )


def _proofs(newest: VersionSeen, trail: Trail) -> tuple[Proof, ...]:
    along = (c for how in _transitions(newest, trail) for c in proofs(how))
    views = (newest.log(log.partition) for log in newest.state.logs if log.view is not None)
    return (*along, *(view_proof(log) for log in views))


def _transitions(newest: VersionSeen, trail: Trail) -> Iterator[Transition]:
    return (how for partition in newest.state.partitions for how in trail.transitions(partition))


def _by_metadata(warehouse: Warehouse, newest: VersionSeen, result: InspectionResult) -> Iterator[Finding]:
    """Errors in the metadata of the newest version, found by its own rules and by the last records."""
    unreadable = _broken(result)
    for log in newest.state.logs:
        files = newest.log(log.partition).files
        yield from metadata_findings(newest.state, log, files.segments, files.view)
        of_view = log.view and log.view.last_record
        for segments, stored, start in (
            (files.segments, log.last_record, log.log_start_offset),
            (files.view, of_view, 0),
        ):
            if not segments or _is_of(segments[-1], unreadable):
                continue
            last = _last_record(warehouse, segments)
            actual = last_readable(last, start)
            if last is not None and actual != stored:
                name = LogId(newest.state.name, log.partition)
                message = f"{name}: the last record is {stored} in the metadata, but {actual} in the log"
                yield Finding(log.partition, FindingKind.WRONG_METADATA, message, path=segments[-1].path)


def _last_record(warehouse: Warehouse, segments: tuple[Segment, ...]) -> LastRecord | None:
    try:
        return last_record(warehouse, segments, None)
    except DamagedError:
        return None  # the file has a finding of its own


def _counts(newest: VersionSeen) -> dict[str, TombstoneCount]:
    """By segment, which tombstones to count: those below the first dirty offset, which the steps also count (C19)."""
    counts: dict[str, TombstoneCount] = {}
    for log in newest.state.logs:
        if log.uncovered:
            continue  # the next round counts again (C43)
        files, settings = newest.log(log.partition).files, newest.state.settings
        count = TombstoneCount(
            start=log.deleted_below if settings.side_by_side else log.log_start_offset,
            end=log.first_dirty_offset,
            step_ends=tuple(step.end_offset for step in log.steps),
            empty_is_tombstone=settings.empty_is_tombstone,
        )
        compacted = files.view if settings.side_by_side else files.segments
        counts |= {s.id: count for s in compacted if s.base_offset < count.end}
    return counts


def _miscounted(newest: VersionSeen, result: InspectionResult) -> Iterator[Finding]:
    """Steps with fewer tombstones than there are, which would never expire. They may have more (C19)."""
    for partition, counts in result.tombstones.items():
        log = newest.state.log(partition)
        for stored, count in zip((*(step.tombstones for step in log.steps), 0), counts, strict=True):
            if count > stored:
                name = LogId(newest.state.name, partition)
                message = f"{name}: a step counts {stored} tombstones, but there are {count}"
                yield Finding(partition, FindingKind.WRONG_METADATA, message)


def _left_behind(name: TopicName, how: Transition, segment: Segment) -> Finding:
    message = (
        f"{LogId(name, segment.partition)}: records below the log start are still in {segment.path}, after a round"
    )
    return Finding(segment.partition, FindingKind.BELOW_START_KEPT, message, segment.base_offset, segment.path)


def _broken(result: InspectionResult) -> set[str]:
    kinds = (FindingKind.FILE_MISSING, FindingKind.FILE_DAMAGED)
    return {finding.path for finding in result.files if finding.kind in kinds and finding.path is not None}


def _is_of(segment: Segment, broken: set[str]) -> bool:
    """Whether its file or its mask is one of these."""
    return segment.path in broken or segment.id in broken


def _unexplained(result: InspectionResult, whole: Sequence[Proof]) -> Iterator[RecordFinding]:
    """Findings without those that a damaged file explains: its records are missing, those they superseded kept."""
    broken = _broken(result)
    gone: dict[int, list[range]] = {}
    winners_unknown: set[int] = set()
    for number, proof in enumerate(whole):
        before = [source.segment for source in proof.before if _is_of(source.segment, broken)]
        after = [segment for segment in proof.after if _is_of(segment, broken)]
        gone[number] = [range(s.base_offset, s.end_offset) for s in (*before, *after)]
        if before:
            winners_unknown.add(number)
    for finding in result.records:
        number = finding.proof
        needs_winners = finding.offset < whole[number].horizon and finding.kind in _BY_WINNERS
        if any(finding.offset in offsets for offsets in gone[number]) or (needs_winners and number in winners_unknown):
            continue
        yield finding


def _named(name: TopicName, whole: Sequence[Proof], findings: Iterator[RecordFinding]) -> Iterator[Finding]:
    """Findings with their texts. A missing record and another at its offset are one altered record."""
    kinds: dict[tuple[int, int], set[FindingKind]] = {}
    for record in findings:
        kinds.setdefault((record.proof, record.offset), set()).add(record.kind)
    for (number, offset), together in kinds.items():
        kind = min(together) if len(together) == 1 else FindingKind.RECORD_ALTERED
        proof = whole[number]
        log = LogId(name, proof.partition)
        place = f"the compacted view of {log}" if proof.of_view else f"{log}"
        before, after = proof.versions
        versions = f"version {before}" if before == after else f"versions {before} to {after}"
        message = f"{place}, offset {offset}: {_SAYS[kind]} ({versions})"
        yield Finding(proof.partition, kind, message, offset)


def _by_place(finding: Finding) -> tuple[int, int, str, str]:
    return finding.partition, -1 if finding.offset is None else finding.offset, finding.kind.value, finding.message
