"""Appends the segments of parallel tasks in one commit, and a streaming batch only once (C1, C6, C14).

    tasks    ─► files at the log end that was known     [E ..)   [E ..)   [E ..)
    commit   ─► the log ends at E, one task wrote to it: its files as they are
                else: their records, task by task, in new files from the log end on

The topic stores the latest batch of each query, in the same commit that appends it: a batch that
Spark repeats, because it failed between this commit and its own checkpoint, changes nothing. Spark
repeats only the latest batch: an earlier one comes from a stream that was restarted under the name of
another, or set back. It is refused, since skipping it would lose its records.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from lithify.errors import ConflictError, LithifyError, RefusedError
from lithify.model.names import LogId, TopicName
from lithify.model.segment import Segment, volume_of
from lithify.model.settings.units import plural
from lithify.model.staged import StagedLog, by_partition, segments_of_parts
from lithify.model.topic.edit import TopicEdit
from lithify.model.topic.log import LogState, WrittenBatch
from lithify.model.topic.state import TopicState
from lithify.ports.store import Warehouse
from lithify.rules.lifecycle.admission import check_offsets
from lithify.rules.lifecycle.copies.ids import check_not_copied
from lithify.rules.lifecycle.copies.ownership import check_takes_records
from lithify.rules.lifecycle.sweeping import run_of
from lithify.service.commit import check_not_abandoned, commit
from lithify.service.write.append import appended

MEMORY_PARTITION = 0
"""The log whose state has the batches of the whole topic: every topic has it."""

Renumber = Callable[[TopicState, Sequence[Segment], int, str], tuple[Segment, ...]]
"""Writes the records of segments of one log once more, from an offset on, for a run."""


@dataclass(frozen=True, slots=True)
class StagedBatch:
    """All that tasks wrote for one topic, in the order of the tasks, and for a stream its query and batch id."""

    topic: TopicName
    logs: tuple[StagedLog, ...]
    batch: WrittenBatch | None


def append_staged(warehouse: Warehouse, renumber: Renumber, staged: StagedBatch) -> TopicState:
    """Commits a batch; returns the version that has it, the newest one if it was there already.

    Raises `ConflictError` if the topic was recreated since the tasks wrote, or refuses records without a key since
    then, `RefusedError` for a batch of a query that has a later one, or what `commit` raises.
    """
    run_id = warehouse.clock.new_id()
    by_log = by_partition(staged.logs)
    written_by = {run_of(segment.path) for log in staged.logs for segment in log.segments}
    placed: dict[int, tuple[Segment, ...]] = {}

    def is_there(newest: TopicState) -> bool:
        if any(log.identity != newest.identity for log in staged.logs):
            raise ConflictError(
                f"{staged.topic}: the topic was deleted and recreated while the batch was written",
                hint="write it again",
            )
        return staged.batch is not None and _was_appended(newest, staged.batch)

    def place(newest: TopicState) -> None:
        for partition, parts in by_log.items():
            end = newest.log(partition).log_end_offset
            if partition not in placed or placed[partition][0].base_offset != end:
                segments = segments_of_parts(parts)
                check_offsets(LogId(staged.topic, partition), end, volume_of(segments).records)
                placed[partition] = _at(parts, end) or renumber(newest, segments, end, run_id)

    def decide(newest: TopicState) -> TopicEdit | None:
        if is_there(newest):
            return None
        for partition, parts in by_log.items():
            check_not_copied(LogId(staged.topic, partition), newest.log(partition), parts[0].message_ids)
        _check_keys(newest, segments_of_parts(staged.logs))
        check_not_abandoned(newest, written_by)  # before `place` reads files that a sweep may have deleted
        place(newest)
        written = tuple(segment for segments in placed.values() for segment in segments)
        logs = _logs(newest, by_log, placed, staged.batch)
        return TopicEdit(run_id, warehouse.clock.now_ms(), logs, add=written, written=written)

    state = warehouse.store.load(staged.topic)
    check_takes_records(state)
    if is_there(state):
        return state
    with suppress(LithifyError):  # an error counts only on the newest version, where it is raised again
        place(state)  # before the commit lock is held, as it may take long
    return commit(warehouse, staged.topic, run_id, decide)


def _was_appended(newest: TopicState, batch: WrittenBatch) -> bool:
    """Whether the topic has this very batch. Raises `RefusedError` if it can be neither new nor sent again."""
    latest = newest.log(MEMORY_PARTITION).latest_batch(batch.query_id)
    if latest is None:
        return False
    other_stream = bool(latest.stream_id and batch.stream_id and latest.stream_id != batch.stream_id)
    if other_stream or batch.batch_id < latest.batch_id:
        other = f", of another stream ({latest.stream_id})" if other_stream else ""
        raise RefusedError(
            f"{newest.name}: batch {batch.batch_id} of query {batch.query_id!r} arrived, but the topic has batch "
            f"{latest.batch_id} of it{other}: the query was restarted or reset",
            hint="set a queryId that was not used yet for a query with a new checkpoint; nothing was appended",
        )
    return batch.batch_id == latest.batch_id


def _check_keys(newest: TopicState, segments: Sequence[Segment]) -> None:
    """Raises `ConflictError` for records without a key where the topic has come to refuse them (C16)."""
    whole = sum(0 if segment.envelopes is None else segment.envelopes.passed_through for segment in segments)
    keyless = sum(segment.null_keys for segment in segments) - whole
    if keyless and newest.settings.null_key == "reject" and newest.settings.compacts:
        raise ConflictError(
            f"{newest.name}: the batch has {plural(keyless, 'record')} without a key, but null.key=reject was set "
            "while "
            "the batch was written",
            hint="set a key for every record, or null.key to drop or retain, and write it again; nothing was appended",
        )


def _logs(
    newest: TopicState,
    by_log: Mapping[int, Sequence[StagedLog]],
    placed: Mapping[int, tuple[Segment, ...]],
    batch: WrittenBatch | None,
) -> dict[int, LogState]:
    """The logs with the batch, and in the state of one of them its query and batch id."""
    logs = {
        p: appended(newest.log(p), placed[p], parts[-1].last_timestamp_ms, parts[-1].last_message_id)
        for p, parts in by_log.items()
    }
    if batch is not None:
        logs[MEMORY_PARTITION] = logs.get(MEMORY_PARTITION, newest.log(MEMORY_PARTITION)).with_batch(batch)
    return logs


def _at(parts: Sequence[StagedLog], end: int) -> tuple[Segment, ...]:
    """The files of the only task that wrote to a log, if they begin where it ends (C14); else none."""
    fits = len(parts) == 1 and parts[0].segments[0].base_offset == end
    return parts[0].segments if fits else ()
