"""Where a copy of a partition of Pulsar continues, and when it must not (C52)."""

from __future__ import annotations

import pytest

from lithify.errors import BrokerError
from lithify.model.message import MessageId
from lithify.pulsar.lake.entry_continuation import (
    CLOCKS_MS,
    NOTED_EVERY_MS,
    Ledgers,
    Note,
    Unexpired,
    continuation,
    unexpired,
    whole_entries,
)
from lithify.rules.lifecycle.copies.copy_continuation import CopyContinues, NeverCopied, SourceWasCut, SourceWentBack

AT = MessageId(7, 41)
LAST = MessageId(12, 8, 3)


def ledgers(*ids, cursor=None, told=None, seen_ms=None, trimmed=0, end=None, closed=None):
    noted = Note(MessageId(*told), seen_ms) if told else None
    return Ledgers(ids, cursor and MessageId(*cursor), noted, trimmed, end and MessageId(*end), closed or {})


@pytest.mark.parametrize(
    ("copied_to", "known", "last", "found"),
    [
        # nothing was copied
        (None, None, LAST, CopyContinues(None)),
        (None, ledgers(7, 9), LAST, CopyContinues(None)),
        (None, ledgers(), None, CopyContinues(None)),
        (None, ledgers(9, 12, trimmed=5), LAST, NeverCopied(None, MessageId(9, -1))),
        # the ledger is still there, whatever became of the subscription
        (AT, ledgers(7, 9, 12), LAST, CopyContinues(AT)),
        (AT, ledgers(3, 7, 9, cursor=(9, 5), told=(9, 5)), LAST, CopyContinues(AT)),
        # it was trimmed
        (AT, ledgers(9, 12, cursor=(9, -1), told=(7, 41)), LAST, CopyContinues(AT)),
        (AT, ledgers(9, 12, cursor=(7, 41), told=(7, 41)), LAST, CopyContinues(AT)),
        (AT, ledgers(9, 12, cursor=(9, -1), told=(7, 2)), LAST, CopyContinues(AT)),
        (AT, ledgers(9, 12), LAST, NeverCopied(AT, MessageId(9, -1))),  # no subscription
        (AT, ledgers(9, 12, cursor=(9, -1)), LAST, NeverCopied(AT, MessageId(9, -1))),  # another of that name
        (
            AT,
            ledgers(9, 12, cursor=(9, 4), told=(7, 41)),
            LAST,
            NeverCopied(AT, MessageId(9, -1)),
        ),  # moved on by others
        (AT, ledgers(9, 12, cursor=(9, -1), told=(8, 3)), LAST, NeverCopied(AT, MessageId(9, -1))),  # the copy was cut
        (MessageId(7, 41, 3), ledgers(9, cursor=(9, -1), told=(7, 40)), LAST, CopyContinues(MessageId(7, 41, 3))),
        (
            MessageId(7, 41, 3),
            ledgers(9, cursor=(9, -1), told=(7, 41)),
            LAST,
            NeverCopied(MessageId(7, 41, 3), MessageId(9, -1)),
        ),  # cut within a batch
        (AT, ledgers(9, end=(7, 41)), None, CopyContinues(AT)),  # nothing was behind
        # without the admin interface
        (AT, None, LAST, CopyContinues(AT)),
        (AT, None, None, CopyContinues(AT)),
        # another topic
        (AT, None, MessageId(7, 40, 9), SourceWentBack(AT, MessageId(7, 40))),
        (AT, ledgers(3), MessageId(3, 8), SourceWentBack(AT, MessageId(3, 8))),
        # the cluster was set back, and has gone on behind the copy's end
        (AT, ledgers(3, 9), LAST, SourceWasCut(AT, None)),
        (AT, ledgers(3, 9, cursor=(3, 8), told=(3, 8)), LAST, SourceWasCut(AT, None)),
        (AT, ledgers(7, 9, closed={7: 41}), LAST, SourceWasCut(AT, None)),
        (AT, ledgers(7, 9, closed={7: 42}), LAST, CopyContinues(AT)),
        (MessageId(7, 41, 3), ledgers(7, 9, closed={7: 41}), LAST, SourceWasCut(MessageId(7, 41, 3), None)),
        (AT, ledgers(7, end=(7, 40)), None, SourceWasCut(AT, None)),
        (MessageId(7, -1), ledgers(3, 9, end=(3, 8)), LAST, CopyContinues(MessageId(7, -1))),  # 7 was empty, so it went
    ],
)
def test_how_a_copy_continues(copied_to, known, last, found):
    """C52."""
    assert continuation(copied_to, known, last) == found


PASSED = {"cursor": (9, -1), "told": (7, 41)}
LOST = NeverCopied(AT, MessageId(9, -1))


@pytest.mark.parametrize(
    ("known", "since_ms", "found"),
    [
        (ledgers(9, 12, **PASSED, seen_ms=100), None, CopyContinues(AT)),  # no TTL
        (ledgers(9, 12, **PASSED, seen_ms=100), 100, CopyContinues(AT)),
        (ledgers(9, 12, **PASSED, seen_ms=99), 100, LOST),
        (ledgers(9, 12, **PASSED, seen_ms=1_000), 100, CopyContinues(AT)),
        (ledgers(9, 12, **PASSED, seen_ms=1_001), 100, LOST),  # by a clock that was ahead
        (ledgers(9, 12, **PASSED), 100, LOST),  # the copy never had everything
        (ledgers(9, 12, cursor=(9, -1), told=(7, 2), seen_ms=99), 100, LOST),
        # whatever has expired, nothing is lost
        (ledgers(7, 9, cursor=(9, -1), told=(7, 41), seen_ms=99), 100, CopyContinues(AT)),
        (ledgers(9, **PASSED, seen_ms=99, end=(7, 41)), 100, CopyContinues(AT)),
        (ledgers(9, **PASSED, seen_ms=99, end=(7, 42)), 100, LOST),
        (ledgers(9, **PASSED, seen_ms=99, end=(9, -1)), 100, LOST),
        # something is, before the TTL is over
        (ledgers(9, 12, cursor=(9, 4), told=(7, 41), seen_ms=100), 100, LOST),
        (ledgers(9, 12, seen_ms=100), 100, LOST),
    ],
)
def test_what_may_have_expired_may_be_lost(known, since_ms, found):
    """C52: a TTL moves the subscription and leaves its notes as they are."""
    assert continuation(AT, known, LAST, since_ms and Unexpired(since_ms, 1_000)) == found


def test_what_was_published_since_cannot_have_expired():
    assert unexpired(0, 1_000_000) is None
    assert unexpired(60, 1_000_000) == Unexpired(940_000 + CLOCKS_MS, 1_000_000 + CLOCKS_MS)


@pytest.mark.parametrize(
    ("note", "place", "seen_ms", "outdated"),
    [
        (Note(AT), AT, None, False),
        (Note(AT), MessageId(9, 0), None, True),
        (Note(AT), AT, 5, True),
        (Note(AT, 5), AT, 5 + NOTED_EVERY_MS - 1, False),
        (Note(AT, 5), AT, 5 + NOTED_EVERY_MS, True),
        (Note(AT, 5), MessageId(9, 0), 6, True),
        (Note(AT, 5 + 10 * NOTED_EVERY_MS), AT, 5, True),  # by a clock that was ahead
        (Note(AT, 5), AT, None, False),
    ],
)
def test_when_a_copy_notes_that_it_has_everything(note, place, seen_ms, outdated):
    """C52: at once where it has moved on, else now and then."""
    assert note.is_outdated(place, seen_ms) == outdated


@pytest.mark.parametrize("note", [Note(AT), Note(AT, 1_795_438_745_177), Note(MessageId(9, -1), 5)])
def test_statistics_of_a_broker_are_understood(note):
    """As Pulsar 4.2.4 has them."""
    stats = {
        "lastConfirmedEntry": "12:-1",
        "entriesAddedCounter": 12,
        "numberOfEntries": 10,
        "ledgers": [{"ledgerId": 7, "entries": 0}, {"ledgerId": 9, "entries": 7}, {"ledgerId": 12, "entries": 2}],
        "cursors": {"lithify-1": {"markDeletePosition": "9:-1", "properties": note.properties}, "other": {}},
    }
    cursor, end = MessageId(9, -1), MessageId(12, -1)
    assert Ledgers.of(stats, "lithify-1") == Ledgers((7, 9, 12), cursor, note, 2, end, {9: 7})
    assert Ledgers.of(stats, "lithify-2") == Ledgers((7, 9, 12), None, None, 2, end, {9: 7})


@pytest.mark.parametrize("stats", [{}, {"ledgers": [{}]}, {"ledgers": 5}, {"ledgers": [], "cursors": None}])
def test_other_statistics_are_an_error(stats):
    with pytest.raises(BrokerError, match="do not have Pulsar's form"):
        Ledgers.of(stats, "lithify-1")


@pytest.mark.parametrize(
    ("copied_to", "whole"),
    [((7, 41), (7, 41)), ((7, 41, 3), (7, 40)), ((7, 0, 0), (7, -1)), ((7, -1), (7, -1))],
)
def test_only_whole_entries_are_acknowledged(copied_to, whole):
    """C52: Pulsar may trim what is."""
    assert whole_entries(MessageId(*copied_to)) == MessageId(*whole)
