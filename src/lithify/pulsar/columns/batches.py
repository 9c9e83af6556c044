"""The messages of many batches at once, found without walking from one to the next.

    payload   00 00 00 09 12 01 61 18 …  value  00 00 00 09 12 01 62 18 …  value
              ^ two zeros, a size, a tag        ^ again: both may be starts of messages

Where two bytes are zero and a known first tag follows the size, a message may start. All such places are read
as if one did. In most batches each of them ends where the next begins, so that they are its messages, and
no others; where a value looks like a start, the batch is walked through the places. A batch in which the walk
does not arrive at its end, or whose messages are not plain, is left to `format/batch.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from lithify.pulsar.columns.fields import Bools, Buffer, Ints, MessageFields, Schema, Spans, fields_of

KEY: Final = 0x12
PAYLOAD_SIZE: Final = 0x18
COMPACTED_OUT: Final = 0x20
EVENT_TIME: Final = 0x28
PROPERTY: Final = 0x0A

SINGLE_MESSAGE: Final = Schema(
    numbers={PAYLOAD_SIZE: -1, COMPACTED_OUT: 0, EVENT_TIME: 0},
    spans=(KEY,),
    repeated=PROPERTY,
    others=(0x30, 0x3A, 0x40, 0x48, 0x50),
)
"""`SingleMessageMetadata` of wire.proto; of a payload size that is missing there is -1."""

PAIR_KEY: Final = 0x0A
PAIR_VALUE: Final = 0x12
KEY_VALUE: Final = Schema(spans=(PAIR_KEY, PAIR_VALUE))

WINDOW_BYTES: Final = 1 << 18

_LEAST_METADATA: Final = 2
"""A message has at least a payload size."""
_NOWHERE: Final = np.zeros(0, np.int64)
_MOST_PLACES: Final = 4
"""Most places that may be starts, for each message; what has more is cheaper to walk."""


@dataclass(frozen=True, slots=True)
class Batches:
    """Uncompressed batches in a buffer: from where to where, of how many messages by their metadata.

    `kept` has field 31 of those that have it, by the number of the batch.
    """

    start: Ints
    end: Ints
    count: Ints
    kept: Mapping[int, Sequence[int]]


@dataclass(frozen=True, slots=True)
class BatchMessages:
    """Messages in order: the number of their batch, their places in the buffer, and what their metadata says."""

    batch: Ints
    batch_index: Ints
    start: Ints
    payload_start: Ints
    end: Ints
    key: Spans
    compacted_out: Bools
    event_time: Ints


def find_messages(buffer: Buffer, batches: Batches) -> tuple[BatchMessages, list[int]]:
    """The messages of all batches but some; and the numbers of those, which have to be read one by one."""
    places = _Places.of(buffer, batches)
    chosen, left = places.walked(batches)
    batch = places.batch[chosen]
    counts = np.bincount(batch, minlength=len(batches.start))
    first = np.cumsum(counts) - counts
    index = np.arange(len(batch)) - np.repeat(first, counts)
    for odd in np.flatnonzero((counts != batches.count) & (counts > 0)).tolist():
        kept = batches.kept.get(odd, ())
        if len(kept) == counts[odd]:
            index[first[odd] : first[odd] + counts[odd]] = kept
        else:
            left.append(odd)
    if left:
        fine = ~np.isin(batch, left)
        chosen, batch, index = chosen[fine], batch[fine], index[fine]
    return places.messages(chosen, batch, index), sorted(left)


@dataclass(frozen=True, slots=True)
class _Places:
    """Where messages may start, in order, and what they would be."""

    batch: Ints
    start: Ints
    payload_start: Ints
    end: Ints
    fields: MessageFields

    @classmethod
    def of(cls, buffer: Buffer, batches: Batches) -> _Places:
        start = _likely_starts(buffer)
        low, high = (np.searchsorted(start, limit) for limit in (batches.start, batches.end))
        several = high - low
        several[several > _MOST_PLACES * batches.count] = 0
        batch = np.repeat(np.arange(len(low)), several)
        start = start[np.arange(len(batch)) + np.repeat(low - np.cumsum(several) + several, several)]
        size = (buffer.bytes[start + 2].astype(np.int64) << 8) | buffer.bytes[start + 3]
        payload_start = start + 4 + size
        fits = (size >= _LEAST_METADATA) & (payload_start <= batches.end[batch])
        batch, start, payload_start = batch[fits], start[fits], payload_start[fits]
        fields = fields_of(buffer, start + 4, payload_start, SINGLE_MESSAGE)
        payload_size = fields.numbers[PAYLOAD_SIZE]
        fields.plain[payload_size < 0] = False
        drop_bad_properties(buffer, fields)
        return cls(batch, start, payload_start, payload_start + payload_size, fields)

    def walked(self, batches: Batches) -> tuple[Ints, list[int]]:
        """Which places are messages; and the batches for which that cannot be said."""
        low, high = (np.searchsorted(self.batch, np.arange(len(batches.start)), side) for side in ("left", "right"))
        some = np.flatnonzero(high > low)
        expected = np.append(self.start[1:], -1)
        expected[high[some] - 1] = batches.end[some]
        unlinked: Bools = ~self.fields.plain | (self.end != expected)
        straight = np.zeros(len(low), np.bool_)
        straight[some] = self.start[low[some]] == batches.start[some]
        straight[self.batch[unlinked]] = False
        chosen: Bools = np.repeat(straight, high - low)
        left = []
        for crooked in np.flatnonzero(~straight).tolist():
            steps = self._walk(int(low[crooked]), int(high[crooked]), batches.start[crooked], batches.end[crooked])
            if steps:
                chosen[steps] = True
            else:
                left.append(crooked)
        return np.flatnonzero(chosen), left

    def _walk(self, low: int, high: int, start: int, end: int) -> list[int]:
        """From message to message through the places of a batch; nothing if that does not arrive at its end."""
        number = dict(zip(self.start[low:high].tolist(), range(low, high), strict=True))
        plain, ends = self.fields.plain[low:high].tolist(), self.end[low:high].tolist()
        at, steps = start, []
        while at != end:
            place = number.get(at)
            if place is None or not plain[place - low]:
                return []
            steps.append(place)
            at = ends[place - low]
        return steps

    def messages(self, chosen: Ints, batch: Ints, index: Ints) -> BatchMessages:
        fields, key = self.fields, self.fields.spans[KEY]
        return BatchMessages(
            batch,
            index,
            self.start[chosen],
            self.payload_start[chosen],
            self.end[chosen],
            Spans(key.start[chosen], key.size[chosen]),
            fields.numbers[COMPACTED_OUT][chosen] != 0,
            fields.numbers[EVENT_TIME][chosen],
        )


def _likely_starts(buffer: Buffer) -> Ints:
    """The places with two zeros and, behind the size, a first tag. In windows, so that masks remain in the cache."""
    last = max(0, len(buffer.data) - 8)
    windows = range(0, last, WINDOW_BYTES)
    return np.concatenate(
        [_likely_between(buffer.bytes, at, min(at + WINDOW_BYTES, last)) for at in windows] or [_NOWHERE]
    )


def _likely_between(data: npt.NDArray[np.uint8], start: int, end: int) -> Ints:
    likely: Bools = data[start:end] == 0
    likely &= data[start + 1 : end + 1] == 0
    tag = data[start + 4 : end + 4]
    likely &= (tag == KEY) | (tag == PAYLOAD_SIZE) | (tag == PROPERTY)
    return start + np.flatnonzero(likely)


def drop_bad_properties(buffer: Buffer, fields: MessageFields) -> None:
    """A message of which a property has no key or no value is not plain."""
    message, pairs = fields.repeated
    if not len(message):
        return
    read = fields_of(buffer, pairs.start, pairs.start + pairs.size, KEY_VALUE)
    whole = read.plain & (read.spans[PAIR_KEY].start >= 0) & (read.spans[PAIR_VALUE].start >= 0)
    fields.plain[message[~whole]] = False
