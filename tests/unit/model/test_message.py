"""Ids of messages, and what a copy has that was made up to one of them (C52)."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lithify.columnar.arrivals.message_ids import reached
from lithify.columnar.segment.schema import BATCH_INDEX, ENTRY_ID, LEDGER_ID, PASSED_THROUGH
from lithify.model.message import EARLIEST, Envelope, EnvelopeFacts, MessageId


@pytest.mark.parametrize(
    ("reached", "other", "covered"),
    [
        ((5, 3), (5, 3), True),
        ((5, 3), (5, 3, 7), True),  # a whole entry, whatever its batch
        ((5, 3), (5, 4), False),
        ((5, 3), (4, 9, 2), True),
        ((5, 3), (6, 0), False),
        ((5, 3, 1), (5, 3, 1), True),
        ((5, 3, 1), (5, 3, 0), True),
        ((5, 3, 1), (5, 3, 2), False),
        ((5, 3, 1), (5, 3), False),
        ((5, -1), (5, 0), False),  # the start of a ledger
        ((5, -1), (4, 7), True),
    ],
)
def test_what_a_position_covers(reached, other, covered):
    """C52."""
    assert MessageId(*reached).covers(MessageId(*other)) is covered


@pytest.mark.parametrize(
    ("first", "previous"), [((5, 3, 2), (5, 3, 1)), ((5, 3, 0), (5, 2)), ((5, 3), (5, 2)), ((5, 0, 0), (5, -1))]
)
def test_a_copy_ends_just_before_an_id(first, previous):
    """C52: it lacks the id and has all before it."""
    found = MessageId(*first).previous
    assert found == MessageId(*previous)
    assert not found.covers(MessageId(*first))


def test_the_earliest_position_is_that_of_pulsar():
    assert tuple(EARLIEST) == (-1, -1, 0, 0)


@pytest.mark.parametrize(
    ("sought", "reaches"),
    [((4, 99), True), ((6, 8), True), ((6, 9), False), ((7, 0), False), ((5, 0, 3), True), ((6, 8, 2), True)],
)
def test_the_facts_of_a_segment_tell_whether_it_may_reach_an_id(sought, reaches):
    assert EnvelopeFacts(5, 6, 0, 8, 0).may_reach(MessageId(*sought)) is reaches


@pytest.mark.parametrize(
    ("record", "passed_through", "sought", "reaches"),
    [
        ((5, 2), False, (5, 2, 0), True),  # as Pulsar's clients print an id of partition 0
        ((5, 2), False, (5, 2, 7), True),
        ((5, 2), True, (5, 2, 3), True),
        ((5, 2), False, (5, 3, 0), False),
        ((5, 2, 1), False, (5, 2, 2), False),
        ((5, 2, 1), False, (5, 2), True),
        ((5, 2, 1), False, (5, 1, 9), True),
    ],
)
def test_an_entry_that_is_no_batch_has_every_index(record, passed_through, sought, reaches):
    """C52: a reader that starts at 5:2:0 gets 5:2, and skipped it; as records and as columns."""
    envelope = Envelope(MessageId(*record), passed_through=passed_through)
    assert envelope.reaches(MessageId(*sought)) is reaches
    names = [LEDGER_ID, ENTRY_ID, BATCH_INDEX, PASSED_THROUGH]
    stored = pa.table([[value] for value in (*envelope.id, passed_through)], names)
    assert reached(stored, MessageId(*sought)).tolist() == [reaches]
