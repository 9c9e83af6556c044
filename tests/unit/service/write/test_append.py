"""Appends near the largest offset there is (C1, C2), and while settings are changed (C16)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import pytest

from lithify.errors import ConflictError, InvalidRecordError, LithifyError, OffsetOutOfRangeError
from lithify.model.record import LAST_OFFSET, Record
from lithify.model.topic.log import WrittenBatch
from lithify.ports.store import Warehouse
from lithify.service.change.alter import alter
from lithify.service.read.fetch import open_log
from lithify.service.write.append import append
from support.checked.places import PLACES
from support.checked.topic import NAME, CheckedTopic
from support.checked.trouble import RandomPlace
from support.faults.ports import Freezer, Verb, faulty, outcome
from support.topics.staged_batches import append_batch


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
        OffsetOutOfRangeError, match=rf"orders-0: the log has no offsets left for 2 records from {LAST_OFFSET} on"
    ):
        append(place.warehouse, NAME, [a_record(None), a_record(None)])
    append(place.warehouse, NAME, [a_record(None)])
    with pytest.raises(OffsetOutOfRangeError, match="no offsets left for 1 records"):
        append(place.warehouse, NAME, [a_record(None)])
    assert topic.state.log(0).log_end_offset == LAST_OFFSET + 1


KEYLESS = [Record(None, b"v", 1_000, partition=0)]


def paused(
    place: RandomPlace, verb: Verb, before: Mapping[str, object], meanwhile: Mapping[str, object]
) -> Iterator[tuple[str, LithifyError | None]]:
    """At each port call of a verb, by its name: what the verb ends with if settings are altered right before it."""
    at = 0
    while True:
        at += 1
        alter(place.warehouse, NAME, before)
        freezer = Freezer(at, lambda: alter(place.warehouse, NAME, meanwhile))
        error = outcome(verb, faulty(place.warehouse, freezer))
        if not freezer.reached:
            return
        yield freezer.calls[at - 1], error


@pytest.mark.parametrize("given", [list, iter], ids=["list", "iterator"])
def test_no_record_is_appended_that_an_alter_has_come_to_refuse(
    place: RandomPlace, given: Callable[[list[Record]], object]
) -> None:
    """C16: it would be acknowledged, and gone with the next round."""
    topic = CheckedTopic.create(place, 1, {"null.key": "retain"})
    found = paused(place, lambda w: append(w, NAME, given(KEYLESS)), {"null.key": "retain"}, {"null.key": "reject"})
    calls = [(call, type(error)) for call, error in found]
    assert {error for _, error in calls} == {InvalidRecordError}
    assert "commit" in [call for call, _ in calls]
    assert topic.state.log(0).log_end_offset == 1  # of the append that nothing paused


def test_what_is_received_again_is_appended_once(place: RandomPlace) -> None:
    """C6, C16: and as the settings say by then, also a batch that can be read only once."""
    topic = CheckedTopic.create(place, 1, {})
    records = [a_record(None), a_record(None)]
    by_log, as_given = ({"message.timestamp.type": name} for name in ("LogAppendTime", "CreateTime"))
    for _, error in paused(place, lambda w: append(w, NAME, iter(records)), as_given, by_log):
        assert error is None
        *_, first, last = open_log(place.warehouse, topic.state, 0)
        assert [first.timestamp_type, last.timestamp_type] == ["LogAppendTime"] * 2
    assert topic.state.log(0).log_end_offset % 2 == 0


def test_no_batch_of_tasks_is_appended_that_an_alter_has_come_to_refuse(place: RandomPlace) -> None:
    """C16: its files say that they have records without a key."""
    topic = CheckedTopic.create(place, 1, {"null.key": "retain"})

    def write(warehouse: Warehouse) -> object:
        return append_batch(warehouse, NAME, [KEYLESS], WrittenBatch("query", 1), place.warehouse.files)

    found = list(paused(place, write, {"null.key": "retain"}, {"null.key": "reject"}))
    (_, first), *others = found
    assert type(first) is InvalidRecordError  # before any task wrote
    assert {type(error) for _, error in others} == {ConflictError}
    assert "the batch has 1 record without a key, but null.key=reject" in str(others[0][1])
    assert topic.state.log(0).log_end_offset == 1
