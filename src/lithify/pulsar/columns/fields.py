"""Fields of very many small protobuf messages at once, in steps of one field of each.

    message 0   [12 02 'k1'] [18 01] [30 00]        step 1 reads the first field of every message,
    message 1   [12 03 'k22'] [18 64] [28 …]        step 2 the second one of those that have one, …

A step costs some 30 operations of numpy, however many messages there are. What is unusual (unknown fields, numbers of
more than 7 bytes, ends that do not fit) is not judged here. Such a message is not `plain`, and the caller reads it with
protobuf. If it is plain, protobuf reads the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Words = npt.NDArray[np.uint64]

PADDING: Final = bytes(16)
"""What a buffer must end with, so that 8 bytes can be read at any place."""

MOST_STEPS: Final = 64
"""Most fields of a plain message."""


@dataclass(frozen=True, slots=True)
class Schema:
    """Which tags (eight times the number of the field, and its wire type) a kind of message has, and what is wanted.

    `numbers` gives the values of fields that are absent, `spans` are fields of bytes, of `repeated` ones all are
    wanted, and `others` are skipped.
    """

    numbers: Mapping[int, int] = field(default_factory=dict)
    spans: tuple[int, ...] = ()
    repeated: int = -1
    others: tuple[int, ...] = ()

    @property
    def tags(self) -> frozenset[int]:
        return frozenset((*self.numbers, *self.spans, *self.others, self.repeated))


@dataclass(frozen=True, slots=True)
class Spans:
    """Pieces of the buffer; a start of -1 means none."""

    start: Ints
    size: Ints


@dataclass(frozen=True, slots=True)
class MessageFields:
    """The fields of all messages, by tag. `repeated`: the message, the start and the size of each, not in order."""

    plain: Bools
    numbers: dict[int, Ints]
    spans: dict[int, Spans]
    repeated: tuple[Ints, Spans]


class Buffer:
    """Bytes that end with `PADDING`, as bytes and as a word of 8 bytes at each place."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.bytes: npt.NDArray[np.uint8] = np.frombuffer(data, np.uint8)
        self.words: npt.NDArray[Any] = np.ndarray((len(data) - 7,), "<u8", data, strides=(1,))


def fields_of(buffer: Buffer, start: Ints, end: Ints, schema: Schema) -> MessageFields:
    """The fields of the messages in `buffer` from `start` to `end`."""
    return _Scan(buffer, len(start), schema).run(start, end)


class _Scan:
    def __init__(self, buffer: Buffer, count: int, schema: Schema) -> None:
        self._buffer, self._schema = buffer, schema
        self._tags = schema.tags
        self._plain: Bools = np.ones(count, np.bool_)
        self._numbers = {tag: np.full(count, value, np.int64) for tag, value in schema.numbers.items()}
        self._spans = {tag: Spans(np.full(count, -1), np.zeros(count, np.int64)) for tag in schema.spans}
        self._repeated: list[tuple[Ints, Ints, Ints]] = []

    def run(self, start: Ints, end: Ints) -> MessageFields:
        rows: Ints = np.arange(len(start))
        at = start
        for _ in range(MOST_STEPS):
            more = at < end
            if not more.all():
                rows, at, end = rows[more], at[more], end[more]
            if not len(rows):
                break
            at = self._step(rows, at, end)
        self._plain[rows[at < end]] = False
        return MessageFields(self._plain, self._numbers, self._spans, self._all_repeated())

    def _step(self, rows: Ints, at: Ints, end: Ints) -> Ints:
        """The places after one field of each row: the end of the row if it is not plain."""
        tag, rest, after = _tags(self._buffer.words[at], at)
        value, size = _varints(rest)
        after += size
        known: Bools = size <= 7
        for one_tag in np.flatnonzero(np.bincount(tag)).tolist():
            chosen = slice(None) if one_tag == tag[0] and (tag == one_tag).all() else np.flatnonzero(tag == one_tag)
            if one_tag not in self._tags:
                known[chosen] = False
            elif one_tag & 7 == 2:
                self._take_span(one_tag, rows[chosen], after[chosen], value[chosen])
                after[chosen] += value[chosen]
            elif one_tag in self._numbers:
                self._numbers[one_tag][rows[chosen]] = value[chosen]
        known &= after <= end
        if not known.all():
            self._plain[rows[~known]] = False
            after = np.where(known, after, end)
        return after

    def _take_span(self, tag: int, rows: Ints, start: Ints, size: Ints) -> None:
        if tag == self._schema.repeated:
            self._repeated.append((rows, start.copy(), size))  # the caller moves on in place
        elif tag in self._spans:
            self._spans[tag].start[rows], self._spans[tag].size[rows] = start, size

    def _all_repeated(self) -> tuple[Ints, Spans]:
        none: Ints = np.zeros(0, np.int64)
        parts = self._repeated or [(none, none, none)]
        rows, start, size = (np.concatenate(column) for column in zip(*parts, strict=True))
        fits = self._plain[rows]
        return rows[fits], Spans(start[fits], size[fits])


_MOST_TAG: Final = 511
"""Any tag that is not known; tags of fields up to 63 are below it."""


def _tags(words: Words, at: Ints) -> tuple[Ints, Words, Ints]:
    """The tags that words start with, what follows them, and where that is."""
    tag, rest = (words & np.uint64(0xFF)).astype(np.int64), words >> np.uint64(8)
    long: Bools = tag > 0x7F
    if not long.any():
        return tag, rest, at + 1
    second = (rest & np.uint64(0xFF)).astype(np.int64)
    tag = np.where(long, np.minimum((tag & 0x7F) | second << 7, _MOST_TAG), tag)
    # The seventh byte that is not there of a word after a long tag is 0: a number that would need it is not read.
    rest = np.where(long, (rest >> np.uint64(8)) | (np.uint64(0x80) << np.uint64(48)), rest)
    return tag, rest, at + 1 + long


_MORE: Final = np.uint64(0x80808080808080)
"""The bits of 7 bytes that say that the number continues."""

_JOINTS: Final = tuple(
    (np.uint64(low), np.uint64(high), np.uint64(shift))
    for low, high, shift in (
        (0x007F007F007F007F, 0x00007F007F007F00, 1),
        (0x00003FFF00003FFF, 0x3FFF00003FFF0000, 2),
        (0x000000000FFFFFFF, 0x0FFFFFFF00000000, 4),
    )
)
"""How groups of 7 bits move together: by pairs, then pairs of pairs, then the halves."""


def _varints(words: Words) -> tuple[Ints, Ints]:
    """The numbers that words of 7 bytes start with, and their sizes in bytes; a size over 7 if they are longer."""
    stop = ~words & _MORE
    below = (stop & -stop) - np.uint64(1)
    size = (np.bitwise_count(below) >> 3).astype(np.int64) + 1
    value = words & below & ~_MORE
    if len(size) and size.max() > 1:
        for low, high, shift in _JOINTS:
            value = (value & low) | ((value & high) >> shift)
    return value.astype(np.int64), size
