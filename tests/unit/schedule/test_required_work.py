"""What is to be done for a topic, told from its segments and failures (C28, C31)."""

from __future__ import annotations

import pytest

from lithify.model.failure import LogFailure
from lithify.model.record import Record
from lithify.model.segment import segments_of
from lithify.rules.schedule.agenda import RequiredWork, required_work
from lithify.rules.schedule.assessment import assess
from support.topics.memory_topic import MemoryTopic

NOW_MS = 1_000


def a_topic(*due: int, partitions: int = 3, **config: object) -> MemoryTopic:
    """A topic of which some logs have something dirty."""
    topic = MemoryTopic(partitions=partitions, now_ms=NOW_MS, **config)
    for partition in due:
        topic.append([Record(b"a", b"%d" % n, NOW_MS, partition=partition) for n in range(3)])
    return topic


def failure(retry_ms: int, *, failures: int = 1, quarantined: bool = False) -> LogFailure:
    return LogFailure(failures, 0, NOW_MS, retry_ms, "the file is missing", quarantined)


def required(topic: MemoryTopic, failures=None, now_ms: int = NOW_MS, *, without: int | None = None) -> RequiredWork:
    """What is to be done, where the manifests of one log cannot be read."""
    segments, state = topic.warehouse.store.segments(topic.state), topic.state
    assessments = {
        log.partition: assess(log, segments_of(segments, log.partition), state.settings, now_ms)
        for log in state.logs
        if log.partition != without
    }
    return required_work(state, assessments, failures or {}, now_ms)


def test_only_the_logs_that_are_due_are_in_it():
    work = required(a_topic(0, 2))
    assert work.rounds == (0, 2)
    assert work.volume.records == 6
    assert work.look_at_ms == NOW_MS


def test_a_topic_without_anything_to_do_is_not_looked_at_again_by_the_clock():
    assert required(a_topic()) == RequiredWork()


def test_a_failing_log_waits_until_its_time_and_the_others_go_on():
    topic = a_topic(0, 1)
    work = required(topic, {0: failure(NOW_MS + 500)})
    assert work.rounds == (1,)
    assert required(topic, {0: failure(NOW_MS + 500)}, NOW_MS + 500).rounds == (0, 1)


@pytest.mark.parametrize("failed", [failure(NOW_MS + 500), failure(0, quarantined=True)], ids=["waits", "quarantined"])
def test_a_failing_log_is_looked_at_each_time(failed):
    """A user may release it at any time, which changes no version of the topic."""
    work = required(a_topic(0), {0: failed})
    assert (work.rounds, work.look_at_ms) == ((), NOW_MS)


def test_what_failed_twice_is_marked():
    topic = a_topic(0)
    assert not required(topic, {0: failure(0)}).failing
    assert required(topic, {0: failure(0, failures=2)}).failing


def test_whole_segments_that_can_go_take_no_round():
    topic = a_topic(0, cleanup_policy="delete", retention_ms=100)
    assert not required(topic).retains
    work = required(topic, now_ms=NOW_MS + 101)
    assert (work.retains, work.rounds) == ((0,), ())


def test_a_log_from_whose_front_something_goes_each_time_still_has_its_round():
    topic = a_topic(0, cleanup_policy="compact,delete", retention_ms=100, min_cleanable_dirty_ratio=0.1)
    judged_ms = NOW_MS + 101
    assert required(topic, now_ms=judged_ms).rounds == ()  # all of it goes
    topic.append([Record(b"a", b"young", judged_ms, partition=0)])

    work = required(topic, now_ms=judged_ms)

    assert (work.retains, work.rounds) == ((0,), (0,))
    quarantined = required(topic, {0: failure(0, quarantined=True)}, judged_ms)
    assert (quarantined.retains, quarantined.rounds) == ((0,), ())


def test_a_log_that_cannot_be_read_is_left_out_until_it_may_be_tried():
    topic = a_topic(0, 1)
    assert required(topic, {0: failure(NOW_MS + 500)}, without=0).rounds == (1,)


def test_a_failing_log_that_cannot_be_read_is_looked_at_each_time():
    topic = a_topic()
    looks = [required(topic, failed, without=0).look_at_ms for failed in ({0: failure(NOW_MS + 500)}, {})]
    assert looks == [NOW_MS, None]


def test_the_most_overdue_log_of_a_topic_comes_first():
    """C29: then the others that are overdue, then the dirtiest, and of equals the lower partition."""
    topic = MemoryTopic(partitions=5, now_ms=NOW_MS, max_compaction_lag_ms=100, min_cleanable_dirty_ratio=0.1)
    for partition, timestamp in ((0, NOW_MS), (1, NOW_MS - 120), (2, NOW_MS), (3, NOW_MS), (4, NOW_MS - 900)):
        topic.append([Record(b"a", b"%d" % n, timestamp, partition=partition) for n in range(3)])
        if partition == 0:
            topic.compact()
            topic.append([Record(b"b", b"1", NOW_MS, partition=0)])
    work = required(topic)
    assert work.rounds == (4, 1, 2, 3, 0)
    assert list(work.order) == sorted(work.order) and work.order[0] == work.priority
    assert (work.overdue_ms, work.only([1, 2]).overdue_ms, work.only([2, 3]).priority) == (800, 20, work.order[2])


def test_the_worst_log_gives_the_topic_its_place():
    topic = a_topic(0, max_compaction_lag_ms=100)
    work = required(topic, now_ms=NOW_MS + 150)
    assert work.overdue_ms == 50
    assert work.priority[0] == -50
