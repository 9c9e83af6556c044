"""Appends the batches of several callers in one commit; each has an outcome of its own (C1, C6, C14, C60, C75).

    parts    a  b  c             b is refused: only its caller gets the error, the others begin again
    log 0    aaaa|ccc            one segment, the records of a part one after the other
    log 1    aa|cccccc

A part that is refused is refused on the newest version, as `append` does it. The rest is a new run, as its files have
other records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from lithify.errors import ConflictError, LithifyError
from lithify.model.message import MessageId
from lithify.model.names import LogId, TopicName
from lithify.model.settings.topic_settings import TopicSettings
from lithify.model.topic.edit import TopicEdit
from lithify.model.topic.log import LastRecord, LogState, WrittenBatch
from lithify.model.topic.state import TopicState
from lithify.ports.files import Arrivals
from lithify.ports.store import Warehouse
from lithify.rules.lifecycle.copies.ids import check_not_copied, with_copied
from lithify.service.commit import commit
from lithify.service.creation import load_or_create
from lithify.service.write.append import (
    AppendResult,
    OffsetRange,
    Staged,
    check_ends,
    stage,
    with_arrivals,
)
from lithify.service.write.append_staged import MEMORY_PARTITION

Ranges = tuple[OffsetRange, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """What one caller appends: records or an Arrow table, not an iterator, and where logs must end before it (C60)."""

    batch: Any
    expected_end: Mapping[int, int]


class PartsRefusedError(LithifyError):
    """Some parts cannot be appended, by their numbers; the others may be."""

    def __init__(self, parts: Mapping[int, LithifyError]) -> None:
        super().__init__("parts of an append were refused")
        self.parts = parts


class Guard(Protocol):
    """What notes appends with keys before they are committed (`append_chain`). All parts may be without a key."""

    def begun(self, state: TopicState) -> TopicState:
        """A version with what `before` needs, newer than `state` if that lacks it. Raises what `commit` raises."""
        ...

    def before(self, newest: TopicState, run_id: str, ranges: Mapping[int, Ranges]) -> WrittenBatch | None:
        """Notes where the parts will be, by number, if the run lands on `newest`; what the state is to say of it.

        Raises `PartsRefusedError` for those that this run may not append.
        """
        ...


def append_joined(
    warehouse: Warehouse, name: TopicName, parts: Sequence[Part], guard: Guard
) -> tuple[AppendResult | LithifyError, ...]:
    """Appends parts, each whole or not at all; for each its offsets, or the error that its caller gets.

    Only the first part may have an `expected_end`, so that it does not depend on others that are refused later.
    """
    assert not any(part.expected_end for part in parts[1:])
    outcomes: dict[int, AppendResult | LithifyError] = {}
    while left := {number: part for number, part in enumerate(parts) if number not in outcomes}:
        try:
            outcomes |= _Attempt(warehouse, name, left, guard).outcomes()
        except PartsRefusedError as refusal:
            outcomes |= refusal.parts
        except LithifyError as error:
            outcomes |= dict.fromkeys(left, error)
    return tuple(outcomes[number] for number in range(len(parts)))


class _Attempt:
    """One run, which appends all of these parts that `receive` does not refuse at once."""

    def __init__(self, warehouse: Warehouse, name: TopicName, parts: Mapping[int, Part], guard: Guard) -> None:
        self._warehouse, self._name, self._guard = warehouse, name, guard
        self._parts = dict(parts)
        self._run_id = warehouse.clock.new_id()
        self._now_ms = warehouse.clock.now_ms()
        self._settings: TopicSettings | None = None
        self._arrived: dict[int, Mapping[int, Arrivals]] = {}
        self._staged: Staged = {}
        self._ranges: dict[int, Ranges] = {}

    def outcomes(self) -> dict[int, AppendResult | LithifyError]:
        state = self._guard.begun(load_or_create(self._warehouse, self._name))
        self._identity = state.identity
        refused = self._receive(state)
        self._parts = {number: part for number, part in self._parts.items() if number not in refused}
        if self._parts:
            self._place(state)
        if not any(self._arrived.values()):
            return {**refused, **{number: AppendResult(str(self._name), state.version, ()) for number in self._parts}}
        self._guard.before(state, self._run_id, self._ranges)
        committed = commit(self._warehouse, self._name, self._run_id, self._decide)
        landed = {n: AppendResult(str(self._name), committed.version, ranges) for n, ranges in self._ranges.items()}
        return {**refused, **landed}

    def _decide(self, newest: TopicState) -> TopicEdit | None:
        if newest.identity != self._identity:
            raise ConflictError(
                f"{self._name}: the topic was deleted and recreated during the append", hint="append again"
            )
        if newest.settings != self._settings and (refused := self._receive(newest)):
            raise PartsRefusedError(refused)
        arrivals = self._place(newest)
        batch = self._guard.before(newest, self._run_id, self._ranges)
        logs = {p: with_arrivals(newest.log(p), self._staged[p], arrivals[p]) for p in arrivals}
        if batch is not None:
            logs[MEMORY_PARTITION] = logs.get(MEMORY_PARTITION, newest.log(MEMORY_PARTITION)).with_batch(batch)
        written = tuple(segment for segments in self._staged.values() for segment in segments)
        return TopicEdit(self._run_id, self._warehouse.clock.now_ms(), logs, add=written, written=written)

    def _receive(self, state: TopicState) -> dict[int, LithifyError]:
        """Checks the records of all parts by the settings of `state`; the errors of those that are refused."""
        refused: dict[int, LithifyError] = {}
        self._arrived, self._staged, self._settings = {}, {}, state.settings
        batches = [part.batch for part in self._parts.values()]
        received = self._warehouse.files.receive_each(state, batches, now_ms=self._now_ms)
        for number, one in zip(self._parts, received, strict=True):
            if isinstance(one, LithifyError):
                refused[number] = one
            else:
                self._arrived[number] = one
        return refused

    def _place(self, state: TopicState) -> dict[int, Arrivals]:
        """Writes the records at the log ends of `state`, and notes the ranges of each part; the arrivals by log.

        Raises `PartsRefusedError`.
        """
        by_log: dict[int, list[Arrivals]] = {}
        refused: dict[int, LithifyError] = {}
        logs = {log.partition: log for log in state.logs}
        for number, arrived in self._arrived.items():
            try:
                check_ends(state, self._parts[number].expected_end)
                identified = ((p, arriving.message_ids) for p, arriving in arrived.items())
                logs |= {p: _checked(LogId(self._name, p), logs[p], ids) for p, ids in identified if ids is not None}
            except LithifyError as error:
                refused[number] = error
                continue
            for partition, arriving in arrived.items():
                by_log.setdefault(partition, []).append(arriving)
        if refused:
            raise PartsRefusedError(refused)
        arrivals = {p: self._warehouse.files.joined(parts) for p, parts in sorted(by_log.items())}
        self._staged = stage(self._warehouse, state, arrivals, self._staged, self._run_id)
        self._ranges = _ranges(self._arrived, {p: state.log(p).log_end_offset for p in arrivals})
        return arrivals


def _checked(name: LogId, log: LogState, ids: tuple[MessageId, MessageId]) -> LogState:
    """The log as the next part finds it. Raises `InvalidRecordError` for message ids that it would have by then."""
    check_not_copied(name, log, ids)
    return with_copied(log, LastRecord(0, 0, ids[1]))


def _ranges(arrived: Mapping[int, Mapping[int, Arrivals]], ends: dict[int, int]) -> dict[int, Ranges]:
    """By part, its offsets: one part follows the other from the log ends on."""
    placed: dict[int, Ranges] = {}
    for number, logs in arrived.items():
        ranges = []
        for partition, arriving in logs.items():
            start = ends[partition]
            ends[partition] = end = start + arriving.records
            ranges.append(OffsetRange(partition, start, end, arriving.records))
        placed[number] = tuple(ranges)
    return placed
