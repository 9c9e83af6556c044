"""The state of one log as JSON, and back: `lithify.log.<partition>`, and in records of closed versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from lithify.model.message import NO_BATCH, MessageId
from lithify.model.missed import DroppedDeletes, Undone
from lithify.model.segment import Volume
from lithify.model.topic.log import (
    FIRST_EPOCH,
    CommittedEnd,
    HeldTombstones,
    LastRecord,
    LogState,
    TombstoneStep,
    View,
    WrittenBatch,
)


def log_to_json(log: LogState) -> dict[str, Any]:
    """A log's state without default values, since every commit copies it."""
    whole = {
        "start": log.log_start_offset,
        "first_dirty": log.first_dirty_offset,
        "end": log.log_end_offset,
        "generation": log.generation,
        "truncated": list(log.truncated),
        "steps": [[step.end_offset, step.time_ms, step.tombstones] for step in log.steps],
        "clean": _volume(log.clean),
        "dirty": _volume(log.dirty),
        "oldest_dirty": log.oldest_dirty_timestamp_ms,
        "last_record": _last_record(log.last_record),
        "runs": list(log.run_ids),
        "last_round": log.last_round_ms,
        "last_round_run": log.last_round,
        "losers_removed": _losers_removed(log),
        "deleted_below": log.deleted_below,
        "compacted_below": log.compacted_below,
        "owed": log.round_required,
        "uncovered": log.uncovered,
        "held": None if log.held is None else [log.held.below, log.held.horizon],
        **_chunks_to_json(log),
        "aged_before": log.aged_before_ms,
        "view": None if log.view is None else _view_to_json(log.view),
        "batches": [[b.query_id, b.batch_id, *([b.stream_id] if b.stream_id else [])] for b in log.batches],
        "committed": [[end.end_offset, end.time_ms] for end in log.committed],
        "epoch": None if log.epoch == FIRST_EPOCH else log.epoch,
        "dropped": [_drop(drop) for drop in log.dropped],
        "undone": None if log.undone is None else [log.undone.below, log.undone.of_view],
        "copied_to": None if log.copied_to is None else _id(log.copied_to),
    }
    # 0 and [] are what a new log has; a time of 0 is not, nor an epoch of 0, and a view may be empty.
    optional = {
        "oldest_dirty",
        "last_record",
        "last_round",
        "losers_removed",
        "held",
        "aged_before",
        "view",
        "epoch",
        "undone",
        "copied_to",
    }
    own = {name: value for name, value in whole.items() if (value is not None if name in optional else value)}
    return own | _of_source(log)


def _of_source(log: LogState) -> dict[str, Any]:
    """What a copy of a log of Kafka says of it."""
    pairs = {"source_last": log.source_last, "source_begun": log.source_begun}
    epoch = {} if log.source_epoch is None else {"source_epoch": log.source_epoch}
    return epoch | {name: [*pair] for name, pair in pairs.items() if pair is not None}


def _chunks_to_json(log: LogState) -> dict[str, Any]:
    """Beside the volumes and `held`, which versions before would not read with a number more (C53)."""
    held = log.held
    return {
        "chunks": [log.clean.chunks, log.dirty.chunks] if log.volume.chunks else [],
        "held_by_chunks": [held.chunks, held.waits] if held is not None and held.chunks else [],
    }


def log_from_json(partition: int, data: Mapping[str, Any], new_epoch: int = FIRST_EPOCH) -> LogState:
    """The inverse of `log_to_json`. `new_epoch` is that of a new log where it was written."""
    held, view, undone = data.get("held"), data.get("view"), data.get("undone")
    clean_chunks, dirty_chunks = data.get("chunks", (0, 0))
    last_round_ms, compacted_below = data.get("last_round"), data.get("compacted_below", 0)
    return LogState(
        partition=partition,
        log_start_offset=data.get("start", 0),
        first_dirty_offset=data.get("first_dirty", 0),
        log_end_offset=data.get("end", 0),
        generation=data.get("generation", 0),
        truncated=tuple(data.get("truncated", ())),
        steps=tuple(TombstoneStep(*step) for step in data.get("steps", ())),
        clean=replace(Volume(*data.get("clean", ())), chunks=clean_chunks),
        dirty=replace(Volume(*data.get("dirty", ())), chunks=dirty_chunks),
        oldest_dirty_timestamp_ms=data.get("oldest_dirty"),
        last_record=_last_record_of(data.get("last_record")),
        run_ids=tuple(data.get("runs", ())),
        last_round_ms=last_round_ms,
        last_round=data.get("last_round_run", ""),
        losers_removed=data.get("losers_removed", _may_lack_losers(last_round_ms, compacted_below)),
        deleted_below=data.get("deleted_below", 0),
        compacted_below=compacted_below,
        round_required=data.get("owed", ""),
        uncovered=data.get("uncovered", False),
        held=None if held is None else HeldTombstones(*held, *data.get("held_by_chunks", ())),
        aged_before_ms=data.get("aged_before"),
        view=None if view is None else _view_of(view, data),
        batches=tuple(WrittenBatch(*batch) for batch in data.get("batches", ())),
        committed=tuple(CommittedEnd(*end) for end in data.get("committed", ())),
        epoch=data.get("epoch", new_epoch),
        dropped=tuple(DroppedDeletes(*drop) for drop in data.get("dropped", ())),
        undone=None if undone is None else Undone(*undone),
        copied_to=MessageId(*data["copied_to"]) if "copied_to" in data else None,
        source_epoch=data.get("source_epoch"),
        source_last=_pair_of(data.get("source_last")),
        source_begun=_pair_of(data.get("source_begun")),
    )


def _losers_removed(log: LogState) -> bool | None:
    """None where it is what a log without it is taken for."""
    taken = _may_lack_losers(log.last_round_ms, log.compacted_below)
    return None if log.losers_removed == taken else log.losers_removed


def _may_lack_losers(last_round_ms: int | None, compacted_below: int) -> bool:
    """Of a log that an earlier Lithify wrote, which does not say: not if no round was ever done."""
    return last_round_ms is not None or compacted_below > 0


def _view_to_json(view: View) -> dict[str, Any]:
    whole = {
        "volume": _volume(view.volume),
        "chunks": view.volume.chunks or None,
        "first": view.first_offset,
        "last_record": _last_record(view.last_record),
        "start": view.start_offset,
        "losers_removed": None if view.losers_removed else False,  # an earlier Lithify does not say
    }
    return {name: value for name, value in whole.items() if value is not None and value != []}


def _view_of(data: Mapping[str, Any], log: Mapping[str, Any]) -> View:
    first = data.get("first")
    # Formats below 3 do not say from where on a view covers the log: at least from these on.
    known = min(log.get("start", 0), log.get("first_dirty", 0) if first is None else first)
    start_offset = data.get("start", known)
    last, losers_removed = _last_record_of(data.get("last_record")), data.get("losers_removed", True)
    volume = replace(Volume(*data.get("volume", ())), chunks=data.get("chunks", 0))
    return View(volume, first, last, start_offset, losers_removed)


def _drop(drop: DroppedDeletes) -> list[int | bool]:
    about = [drop.of_view, drop.restored]
    while about and not about[-1]:
        about.pop()
    return [drop.epoch, drop.below, *about]


def _id(of: MessageId) -> list[int]:
    return [*of.place] if of.batch_index == NO_BATCH else [*of]


def _last_record(last: LastRecord | None) -> list[int] | None:
    if last is None:
        return None
    return [last.offset, last.timestamp_ms, *(() if last.message_id is None else _id(last.message_id))]


def _last_record_of(data: Sequence[int] | None) -> LastRecord | None:
    if data is None:
        return None
    offset, timestamp_ms, *message_id = data
    return LastRecord(offset, timestamp_ms, MessageId(*message_id) if message_id else None)


def _pair_of(data: Sequence[int] | None) -> tuple[int, int] | None:
    if data is None:
        return None
    offset, at_it = data
    return offset, at_it


def _volume(volume: Volume) -> list[int]:
    passed_through = [volume.passed_through] if volume.passed_through else []
    return [] if volume == Volume() else [volume.records, volume.size_bytes, *passed_through]
