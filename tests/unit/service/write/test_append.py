"""Appends near the largest offset there is (C1, C2)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lithify.errors import InvalidRecordError, OffsetOutOfRangeError
from lithify.model.record import LAST_OFFSET, Record
from lithify.service.write.append import append
from support.checked.places import PLACES
from support.checked.topic import NAME, CheckedTopic
from support.checked.trouble import RandomPlace


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest) -> Iterator[RandomPlace]:
    with PLACES[request.param]() as made:
        yield made


def a_record(offset: int | None) -> Record:
    return Record(b"k", b"v", 1_000, partition=0, offset=offset)


def test_a_log_ends_at_the_largest_number_that_storage_takes(place: RandomPlace) -> None:
    """C1, C2: a record there is read like any other, and E is a place to start."""
    topic = CheckedTopic.create(place, 1, {})
    append(place.warehouse, NAME, [a_record(LAST_OFFSET - 1), a_record(LAST_OFFSET)], keep_offsets=True)
    assert topic.state.log(0).log_end_offset == LAST_OFFSET + 1 == 2**63 - 1


def test_a_record_beyond_is_refused(place: RandomPlace) -> None:
    """With its number: the log end behind it would be one that nothing takes."""
    topic = CheckedTopic.create(place, 1, {})
    with pytest.raises(InvalidRecordError, match=str(LAST_OFFSET + 1)):
        append(place.warehouse, NAME, [a_record(LAST_OFFSET + 1)], keep_offsets=True)
    assert topic.state.log(0).log_end_offset == 0


def test_what_finds_no_offset_is_refused_as_a_whole(place: RandomPlace) -> None:
    """C6: and says which log is full; the last one that there is can be taken."""
    topic = CheckedTopic.create(place, 1, {})
    append(place.warehouse, NAME, [a_record(LAST_OFFSET - 1)], keep_offsets=True)
    with pytest.raises(
        OffsetOutOfRangeError, match=rf"orders-0: there are no offsets for 2 records from {LAST_OFFSET} on"
    ):
        append(place.warehouse, NAME, [a_record(None), a_record(None)])
    append(place.warehouse, NAME, [a_record(None)])
    with pytest.raises(OffsetOutOfRangeError, match="no offsets for 1 records"):
        append(place.warehouse, NAME, [a_record(None)])
    assert topic.state.log(0).log_end_offset == LAST_OFFSET + 1
