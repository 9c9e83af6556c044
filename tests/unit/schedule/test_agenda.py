"""The order of work, and what goes together (C29)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithify.model.names import TopicName
from lithify.model.segment import Volume
from lithify.rules.schedule import agenda
from lithify.rules.schedule.agenda import (
    BATCH_BYTES,
    BATCH_LOGS,
    BATCH_RECORDS,
    RequiredWork,
    TopicWork,
    in_order,
    next_batch,
    without,
)

MIB = 2**20


def work(
    name: str,
    *,
    overdue_ms: int = 0,
    ratio: float = 0.5,
    size_bytes: int = MIB,
    records: int = 1_000,
    logs: int = 1,
    failing: bool = False,
) -> TopicWork:
    required = RequiredWork(
        rounds=tuple(range(logs)),
        order=((-overdue_ms, -ratio),) * logs,
        volume=Volume(records, size_bytes),
        failing=failing,
    )
    return TopicWork(TopicName("default", name), name, 1, required)


def names(works) -> list[str]:
    return [one.name.topic for one in works]


def test_the_most_overdue_goes_first_then_the_dirtiest():
    works = [work("a", ratio=0.6), work("b", ratio=0.9), work("c", overdue_ms=5), work("d", overdue_ms=50, ratio=0)]
    assert names(in_order(works)) == ["d", "c", "b", "a"]


def test_a_large_topic_goes_alone():
    works = [work("large", size_bytes=agenda.SMALL_BYTES), work("small")]
    assert names(next_batch(works)) == ["large"]
    assert names(next_batch([work("large", records=agenda.SMALL_RECORDS), work("small")])) == ["large"]


def test_small_ones_go_together_past_large_ones():
    works = [work("a"), work("large", size_bytes=100 * MIB), work("b"), work("c")]
    assert names(next_batch(works)) == ["a", "b", "c"]


def test_a_topic_that_failed_twice_is_a_batch_of_its_own():
    works = [work("bad", failing=True), work("a"), work("worse", failing=True), work("b")]
    assert names(next_batch(works)) == ["bad"]
    assert names(next_batch(works[1:])) == ["a", "b"]


def test_several_cleaners_share_the_topics_unless_they_are_few():
    works = [work(f"{number:02}") for number in range(31)]
    assert names(next_batch(works, cleaners=3)) == names(works[:11])
    assert names(next_batch(works[11:], cleaners=3)) == names(works[11:19])
    assert names(next_batch(works[19:], cleaners=1)) == names(works[19:])


@pytest.mark.parametrize(
    ("logs", "size_bytes", "cleaners", "parts"),
    [
        (1, 900 * MIB, 4, [1]),
        (8, 900 * MIB, 1, [8]),
        (8, 900 * MIB, 4, [2, 2, 1, 1, 1, 1]),
        (4, 40 * MIB, 4, [4]),  # a job of its own is for 32 MiB at least
        (1_000, 900 * MIB, 4, [250, 188, 141, 106, 79, 59, 45, 36, 36, 36, 24]),
        (1_000, 10 * MIB, 2, [500, 250, 125, 100, 25]),  # or for a hundred logs
        (1_000, 10 * MIB, 1, [1_000]),
        (2_500, 900 * MIB, 1, [1_000, 1_000, 500]),
    ],
)
def test_cleaners_share_the_logs_of_a_large_topic(logs, size_bytes, cleaners, parts):
    left, shares = [work("large", size_bytes=size_bytes, logs=logs)], []
    while batch := next_batch(left, cleaners):
        shares.append(len(batch[0].required.rounds))
        left = without(left, batch)
    assert shares == parts


def test_a_share_of_a_topic_has_its_share_of_the_volume():
    required = work("large", size_bytes=900 * MIB, records=900, logs=3).required
    assert required.only([0, 2]).volume == Volume(600, 600 * MIB)
    assert required.only([0, 1, 2, 3]) is required


def test_a_batch_has_no_more_logs_than_one_job_takes():
    works = [work("a", logs=BATCH_LOGS - 2), work("b", logs=2), work("c", logs=1)]
    assert names(next_batch(works)) == ["a", "b"]


def a_topic(name: str, priorities, size_bytes: int = MIB) -> TopicWork:
    """A topic whose logs, by partition, have these priorities."""
    due = sorted(zip(priorities, range(len(priorities)), strict=True))
    rounds, order = tuple(partition for _, partition in due), tuple(priority for priority, _ in due)
    required = RequiredWork(rounds=rounds, order=order, volume=Volume(1_000, size_bytes))
    return TopicWork(TopicName("default", name), name, 1, required)


def test_what_is_left_of_a_topic_goes_behind_logs_that_are_more_overdue():
    """C29: the first share of a large topic has its overdue log; the rest of it is only dirty."""
    large = a_topic("large", [*([(0, -0.9)] * 7), (-9, -0.1)], 900 * MIB)
    works = in_order([large, work("other", overdue_ms=8, size_bytes=900 * MIB)])
    taken = []
    while batch := next_batch(works, cleaners=4):
        taken += [(one.name.topic, one.required.rounds) for one in batch]
        works = without(works, batch)
    assert taken[:3] == [("large", (7, 0)), ("other", (0,)), ("large", (1, 2))]


unlike = st.lists(st.tuples(st.integers(-9, 0), st.sampled_from([-0.9, -0.5, -0.1])), min_size=1, max_size=230)


@given(st.lists(unlike, min_size=1, max_size=5), st.integers(1, 4), st.sampled_from([0, MIB, 900 * MIB]))
def test_every_batch_has_the_log_that_is_to_go_first_of_all_that_are_left(topics, cleaners, size_bytes):
    """C29: within a topic as among topics, however they are shared; no log is left, or taken twice."""
    by_name = {str(number): priorities for number, priorities in enumerate(topics)}
    left = in_order([a_topic(name, priorities, size_bytes) for name, priorities in by_name.items()])
    due = {(name, partition) for name, priorities in by_name.items() for partition in range(len(priorities))}
    while batch := next_batch(left, cleaners):
        logs = [(one.name.topic, partition) for one in batch for partition in one.required.rounds]
        first = min(by_name[name][partition] for name, partition in due)
        assert by_name[logs[0][0]][logs[0][1]] == first
        for one in batch:
            others = [p for name, p in due - set(logs) if name == one.name.topic]
            priorities = by_name[one.name.topic]
            assert all(priorities[p] >= priorities[one.required.rounds[-1]] for p in others)
        due -= set(logs)
        left = without(left, batch)
    assert not due


def test_what_is_under_way_is_not_begun_again():
    works = [work("a", logs=4), work("b", logs=2), work("c")]
    busy = [works[0].only([1, 3]), works[1]]
    left = without(works, busy)
    assert [(one.name.topic, one.required.rounds) for one in left] == [("a", (0, 2)), ("c", (0,))]
    assert without(works, []) == works and without(works, works) == []


def test_nothing_is_a_batch_of_nothing():
    assert next_batch([]) == ()


topics = st.lists(
    st.builds(
        work,
        st.uuids().map(str),
        size_bytes=st.integers(0, 64 * MIB),
        records=st.integers(0, 1_000_000),
        logs=st.integers(1, BATCH_LOGS + 5),
        failing=st.booleans(),
    ),
    min_size=1,
    max_size=80,
)


@given(topics)
def test_a_batch_begins_with_what_is_first_and_keeps_its_bounds(works):
    batch = next_batch(works)
    assert batch[0] == (works[0] if works[0].is_small else works[0].only(range(BATCH_LOGS)))
    assert names(batch) == [name for name in names(works) if name in names(batch)]
    if len(batch) > 1:
        assert all(one.is_small for one in batch)
        assert sum(one.required.volume.size_bytes for one in batch) <= BATCH_BYTES
        assert sum(one.required.volume.records for one in batch) <= BATCH_RECORDS
        assert sum(len(one.required.rounds) for one in batch) <= BATCH_LOGS
