"""Where a copy of a partition of Pulsar continues, and when it must not (C52)."""

from __future__ import annotations

import pytest

from lithify.errors import BrokerError
from lithify.lifecycle.source_continuation import CopyContinues, NeverCopied, SourceWentBack
from lithify.model.message import MessageId
from lithify.pulsar.lake.continuation import Ledgers, continuation, notes, whole_entries

AT = MessageId(7, 41)
LAST = MessageId(12, 8, 3)


def ledgers(*ids, cursor=None, told=None, trimmed=0):
    return Ledgers(ids, cursor and MessageId(*cursor), told and MessageId(*told), trimmed)


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
        # without the admin interface
        (AT, None, LAST, CopyContinues(AT)),
        (AT, None, None, CopyContinues(AT)),
        # another topic
        (AT, None, MessageId(7, 40, 9), SourceWentBack(AT, MessageId(7, 40))),
        (AT, ledgers(3), MessageId(3, 8), SourceWentBack(AT, MessageId(3, 8))),
    ],
)
def test_how_a_copy_continues(copied_to, known, last, found):
    """C52."""
    assert continuation(copied_to, known, last) == found


def test_statistics_of_a_broker_are_understood():
    """As Pulsar 4.2.4 has them."""
    stats = {
        "entriesAddedCounter": 12,
        "numberOfEntries": 10,
        "ledgers": [{"ledgerId": 9, "entries": 7}, {"ledgerId": 12, "entries": 0}],
        "cursors": {"lithify-1": {"markDeletePosition": "9:-1", "properties": notes(AT)}, "other": {}},
    }
    assert Ledgers.of(stats, "lithify-1") == ledgers(9, 12, cursor=(9, -1), told=(7, 41), trimmed=2)
    assert Ledgers.of(stats, "lithify-2") == ledgers(9, 12, trimmed=2)


@pytest.mark.parametrize("stats", [{}, {"ledgers": [{}]}, {"ledgers": 5}, {"ledgers": [], "cursors": None}])
def test_other_statistics_are_an_error(stats):
    with pytest.raises(BrokerError, match="not understood"):
        Ledgers.of(stats, "lithify-1")


@pytest.mark.parametrize(
    ("copied_to", "whole"),
    [((7, 41), (7, 41)), ((7, 41, 3), (7, 40)), ((7, 0, 0), None), ((7, -1), None)],
)
def test_only_whole_entries_are_acknowledged(copied_to, whole):
    """C52: Pulsar may trim what is."""
    assert whole_entries(MessageId(*copied_to)) == (whole and MessageId(*whole))
