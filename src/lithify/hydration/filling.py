"""Puts records into a stored table, and stores the consumer's position with them (C6).

    consumer ─► changes ─► one transaction: rows, deletes, orders, position ─► table

A run after a crash continues at the stored position, with the table as it was there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from lithify.errors import UnusableEnvironmentError
from lithify.hydration.rows import BusyError, Change, Row, StoredTable, row_of
from lithify.model.record import Record, payload_bytes
from lithify.ports.clock import Clock
from lithify.ports.source import StopAsked
from lithify.service.snapshot.changes import Changes, LogKey
from lithify.service.snapshot.consumer_narration import WAIT_S, Narration
from lithify.service.snapshot.position import PositionText, StoredPosition

T = TypeVar("T")

CHANGE_RECORDS = 50_000
CHANGE_BYTES = 64 * 1024 * 1024
CHANGE_MS = 1_000
"""Records are stored at the first of these limits."""
POSITION_MS = 10_000
"""A position alone, which transaction markers move, is stored at this interval."""


@dataclass(slots=True)
class Turn:
    """Waits for another program that has the file: `waits_ms` at most, None for ever."""

    narration: Narration
    clock: Clock
    stops: Callable[[], bool]
    waits_ms: int | None

    def wait(self, call: Callable[[], T]) -> T:
        """What the call returns, once it raises no `BusyError`.

        Raises `StopAsked` if everything is to end meanwhile, and after `waits_ms` `UnusableEnvironmentError`.
        """
        since_ms = self.clock.monotonic_ms()
        while True:
            try:
                return call()
            except BusyError as busy:
                self.narration.busy(str(busy))
                if self.stops():
                    raise StopAsked from busy
                if self.waits_ms is not None and self.clock.monotonic_ms() - since_ms >= self.waits_ms:
                    raise UnusableEnvironmentError(str(busy), hint="stop that program, or try again later") from busy
            self.clock.sleep(WAIT_S)


@dataclass(slots=True)
class Filling:
    """The filling of one table."""

    table: StoredTable
    changes: Changes
    positions: PositionText
    turn: Turn
    clock: Clock
    _stored: str = field(init=False)
    _stored_ms: int = field(init=False)
    _bytes: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._stored, self._stored_ms = self.table.position, self.clock.monotonic_ms()

    def put(self, records: Sequence[Record]) -> None:
        self.changes.put_all(records)
        self._bytes += payload_bytes(records)

    def is_due(self) -> bool:
        """Whether it is time to `store`."""
        for_ms = self.clock.monotonic_ms() - self._stored_ms
        return (
            len(self.changes.winners) >= CHANGE_RECORDS
            or self._bytes >= CHANGE_BYTES
            or for_ms >= (CHANGE_MS if self.changes.winners else POSITION_MS)
        )

    def store(self, position: StoredPosition) -> None:
        """Stores what was put, with the position after it, if there is anything new. Raises what `Turn.wait` raises."""
        text = self.positions.text(position)
        if text != self._stored:
            self.turn.wait(lambda: self._apply(text))
            self._stored = text
        self.changes.clear()
        self._bytes, self._stored_ms = 0, self.clock.monotonic_ms()

    def close(self) -> None:
        self.table.close()

    def _apply(self, position: str) -> None:
        changes = self.changes
        if changes.by_order:
            changes.drop_losers(self.table.orders(changes.winners.keys()))
        winners = changes.winners
        rows, deleted = list[Row](), list[LogKey]()
        for place, record in winners.items():
            if record.value or not changes.deletes(record):  # a value with bytes is no tombstone
                rows.append(row_of(record))
            else:
                deleted.append(place)
        orders = {place: changes.order(record) for place, record in winners.items()} if changes.by_order else {}
        self.table.apply(Change(rows, deleted, orders, self._stored, position))
