"""Reads entries of a topic as a broker stores them, over Pulsar's binary protocol.

    start                                        end
      ├──── list ────┼──── list ────┼──── list ───┤          each some MiB, yielded as they fill
                            ╳ connection lost
                            └► reconnect, go on after the last entry that was yielded

Brokers do not send everything: markers and aborted transactions are skipped, a compacted view has gaps, and
`end` itself may be such a gap. So the reader asks which entry is the last one that it can get, and stops at
the first that is at or after `end`, or at that last one. If nothing comes for a while, since that
entry was trimmed or compacted away meanwhile, it reconnects and asks again.

Brokers of Pulsar 4.2 cannot tell the last entry where that is an encrypted one of the view. Nothing is behind the
view then, so it is read from its first entry on, and ends with as many as its ledger has.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from threading import Event
from typing import Final

import google_crc32c

from lithify.errors import BrokerError
from lithify.model.message import MessageId
from lithify.pulsar.client.admin import Admin
from lithify.pulsar.client.broker_refusals import SealedEndError, TransientBrokerError
from lithify.pulsar.client.config import ClientConfig
from lithify.pulsar.client.connection import Connection
from lithify.pulsar.client.consumer import CLOSE_CONSUMER, LARGEST, allow, last_id, reading
from lithify.pulsar.client.frames import MESSAGE, Frame
from lithify.pulsar.client.names import TopicName
from lithify.pulsar.client.patience import Outage
from lithify.pulsar.format.entry import CHECKSUM_MAGIC, RawEntry, entry_of
from lithify.waits.deadline import Deadline

LIST_BYTES: Final = 4 << 20
ENTRY_OVERHEAD_BYTES: Final = 200
"""What an entry costs in memory beside its bytes."""
PERMITS: Final = 1 << 30
"""Messages that the broker may send; TCP holds it back. It counts in 32 bits, and the messages of batches."""
FIRST_PAUSE_S: Final = 0.1
LONGEST_PAUSE_S: Final = 5.0

NOTHING_YET: Final = (-1, -1)

_stored: Final = struct.Struct(">I").pack
_crc32c: Final = google_crc32c.value


@dataclass(frozen=True, slots=True)
class TopicReader:
    """Reads a topic that is not partitioned, or one partition. Picklable; each call has a connection of its own."""

    config: ClientConfig
    topic: str

    def __post_init__(self) -> None:
        TopicName.parsed(self.topic)

    def read(self, start: MessageId | None, end: MessageId, *, compacted: bool = False) -> Iterator[list[RawEntry]]:
        """Entries from `start`, or the earliest one, to `end`, both inclusive: whole ones, whatever the batch index.

        `compacted`: the compacted view first, then what is behind it. Raises `UnknownSourceError`, `DamagedError`,
        and `BrokerError` if the broker refuses, or is not back after `outage_s`.
        """
        position, last = start, (end.ledger, end.entry)
        outage: Outage | None = None
        pause_s = FIRST_PAUSE_S
        while True:
            try:
                for entries in self._until(position, last, compacted=compacted):
                    yield entries
                    position, outage, pause_s = _after(entries[-1]), None, FIRST_PAUSE_S
                return
            except TransientBrokerError as error:
                outage = outage or Outage(self.config.outage_s)
                outage.pause(pause_s, error, Event().wait)
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    def entry(self, at: MessageId) -> RawEntry | None:
        """The entry of that id; None: it is not there any more, or the broker answers and does not send it.

        It does not where bookies have lost the entry. Raises `TransientBrokerError` if another try may succeed.
        """
        begin = MessageId(*at.place)
        with reading(self.config, self.topic, begin, compacted=False) as connection:
            there = last_id(connection, self.topic)
            if there is None or there.place < at.place:
                return None
            allow(connection, 1)
            try:
                entry = next(self._sent(connection, (at.ledger, at.entry - 1)))
            except TransientBrokerError:
                last_id(connection, self.topic)  # raises where the broker does not answer, or has closed the reader
                return None
            return entry if entry[:2] == at.place else None

    def _until(self, position: MessageId | None, last: tuple[int, int], *, compacted: bool) -> Iterator[list[RawEntry]]:
        """What one connection gets. Raises `TransientBrokerError` if another one may get more."""
        if position is not None and last < position[:2]:
            return
        with reading(self.config, self.topic, position, compacted=compacted) as connection:
            try:
                there = last_id(connection, self.topic)
            except SealedEndError:
                if not self.config.admin_url:
                    raise
            else:
                if there is None or (position is not None and there[:2] < position[:2]):
                    return
                allow(connection, PERMITS)
                before = NOTHING_YET if position is None else (position.ledger, position.entry - 1)
                yield from _lists(self._sent(connection, before), last, min(last, there[:2]))
                return
        first = NOTHING_YET if position is None else position.place
        yield from _lists((entry for entry in self._view() if entry[:2] >= first), last, last)

    def _view(self) -> Iterator[RawEntry]:
        """The entries of the view that is served, as many as there are: at most so many of a later one are before its
        end. Where fewer come, another connection asks again."""
        stats = Admin(self.config).internal_stats(self.topic)
        try:
            entries = int(stats["compactedLedger"]["entries"])
        except (LookupError, TypeError, ValueError) as error:
            raise BrokerError(f"{self.topic}: its internal statistics do not have Pulsar's form: {error!r}") from error
        with reading(self.config, self.topic, None, compacted=True) as connection:
            allow(connection, PERMITS)
            yield from islice(self._sent(connection, NOTHING_YET), entries)

    def _sent(self, connection: Connection, before: tuple[int, int]) -> Iterator[RawEntry]:
        """Entries after `before`, without end."""
        at = before
        while True:
            for entry in self._received(connection, at):
                if entry[:2] <= at:
                    raise BrokerError(
                        f"{self.topic}: {connection.where} sent entry {entry.place} after {at[0]}:{at[1]}"
                    )
                at = entry[:2]
                yield entry

    def _received(self, connection: Connection, at: tuple[int, int]) -> list[RawEntry]:
        """The next entries, at least one. Errors say after which one: bookies may not be able to read the next."""
        deadline = Deadline(self.config.answer_s)
        try:
            while True:
                if entries := self._entries(connection.received(deadline)):
                    return entries
        except TransientBrokerError as error:
            place = f"after entry {at[0]}:{at[1]}" if at[1] >= 0 else f"at the beginning of ledger {at[0]}"
            where = "at its first entry" if at == NOTHING_YET else place
            hint = error.hint or "see the broker's log; a bookie may lack an entry or have a damaged one"
            raise TransientBrokerError(f"{self.topic}: {where}: {error.message}", hint=hint) from error

    def _entries(self, frames: list[Frame]) -> list[RawEntry]:
        """Of MESSAGE frames, with their checksums verified."""
        entries = []
        for command, data in frames:
            if command.type == MESSAGE:
                at = command.message.message_id
                entry = RawEntry(at.ledger_id, at.entry_id, data)
                if max(entry[:2]) > LARGEST:
                    raise BrokerError(f"{self.topic}: the broker sent an entry with an invalid id: {entry.place}")
                if data[:2] != CHECKSUM_MAGIC or data[2:6] != _stored(_crc32c(data[6:])):
                    entry_of(
                        entry, any_metadata=True
                    )  # says what is wrong, unless it has no checksum or has it behind other metadata
                entries.append(entry)
            elif command.type == CLOSE_CONSUMER:
                raise TransientBrokerError("the broker closed the reader, as when it moves a topic")
        return entries


def _lists(entries: Iterable[RawEntry], last: tuple[int, int], stop: tuple[int, int]) -> Iterator[list[RawEntry]]:
    """Lists of those up to `last`; ends with the first one at or after `stop`."""
    taken: list[RawEntry] = []
    size = 0
    for entry in entries:
        if entry[:2] <= last:
            taken.append(entry)
            size += len(entry.data) + ENTRY_OVERHEAD_BYTES
        if entry[:2] >= stop:
            break
        if size >= LIST_BYTES:
            yield taken
            taken, size = [], 0
    if taken:
        yield taken


def _after(entry: RawEntry) -> MessageId:
    return MessageId(entry.ledger, entry.entry + 1)
