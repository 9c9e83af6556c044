"""What is kept of where a source ended, and of where a copy began (C71)."""

from __future__ import annotations

import pytest

from lithify.errors import PolicyError
from lithify.model.names import TopicName
from lithify.model.sources.ends import KnownEnds, SourceEnd, StableEnds
from lithify.model.topic.log import LogState
from lithify.rules.lifecycle.copies.missed_deletes import (
    ENDS_KEPT,
    MissedDeletes,
    accepted,
    begun_after_cut,
    begun_at,
    check_resync,
    needed,
)


def ends_at(*offsets: int) -> KnownEnds:
    return KnownEnds(tuple(SourceEnd(offset, 1_000 * offset, 100) for offset in offsets))


@pytest.mark.parametrize(
    ("read_to", "kept"), [(0, [3, 6, 9]), (2, [3, 6, 9]), (3, [3, 6, 9]), (6, [6, 9]), (8, [6, 9]), (20, [9])]
)
def test_of_the_ends_that_a_reader_has_passed_the_last_is_kept(read_to: int, kept: list[int]) -> None:
    assert [end.offset for end in needed(ends_at(3, 6, 9), read_to).ends] == kept


def test_as_many_ends_are_kept_as_may_be_and_no_more() -> None:
    many = ends_at(*range(10, 10 + ENDS_KEPT))
    assert needed(many, 0) == many
    assert len(needed(ends_at(*range(10, 14 + ENDS_KEPT)), 0).ends) == ENDS_KEPT


def test_the_end_that_tells_least_goes_and_never_the_first_or_the_last() -> None:
    """The fourth one has the nearest neighbours."""
    offsets = [10, 20, 30, 31, 32, *range(40, 10 * ENDS_KEPT, 10)][:ENDS_KEPT]
    kept = needed(ends_at(*offsets, 10 * ENDS_KEPT), 0).ends
    assert [end.offset for end in kept] == [10, 20, 30, *offsets[4:], 10 * ENDS_KEPT]


def test_what_was_accepted_as_missing_is_one_with_what_it_touches() -> None:
    missed = MissedDeletes(5, 9, 1_000, 100)
    known = KnownEnds((), ((0, 3), (4, 5), (9, 12), (14, 15)))
    assert accepted(known, missed, 9).missed == ((0, 3), (4, 12), (14, 15))


def test_a_copy_began_with_the_smallest_retention_that_is_known_of_its_source() -> None:
    known = KnownEnds((SourceEnd(3, 1_000, None), SourceEnd(6, 2_000, 70), SourceEnd(9, 3_000, 100)))
    assert begun_at(known, (1, 500)).begun == SourceEnd(1, 500, 70)
    assert begun_at(KnownEnds(), (1, 500)).begun == SourceEnd(1, 500, None)


@pytest.mark.parametrize(
    ("start", "end", "known"),
    [
        (0, 10, True),  # nothing is cut off
        (0, 9, False),  # a resync began above what was there, and some of its deletes may be gone
        (4, 9, False),
        (5, 9, True),  # a first copy began there: no deletes of its own lie above its end
        (0, 12, True),
    ],
)
def test_where_a_copy_began_tells_nothing_once_its_end_is_cut_off(start: int, end: int, known: bool) -> None:
    log = LogState(0, log_start_offset=start, log_end_offset=10, source_begun=(5, 1_000))
    assert begun_after_cut(log, end) == ((5, 1_000) if known else None)


def test_a_copy_of_which_it_is_not_known_where_it_began_stays_one() -> None:
    assert begun_after_cut(LogState(0, log_end_offset=10), 5) is None


def resync_error(policy: str | None, starts: dict[int, int], oldest: dict[int, int]) -> PolicyError | None:
    now = StableEnds(starts, dict.fromkeys(starts, 100), None, policy)
    try:
        check_resync(TopicName("default", "copy"), "Kafka's orders", now, oldest)
    except PolicyError as error:
        return error
    return None


@pytest.mark.parametrize(
    ("starts", "oldest", "told"),
    [
        ({0: 0, 1: 0}, {0: 0, 1: 0}, None),
        ({0: 5, 1: 7}, {0: 5, 1: 8}, None),  # the copy began there, or later
        ({0: 5, 1: 7}, {1: 7}, None),  # a log without records has nothing to lose
        ({0: 5, 1: 7}, {0: 5, 1: 6}, "copy-1: Kafka's orders begins at offset 7, but the copy has"),
        ({0: 1}, {0: 0, 1: 3}, "copy-0: Kafka's orders begins at offset 1, but the copy has"),
    ],
)
def test_a_resync_needs_all_of_the_source_that_the_copy_has(
    starts: dict[int, int], oldest: dict[int, int], told: str | None
) -> None:
    error = resync_error("compact", starts, oldest)
    assert (error is None) is (told is None)
    assert error is None or str(told) in str(error)


@pytest.mark.parametrize("policy", ["delete", "compact,delete", "", None])
def test_a_resync_needs_a_source_that_is_compacted_and_nothing_else(policy: str | None) -> None:
    error = resync_error(policy, {0: 0}, {0: 0})
    assert error is not None and "cleanup.policy" in str(error)
    assert ("DescribeConfigs" in str(error.hint)) is (policy is None)
    assert resync_error(policy, {0: 0}, {}) is None
