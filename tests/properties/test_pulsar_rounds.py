"""What Spark's tasks leave of a Pulsar topic is what the reference leaves (C54)."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from lithify.pulsar import compact_entries
from lithify.pulsar.format.entry import RawEntry
from lithify.pulsar.format.framing import unframed
from lithify.pulsar.rounds.one_task import NeedsShuffleError
from lithify.pulsar.rounds.round_messages import RoundRules
from support.pulsar.pure_rounds import lone_round, shuffled_round
from support.pulsar.topics import ALL_KINDS, PLAIN_KINDS, StoredTopic, entries, ranges_of

RULES = st.builds(RoundRules, retain_null_key=st.booleans(), order=st.sampled_from(["publish", "event-time"]))


def reference(given_entries: list[RawEntry], rules: RoundRules) -> list[bytes]:
    return [
        data for _, _, data in compact_entries(given_entries, retain_null_key=rules.retain_null_key, order=rules.order)
    ]


@given(
    topic=entries(ALL_KINDS), at=st.integers(0, 24), rules=RULES, cuts=st.integers(1, 4), hash_ranges=st.integers(1, 3)
)
def test_a_round_and_the_next_one_leave_what_the_reference_leaves(topic, at, rules, cuts, hash_ranges):
    """C54: over views of earlier rounds, ranges of entries, hash ranges, orders and every kind of entry."""
    before, after = topic[:at], topic[at:]
    view = [unframed(data) for data in reference(before, rules)]
    with tempfile.TemporaryDirectory() as folder:
        reader = StoredTopic.of(Path(folder), after, view)
        found = shuffled_round(reader, ranges_of(after, view, cuts), rules, hash_ranges=hash_ranges)
    assert found == reference([*view, *after], rules)


@given(topic=entries(PLAIN_KINDS), at=st.integers(0, 24), retain=st.booleans(), cuts=st.integers(1, 4))
def test_one_task_alone_leaves_the_same(topic, at, retain, cuts):
    """C54: the view read once."""
    rules = RoundRules(retain)
    before, after = topic[:at], topic[at:]
    view = [unframed(data) for data in reference(before, rules)]
    with tempfile.TemporaryDirectory() as folder:
        reader = StoredTopic.of(Path(folder), after, view)
        found = lone_round(reader, ranges_of(after, view, cuts), rules)
    assert found == reference([*view, *after], rules)


@given(topic=entries(("single", "sealed batch", "chunk")), at=st.integers(0, 24))
def test_one_task_alone_is_right_or_refuses(topic, at):
    """C54: chunks and sealed batches need all entries of a partition to be judged."""
    before, after = topic[:at], topic[at:]
    view = [unframed(data) for data in reference(before, RoundRules())]
    with tempfile.TemporaryDirectory() as folder:
        reader = StoredTopic.of(Path(folder), after, view)
        try:
            found = lone_round(reader, ranges_of(after, view), RoundRules())
        except NeedsShuffleError:
            return
    assert found == reference([*view, *after], RoundRules())
