"""When the replica of a topic is due, and when one that failed is tried again."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithify.model.names import TopicName
from lithify.model.replicas.replica_progress import ReplicaStanding, TopicProgress
from lithify.rules.schedule.replication import JITTER, LONGEST_BACKOFF_MS, Tokens, is_due, retry_after_ms

SEEN = Tokens("s1", "t1")
WELL = TopicProgress("r", TopicName("default", "orders"), ReplicaStanding.REPLICATING, 1_000, "d")
FAILED = replace(WELL, standing=ReplicaStanding.FAILED, failures=1, retry_ms=6_000)


@pytest.mark.parametrize(
    ("seen", "tokens", "noted", "due"),
    [
        (SEEN, SEEN, WELL, False),
        (SEEN, Tokens("s2", "t1"), WELL, True),
        (SEEN, Tokens("s1", "t2"), WELL, True),
        (SEEN, Tokens("s1", None), WELL, True),
        (Tokens(None, None), Tokens(None, None), WELL, True),
        (None, SEEN, WELL, True),
        (SEEN, SEEN, None, True),
        (SEEN, Tokens("s2", "t2"), FAILED, False),
    ],
)
def test_what_is_due(seen: Tokens | None, tokens: Tokens, noted: TopicProgress | None, due: bool) -> None:
    assert is_due(seen, tokens, noted, 2_000) is due


def test_what_failed_waits_and_a_clock_that_went_back_does_not_prolong_it() -> None:
    assert [is_due(None, SEEN, FAILED, now_ms) for now_ms in (999, 1_000, 5_999, 6_000)] == [True, False, False, True]


@given(st.integers(1, 10_000), st.floats(0, 1))
def test_delays_grow_and_are_bounded(failures: int, chance: float) -> None:
    delay_ms = retry_after_ms(failures, chance)
    assert retry_after_ms(1, chance) <= delay_ms <= LONGEST_BACKOFF_MS * (1 + JITTER)
    assert retry_after_ms(failures + 1, chance) >= delay_ms
    assert retry_after_ms(failures, 0) <= delay_ms <= retry_after_ms(failures, 1)


def test_the_first_delays() -> None:
    assert [retry_after_ms(n, 0) for n in range(1, 8)] == [5_000, 10_000, 20_000, 40_000, 80_000, 120_000, 120_000]
