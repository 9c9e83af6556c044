"""A view of which other entries are read than the broker says it has fails the round (C55)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from lithify.errors import DamagedError
from lithify.ports.pulsar.views import EntryRange, ServedView
from lithify.pulsar.rounds.entry_reader import EntryReader
from lithify.pulsar.rounds.round_messages import RoundRules
from support.pulsar.entries import Sent, single
from support.pulsar.pure_rounds import lone_round, shuffled_round
from support.pulsar.topics import VIEW, StoredTopic, ranges_of

OLD = [single(5, number, Sent(f"k{number}")) for number in range(7)]
NEW = [single(9, number, Sent(f"k{number}")) for number in range(3)]
Round = Callable[[EntryReader, Sequence[EntryRange], RoundRules], list[bytes]]


@pytest.mark.parametrize("a_round", [lone_round, shuffled_round])
@pytest.mark.parametrize("said", [6, 7, 8])
def test_the_entries_of_a_view_are_as_many_as_the_broker_says(tmp_path, a_round: Round, said: int) -> None:
    view, new = ranges_of(NEW, OLD)
    ranges = (replace(view, view=ServedView(VIEW, said)), new)
    reader = StoredTopic.of(tmp_path, NEW, OLD)
    if said == len(OLD):
        assert len(a_round(reader, ranges, RoundRules())) == len(OLD)
        return
    contradiction = f"ledger {VIEW}: 7 entries were read, but the broker reports {said}"
    with pytest.raises(DamagedError, match=contradiction) as raised:
        a_round(reader, ranges, RoundRules())
    assert "try again, and if the error remains, drop the compacted view" in raised.value.hint
