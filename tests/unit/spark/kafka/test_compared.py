"""The records of a source at the offsets of a copy's last ones, as a consumer of the JVM gets them (C72)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pytest

from lithify.errors import BrokerError
from lithify.model.sources.source import Signs, signs_of
from lithify.spark.kafka.log_signs import signs_between

POLLS = 5
KEY = b"key"


@dataclass(frozen=True)
class Fetched:
    """What a poll has got: by partition the offset and the timestamp of its last record, None for a marker alone."""

    got: Mapping[str, tuple[int, int] | None]

    def records(self, place: str) -> Records:
        return Records([found] if (found := self.got.get(place)) else [])


class Records(list):
    def size(self) -> int:
        return len(self)

    def get(self, row: int) -> Record:
        return Record(*self[row])


@dataclass(frozen=True)
class Record:
    at: int
    time_ms: int

    def offset(self) -> int:
        return self.at

    def timestamp(self) -> int:
        return self.time_ms

    def key(self) -> bytes:
        return KEY

    def value(self) -> None:
        """A delete."""


@dataclass
class Consumer:
    """One that gets `answers` in its first polls, and nothing afterwards."""

    answers: list[dict[str, tuple[int, int] | None]]
    at: dict[str, int] = field(default_factory=dict)
    paused: list[str] = field(default_factory=list)

    def seek(self, place: str, offset: int) -> None:
        self.at[place] = offset

    def position(self, place: str) -> int:
        return self.at[place]

    def pause(self, places: list[str]) -> None:
        self.paused += places

    def polls(self) -> Iterator[Fetched]:
        for n in range(POLLS):
            got = self.answers[n] if n < len(self.answers) else {}
            for place, found in got.items():
                self.at[place] = found[0] + 1 if found else self.at[place] + 1
            yield Fetched(got)


def asked(answers: list[dict[str, tuple[int, int] | None]], end: int = 8) -> Mapping[int, Mapping[int, Signs]]:
    consumer = Consumer(answers)
    ranges = {0: (7, end), 1: (3, 4)}
    return signs_between(consumer, {0: "t-0", 1: "t-1"}, ranges, consumer.polls(), list)


def test_each_partition_answers_in_its_own_time():
    found = asked([{"t-0": (7, 70)}, {}, {"t-1": (3, 30)}])
    assert found == {0: {7: signs_of(70, KEY, None)}, 1: {3: signs_of(30, KEY, None)}}


def test_a_partition_answers_in_as_many_polls_as_its_range_takes():
    found = asked([{"t-0": (7, 70), "t-1": (3, 30)}, {}, {"t-0": (9, 90)}, {"t-0": (10, 1)}], 10)
    assert found[0] == {7: signs_of(70, KEY, None), 9: signs_of(90, KEY, None)}


def test_an_offset_without_a_record_tells_nothing():
    assert asked([{"t-0": (9, 90), "t-1": None}]) == {0: {}, 1: {}}


def test_a_partition_that_has_not_answered_is_not_one_without_a_record():
    with pytest.raises(BrokerError, match="t-1 has at offset 3"):
        asked([{"t-0": (7, 70)}])
