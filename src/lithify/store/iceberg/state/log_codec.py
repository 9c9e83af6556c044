"""The state of one log as JSON, and back: `lithify.log.<partition>`, and in records of closed versions."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
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

LOGS_KEPT = 20_000
LOG_KEPT_LENGTH = 1_024
"""Decoded states of logs in a process's cache, each of at most this number of characters: usually some 30 MB."""


def _same(value: Any) -> Any:
    return value


def _each(kind: Callable[..., Any]) -> Callable[[Sequence[Sequence[Any]]], Any]:
    """Reads a list of lists, each of them the parts of one value."""
    return lambda parts: tuple(kind(*one) for one in parts)


@dataclass(frozen=True, slots=True)
class _Field:
    """An attribute of a log's state, under its name in JSON. It is left out where a new log has the same."""

    name: str
    attribute: str
    to_json: Callable[[Any], Any] = _same
    from_json: Callable[[Any], Any] = _same


def log_to_json(log: LogState) -> dict[str, Any]:
    """A log's state without default values, since every commit copies it."""
    own = {
        field.name: field.to_json(value)
        for field in _FIELDS
        if (value := getattr(log, field.attribute)) != getattr(_NEW, field.attribute)
    }
    held, losers_removed = log.held, _losers_removed(log)
    if log.volume.chunks:
        own["chunks"] = [log.clean.chunks, log.dirty.chunks]
    if held is not None and held.chunks:
        own["held_by_chunks"] = [held.chunks, held.waits]
    if losers_removed is not None:
        own["losers_removed"] = losers_removed
    return own


def log_from_json(partition: int, data: Mapping[str, Any], new_epoch: int = FIRST_EPOCH) -> LogState:
    """The inverse of `log_to_json`. `new_epoch` is the epoch of a new log where it was written."""
    attributes = {
        field.attribute: field.from_json(value)
        for name, value in data.items()
        if value is not None and (field := _FIELD_OF.get(name)) is not None
    }
    if "chunks" in data:
        for volume, chunks in zip(("clean", "dirty"), data["chunks"], strict=True):
            attributes[volume] = replace(attributes.get(volume, Volume()), chunks=chunks)
    if "held_by_chunks" in data and "held" in attributes:
        attributes["held"] = HeldTombstones(*data["held"], *data["held_by_chunks"])
    if "view" in attributes:
        attributes["view"] = _view_of(data["view"], data)
    taken = _may_lack_losers(attributes.get("last_round_ms"), attributes.get("compacted_below", 0))
    attributes["losers_removed"] = data.get("losers_removed", taken)
    return LogState(partition=partition, **{"epoch": new_epoch, **attributes})


def log_from_text(partition: int, text: str, new_epoch: int) -> LogState:
    """The state of a log from its property. A commit reads those of all logs a few times, and changes few of them."""
    read = _log_known if len(text) <= LOG_KEPT_LENGTH else _log_known.__wrapped__
    return read(partition, text, new_epoch)


@lru_cache(LOGS_KEPT)
def _log_known(partition: int, text: str, new_epoch: int) -> LogState:
    return log_from_json(partition, json.loads(text), new_epoch)


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


def _batch(batch: WrittenBatch) -> list[str | int]:
    return [batch.query_id, batch.batch_id, *([batch.stream_id] if batch.stream_id else [])]


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


def _pair_of(data: Sequence[int]) -> tuple[int, int]:
    offset, at_it = data
    return offset, at_it


def _volume(volume: Volume) -> list[int]:
    passed_through = [volume.passed_through] if volume.passed_through else []
    return [] if volume == Volume() else [volume.records, volume.size_bytes, *passed_through]


_NEW = LogState(0)
_FIELDS = (
    _Field("start", "log_start_offset"),
    _Field("first_dirty", "first_dirty_offset"),
    _Field("end", "log_end_offset"),
    _Field("generation", "generation"),
    _Field("truncated", "truncated", list, tuple),
    _Field(
        "steps", "steps", lambda steps: [[s.end_offset, s.time_ms, s.tombstones] for s in steps], _each(TombstoneStep)
    ),
    _Field("clean", "clean", _volume, lambda parts: Volume(*parts)),
    _Field("dirty", "dirty", _volume, lambda parts: Volume(*parts)),
    _Field("oldest_dirty", "oldest_dirty_timestamp_ms"),
    _Field("last_record", "last_record", _last_record, _last_record_of),
    _Field("runs", "run_ids", list, tuple),
    _Field("last_round", "last_round_ms"),
    _Field("last_round_run", "last_round"),
    _Field("deleted_below", "deleted_below"),
    _Field("compacted_below", "compacted_below"),
    _Field("owed", "round_required"),
    _Field("uncovered", "uncovered"),
    _Field("held", "held", lambda held: [held.below, held.horizon], lambda parts: HeldTombstones(*parts)),
    _Field("aged_before", "aged_before_ms"),
    _Field("view", "view", _view_to_json),
    _Field("batches", "batches", lambda batches: [_batch(batch) for batch in batches], _each(WrittenBatch)),
    _Field("committed", "committed", lambda ends: [[end.end_offset, end.time_ms] for end in ends], _each(CommittedEnd)),
    _Field("epoch", "epoch"),
    _Field("dropped", "dropped", lambda drops: [_drop(drop) for drop in drops], _each(DroppedDeletes)),
    _Field("undone", "undone", lambda undone: [undone.below, undone.of_view], lambda parts: Undone(*parts)),
    _Field("copied_to", "copied_to", _id, lambda parts: MessageId(*parts)),
    _Field("source_epoch", "source_epoch"),
    _Field("source_last", "source_last", list, _pair_of),
    _Field("source_begun", "source_begun", list, _pair_of),
)
"""In the order of the JSON. What is not a plain attribute is added by `log_to_json` and `log_from_json`: chunks, which
versions before would not read within `clean`, `dirty` and `held` (C53), and what depends on other attributes."""
_FIELD_OF = {field.name: field for field in _FIELDS}
