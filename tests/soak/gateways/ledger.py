"""Topics that several producers append to at once over HTTP, and what must have become of each append.

    answered         all its records are there once, where the answer said
    given up         all of its records are there once, or none of them is
    sent again       whenever: the answer is the first one

Half of the records have keys of their own, which no round removes. The others share a few keys, of which the last one
remains.
"""

from __future__ import annotations

import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from threading import Lock
from typing import Any

from lithify.model.record import Record
from soak.journal import at

PARTITIONS = 2
SHARED_KEYS = 20
Place = tuple[int, int]
"""A partition and an offset."""


@dataclass(slots=True)
class Append:
    """One append, from when it is sent first."""

    key: str
    records: Sequence[Record]
    answer: Mapping[str, Any] | None = None

    def places(self) -> list[tuple[Place, Record]]:
        """Where its records are, by its answer."""
        assert self.answer is not None
        found = []
        for one in self.answer["ranges"]:
            mine = [record for record in self.records if record.partition == one["partition"]]
            found += [((one["partition"], one["start_offset"] + n), record) for n, record in enumerate(mine)]
        return found


@dataclass(slots=True)
class Ledger:
    """All appends to one topic. Several threads add to it."""

    topic: str
    config: Mapping[str, object]
    appends: list[Append] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock)

    def begun(self, key: str, luck: Random) -> Append:
        """A new one, which is to be sent."""
        records = [_record(f"{key}-{n}", luck) for n in range(luck.randint(1, 30))]
        append = Append(key, records)
        with self._lock:
            self.appends.append(append)
        return append

    def answered(self, append: Append, answer: Mapping[str, Any]) -> None:
        """Takes down the first answer; every later one is to be the same."""
        with self._lock:
            if append.answer is None:
                append.answer = answer
                counts = Counter(record.partition for record in append.records)
                told = {r["partition"]: r["end_offset"] - r["start_offset"] for r in answer["ranges"]}
                if told != dict(counts) or answer["records"] != len(append.records):
                    self.findings.append(f"{self.topic}: {append.key}: {answer} for {dict(counts)} records")
            elif append.answer != answer:
                self.findings.append(f"{self.topic}: {append.key} got {answer}, after {append.answer}")

    @property
    def unanswered(self) -> int:
        return sum(append.answer is None for append in self.appends)

    def compared(self, found: Iterable[Record]) -> Iterator[str]:
        """What is wrong with the records that are there in the end, in words."""
        by_place, by_value = dict[Place, Record](), defaultdict[bytes | None, list[Place]](list)
        for record in found:
            place = (record.partition or 0, at(record))
            by_place[place] = record
            by_value[record.value].append(place)
        yield from self.findings
        yield from self._doubled(by_value)
        latest = dict[bytes | None, Place]()
        for append in self.appends:
            if append.answer is None:
                yield from self._half(append, by_value)
                continue
            for place, record in append.places():
                if _is_own(record) and by_value[record.value] != [place]:
                    yield f"{self.topic}: {append.key}: {record.key!r} is at {by_value[record.value]}, not {place}"
                elif not _is_own(record):
                    latest[record.key] = max(place, latest.get(record.key, place))
        yield from self._shared(by_place, latest)

    def _doubled(self, by_value: Mapping[bytes | None, Sequence[Place]]) -> Iterator[str]:
        sent = {record.value for append in self.appends for record in append.records}
        for value, places in by_value.items():
            if value not in sent:
                yield f"{self.topic}: {value!r} at {places} was sent by no producer"
            elif len(places) > 1:
                yield f"{self.topic}: {value!r} is there {len(places)} times, at {places}"

    def _half(self, append: Append, by_value: Mapping[bytes | None, Sequence[Place]]) -> Iterator[str]:
        there = {bool(by_value.get(record.value)) for record in append.records if _is_own(record)}
        if len(there) > 1:
            yield f"{self.topic}: {append.key}, which nobody has answered, is there in part"

    def _shared(self, by_place: Mapping[Place, Record], latest: Mapping[bytes | None, Place]) -> Iterator[str]:
        left = {record.key: place for place, record in by_place.items() if not _is_own(record)}
        if len(left) != sum(not _is_own(record) for record in by_place.values()):
            yield f"{self.topic}: of a key that is shared two records are left"
        for key, place in latest.items():
            if key not in left or left[key] < place:
                yield f"{self.topic}: {key!r} is at {left.get(key)}, and was acknowledged at {place}"


def _record(name: str, luck: Random) -> Record:
    """Its value tells it from all others."""
    key = name.encode() if luck.random() < 0.5 else b"shared-%d" % luck.randrange(SHARED_KEYS)
    value = b"%s %s" % (name.encode(), b"x" * luck.randrange(200))
    return Record(key, value, None, partition=zlib.crc32(key) % PARTITIONS)


def _is_own(record: Record) -> bool:
    return not (record.key or b"").startswith(b"shared-")
