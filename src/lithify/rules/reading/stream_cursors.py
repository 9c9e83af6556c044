"""The cursors of a stream over several topics: checked before every batch, kept in its checkpoint (C7, C49).

    {"orders": {"0": 25}, "#cursors": {"orders": {"0": {"identity": ..., "generation": 0, "offset": 25, "epoch": 3}}}}

The offsets are written as Spark's Kafka source writes them, so that a checkpoint shows how far a job has read;
the cursors are under a name that no topic has. Checkpoints of earlier versions have `#epochs` instead, or
neither: the rest of the cursor is then the newest version's, as for an offset that a user gives.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from lithify.model.cursor import Cursor
from lithify.model.names import LogId, parse_topic
from lithify.model.scan import Offsets, ScanSettings
from lithify.model.topic.state import TopicState
from lithify.rules.reading.continuation import Continues, Gone, MissedDeletes, continuation, lost_error, resumed

CURSORS = "#cursors"
EPOCHS = "#epochs"
HINT = "start a new query, with a new checkpoint, or continue with failOnDataLoss=false"

Cursors = Mapping[LogId, Cursor]


def log_ends(states: Iterable[TopicState], settings: ScanSettings) -> dict[str, dict[int, int]]:
    """The end offset of every log that is read, in this version."""
    return {str(s.name): {p: s.log(p).log_end_offset for p in settings.partitions(s)} for s in states}


def offsets_of(cursors: Cursors) -> dict[str, dict[int, int]]:
    offsets: dict[str, dict[int, int]] = {}
    for log, cursor in cursors.items():
        offsets.setdefault(str(log.topic), {})[log.partition] = cursor.offset
    return offsets


def resumed_at(states: Iterable[TopicState], cursors: Cursors, *, compacted: bool) -> dict[str, dict[int, int]]:
    """The offsets at which a stream continues that accepts what it has lost (`failOnDataLoss=false`)."""
    by_name = {state.name: state for state in states}
    there = {log: cursor for log, cursor in cursors.items() if _has(by_name.get(log.topic), log)}
    offsets: dict[str, dict[int, int]] = {}
    for log, cursor in there.items():
        state = by_name[log.topic]
        offset = resumed(cursor, state, state.log(log.partition), compacted=compacted)
        offsets.setdefault(str(log.topic), {})[log.partition] = offset
    return offsets


def cursors_at(
    states: Iterable[TopicState], offsets: Offsets, before: Cursors, *, compacted: bool
) -> dict[LogId, Cursor]:
    """The cursors of these offsets; unmoved ones remain equal, since a changed one makes Spark plan a batch.

    A lost one does not remain: a stream that has continued with `failOnDataLoss=false` would fail at it.
    """
    cursors = {}
    for state in states:
        for partition, offset in offsets.get(str(state.name), {}).items():
            log, now = LogId(state.name, partition), state.log(partition)
            known = before.get(log)
            stays = known is not None and known.offset == offset
            if known is None or not stays or continuation(known, state, now, compacted=compacted) != Continues():
                known = Cursor.of(state, now, offset)
            cursors[log] = known
    return cursors


def check_continues(states: Iterable[TopicState], cursors: Cursors, *, compacted: bool, as_ends: bool = False) -> None:
    """Raises `LogTruncatedError` if a stream cannot continue at one of its cursors.

    `as_ends`: a batch ends there. Deletes that it misses above are an error of the next one, which begins there.
    """
    by_name = {state.name: state for state in states}
    for log, cursor in cursors.items():
        state = by_name.get(log.topic)
        if state is None or not _has(state, log):
            raise lost_error(log, cursor, Gone(), HINT)
        match continuation(cursor, state, state.log(log.partition), compacted=compacted):
            case Continues():
                continue
            case MissedDeletes() if as_ends:
                continue
            case lost:
                raise lost_error(log, cursor, lost, HINT)


def offsets_to_json(offsets: Offsets) -> dict[str, Any]:
    return {t: {str(p): at for p, at in sorted(logs.items())} for t, logs in sorted(offsets.items())}


def to_json(cursors: Cursors) -> dict[str, Any]:
    stored: dict[str, dict[str, Any]] = {}
    for log, cursor in sorted(cursors.items()):
        stored.setdefault(str(log.topic), {})[str(log.partition)] = cursor.to_json()
    return {**offsets_to_json(offsets_of(cursors)), CURSORS: stored}


def from_json(content: Mapping[str, Any], states: Iterable[TopicState]) -> dict[LogId, Cursor]:
    """Reads what `to_json` wrote, or an earlier version of Lithify."""
    by_name = {state.name: state for state in states}
    cursors, epochs = content.get(CURSORS, {}), content.get(EPOCHS, {})
    by_log = {}
    for topic, logs in content.items():
        for partition, offset in logs.items() if not topic.startswith("#") else ():
            log = LogId(parse_topic(topic).name, int(partition))
            stored = cursors.get(topic, {}).get(partition)
            epoch = epochs.get(topic, {}).get(partition)
            by_log[log] = Cursor.from_json(stored) if stored else _mere(log, int(offset), by_name.get(log.topic), epoch)
    return by_log


def _mere(log: LogId, offset: int, state: TopicState | None, epoch: int | None) -> Cursor:
    """The cursor of an offset that is all that is known."""
    if state is None or not _has(state, log):
        return Cursor("", 0, offset, 0)  # the log is gone, and nothing is read
    cursor = Cursor.of(state, state.log(log.partition), offset)
    return cursor if epoch is None else replace(cursor, epoch=epoch)


def _has(state: TopicState | None, log: LogId) -> bool:
    return state is not None and log.partition in state.partitions
