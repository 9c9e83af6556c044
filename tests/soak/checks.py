"""What must hold of every topic at the end of a soak, and what the cleaners have left behind."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from lithify.model.record import Record
from lithify.model.segment import Segment, segments_of
from lithify.model.topic.log import LogState
from lithify.model.topic.state import TopicState
from lithify.rules.proof.consistency import metadata_findings
from lithify.rules.reading.pieces import Reading
from lithify.service.read.fetch import open_log
from soak.feeder import FedTopic
from soak.journal import LogJournal, Wanted

AT_ONCE = 4
SOON_MS = 60_000
"""Nothing that the clock makes due later than that is waited for: tombstones expire in seconds, or in a day."""


@dataclass(frozen=True, slots=True)
class Left:
    """Data files of a topic that no version ever named."""

    files: int
    size_bytes: int


def unsettled(fed: FedTopic) -> str | None:
    """Why a topic still has something to be done soon; None if it has not."""
    status = fed.topic.status()
    soon_ms = status.now_ms + SOON_MS
    for log in status.logs:
        where = f"{fed.name}[{log.partition}]"
        if log.due:
            return f"{where}: due: {log.due_reason}"
        if log.due_at_ms is not None and log.due_at_ms < soon_ms:
            return f"{where}: due in {log.due_at_ms - status.now_ms} ms"
        if fed.journal.settings.compacts and log.first_dirty_offset < log.log_end_offset:
            return f"{where}: dirty from {log.first_dirty_offset} to {log.log_end_offset}, {log.due_reason}"
    return None


def all_unsettled(topics: Sequence[FedTopic]) -> dict[str, str]:
    """By topic, why it still has something to be done."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return {fed.name: why for fed, why in zip(topics, pool.map(unsettled, topics), strict=True) if why}


def check_all(topics: Sequence[FedTopic]) -> tuple[list[str], int, int]:
    """Findings, and how many logs and records were compared."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        results = list(pool.map(_checked, topics))
    findings = [finding for found, _, _ in results for finding in found]
    return findings, sum(logs for _, logs, _ in results), sum(records for _, _, records in results)


def _checked(fed: FedTopic) -> tuple[list[str], int, int]:
    findings, records = [], 0
    warehouse = fed.lake.warehouse
    state = fed.topic.state()
    segments, view = warehouse.store.segments(state), warehouse.store.view(state)
    if state.settings != fed.journal.settings:
        findings.append(f"{fed.name}: settings are {state.settings}, not {fed.journal.settings}")
    missing = warehouse.files.missing([s.path for s in segments + view])
    findings += [f"{fed.name}: {path} is missing" for path in missing]
    for log in state.logs:
        findings += [f"{fed.name}: {found}" for found in metadata_findings(state, log, segments, view)]
        for compacted in (False, True):
            found = tuple(open_log(warehouse, state, log.partition, "earliest", Reading(compacted=compacted)))
            records += len(found)
            findings += _log_findings(fed, log, found, compacted, segments_of(segments, log.partition))
    for follower in (*fed.followers, *fed.past_followers):
        if follower in fed.followers:
            follower.finish(fed.journal, _now_ms())
        findings += follower.findings
    return findings, len(state.logs), records


def _log_findings(
    fed: FedTopic, log: LogState, found: tuple[Record, ...], compacted: bool, segments: tuple[Segment, ...]
) -> Iterator[str]:
    journal, settings = fed.journal.logs[log.partition], fed.journal.settings
    where = f"{fed.name}[{log.partition}] {'compacted' if compacted else 'plain'}"
    if log.log_end_offset != journal.end:
        yield f"{where}: ends at {log.log_end_offset}, not {journal.end}"
    wanted = journal.plain(settings, _now_ms())
    if compacted and settings.compacts:
        wanted = journal.compacted(settings, _now_ms())
    if settings.retention_bytes != -1:
        yield from _size_findings(where, log, journal, wanted, segments, settings.retention_bytes)
    if settings.retention_bytes != -1 or (settings.trimming_groups and not compacted):
        wanted = Wanted({o: r for o, r in wanted.must.items() if o >= log.log_start_offset})
    yield from wanted.findings(where, found)


def _size_findings(
    where: str, log: LogState, journal: LogJournal, wanted: Wanted, segments: tuple[Segment, ...], most_bytes: int
) -> Iterator[str]:
    """C24 by size: the oldest segment goes while the rest has `retention.bytes`, and not a moment longer."""
    start, sizes = log.log_start_offset, [s.size_bytes for s in segments]
    if sum(sizes[1:]) >= most_bytes:
        yield f"{where}: the oldest segment is past retention.bytes: {sizes}"
    if start > wanted.start and sum(sizes) < most_bytes and not journal.truncations:
        yield f"{where}: retention.bytes took too much: {sum(sizes)} bytes are left"
    if start not in {0, journal.deleted_below, *(end for _, end in journal.batches)}:
        yield f"{where}: the log starts at {start}, within a batch"


def never_named(fed: FedTopic) -> Left:
    """What rounds have written that never got to their commit, and appends that had to write again."""
    store = fed.lake.warehouse.store
    state: TopicState = fed.topic.state()
    stored = [file for file in store.stored_files(state) if "/data/" in file.path]
    known = store.named_files(fed.topic.topic_name).all | store.closings(state, stored, _now_ms()).keys()
    lost = [file for file in stored if file.path not in known]
    return Left(len(lost), sum(file.size_bytes for file in lost))


def all_never_named(topics: Sequence[FedTopic]) -> Left:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        every = list(pool.map(never_named, topics))
    return Left(sum(left.files for left in every), sum(left.size_bytes for left in every))


def _now_ms() -> int:
    return time.time_ns() // 10**6
