"""Reads partitions of a Pulsar topic from given ids on, as messages arrive, endlessly.

    reached ──► last id? ──► read up to it ──► check ──► records with ids and offsets
                   └── none behind `reached`: the next partition, or a pause

Each look asks for the last id and reads the entries up to it. What was read counts only after a check that nothing
behind `reached` has been trimmed and that the topic is still the same: a check before it would miss both.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np
import pyarrow as pa

from lithify.columnar.arrivals.arrived_columns import GIVEN_ENVELOPES, given_batches
from lithify.columnar.segment.convert import to_records
from lithify.columnar.segment.schema import OFFSET, TIMESTAMP_TYPE
from lithify.model.message import MessageId
from lithify.model.record import Record
from lithify.ports.clock import Clock
from lithify.pulsar.client import TopicReader
from lithify.pulsar.columns import messages_of
from lithify.pulsar.format.entry import RawEntry
from lithify.pulsar.lake.entry_continuation import first_entry
from lithify.pulsar.lake.records import records_of
from lithify.pulsar.lake.replaced_messages import behind
from lithify.pulsar_consumer.kept_whole import KeptWhole
from lithify.service.snapshot.live import COPY_AGAIN, Reached

PAUSE_S: Final = 0.2
"""Between two checks of all partitions while there are no messages."""

Check = Callable[[int, Reached], None]
LastId = Callable[[int], MessageId | None]
NONE_KEPT: Final[Mapping[int, KeptWhole]] = MappingProxyType({})


@dataclass(slots=True)
class _Partition:
    """One partition, and the range of entries that is being read of it."""

    number: int
    reader: TopicReader
    reached: Reached
    check: Check
    kept_whole: KeptWhole | None
    """What skips entries that their producer wrote damaged (C74); None: they are errors."""
    reading: Generator[Sequence[Record], None, None] | None = None
    published_ms: int | None = None
    """When the message at `reached` was published; None: this has not read it."""

    def take(self, last_id: LastId) -> Sequence[Record]:
        """The next records; none if there are none."""
        while self.reading is not None or not self.is_at_end(last_id):
            if self.reading is None:
                last = last_id(self.number)
                assert last is not None
                self.reading = self._read(MessageId(*last.place))
            if records := next(self.reading, None):
                self.reached, self.published_ms = Reached.by(records[-1]), records[-1].timestamp
                return records
            self.reading = None
        return ()

    def is_at_end(self, last_id: LastId) -> bool:
        last, at = last_id(self.number), self.reached.message
        if last is not None and at is not None and last.place < at.place:
            self.check(self.number, self.reached)  # it was set back: it would seem to have nothing
        return self.reading is None and (last is None or self.reached.has(Reached(0, last)))

    def close(self) -> None:
        if self.reading is not None:
            self.reading.close()

    def _read(self, end: MessageId) -> Generator[Sequence[Record], None, None]:
        for entries in self._behind(end):
            self.check(self.number, self.reached)
            for messages in messages_of(entries, self.kept_whole):
                table = records_of(messages, self.number, self.reached.message, self.kept_whole)
                if self.kept_whole is not None:
                    self.kept_whole.count_new()
                if table.num_rows:
                    yield tuple(to_records(_numbered(table, self.reached.offset)))
        self.check(self.number, self.reached)
        if self.reached.message is None or self.reached.message.place != end.place:
            self.published_ms = None
        self.reached = Reached(self.reached.offset, end)  # behind it there may have been entries without records

    def _behind(self, end: MessageId) -> Iterator[Sequence[RawEntry]]:
        """The entries behind `reached`, read from its own one on where that can be compared (C52)."""
        at, published_ms = self.reached.message, self.published_ms
        if at is None or published_ms is None:
            yield from self.reader.read(first_entry(at), end)
            return
        for number, entries in enumerate(self.reader.read(MessageId(*at.place), end)):
            if number:
                yield entries
            else:
                yield behind(at, published_ms, entries, topic=self.reader.topic, hint=COPY_AGAIN)


class PulsarTail:
    """See `snapshot.live.LiveTail`. `check` raises if what was read behind a place is not to be used.

    `kept_whole` goes round damaged entries, by partition; without one they are errors.
    """

    is_idle = True
    """What is fetched is returned at once."""

    def __init__(
        self,
        readers: Mapping[int, TopicReader],
        starts: Mapping[int, Reached],
        clock: Clock,
        *,
        last_id: LastId,
        check: Check,
        kept_whole: Mapping[int, KeptWhole] = NONE_KEPT,
    ) -> None:
        self._clock, self._last_id = clock, last_id
        self._partitions = [_Partition(p, readers[p], at, check, kept_whole.get(p)) for p, at in starts.items()]

    @property
    def reached(self) -> Mapping[int, Reached]:
        return {one.number: one.reached for one in self._partitions}

    def take(self, timeout_s: float) -> Sequence[Record]:
        deadline_ms = self._clock.monotonic_ms() + round(timeout_s * 1000)
        while True:
            for place, one in enumerate(self._partitions):
                if records := one.take(self._last_id):
                    self._partitions = self._partitions[place + 1 :] + self._partitions[: place + 1]  # its turn is over
                    return records
            left_ms = deadline_ms - self._clock.monotonic_ms()
            if left_ms <= 0:
                return ()
            self._clock.sleep(min(PAUSE_S, left_ms / 1000))

    def is_at_end(self, timeout_s: float) -> bool:
        return all(one.is_at_end(self._last_id) for one in self._partitions)

    def close(self) -> None:
        for one in self._partitions:
            one.close()


def _numbered(table: pa.Table, start: int) -> pa.Table:
    """With the columns and types that the copy converts it to, and the offsets that it will give to these records."""
    count = table.num_rows
    numbered = table.append_column(OFFSET, pa.array(np.arange(start, start + count, dtype=np.int64)))
    numbered = numbered.append_column(TIMESTAMP_TYPE, pa.repeat(pa.scalar(0, pa.int32()), count))
    return pa.Table.from_batches(given_batches(numbered, GIVEN_ENVELOPES))
