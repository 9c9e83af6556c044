"""What is to be done for a topic, told from its segments and failures (C28, C31)."""

from __future__ import annotations

from lithify.model.failure import LogFailure
from lithify.model.log import segments_of
from lithify.model.record import Record
from lithify.schedule.judging import TopicVerdict, judge_topic
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


def judged(topic: MemoryTopic, failures=None, now_ms: int = NOW_MS, readable=None) -> TopicVerdict:
    segments = topic.warehouse.store.segments(topic.state)
    return judge_topic(topic.state, segments, failures or {}, now_ms, readable)


def test_only_the_logs_that_are_due_are_in_it():
    verdict = judged(a_topic(0, 2))
    assert verdict.rounds == (0, 2)
    assert verdict.volume.records == 6
    assert verdict.look_at_ms == NOW_MS


def test_a_topic_without_anything_to_do_is_not_looked_at_again_by_the_clock():
    assert judged(a_topic()) == TopicVerdict()


def test_a_failing_log_waits_until_its_time_and_the_others_go_on():
    topic = a_topic(0, 1)
    verdict = judged(topic, {0: failure(NOW_MS + 500)})
    assert verdict.rounds == (1,)
    only = judged(a_topic(0), {0: failure(NOW_MS + 500)})
    assert (only.rounds, only.look_at_ms) == ((), NOW_MS + 500)
    assert judged(topic, {0: failure(NOW_MS + 500)}, NOW_MS + 500).rounds == (0, 1)


def test_a_quarantined_log_is_looked_at_each_time_and_left_alone():
    verdict = judged(a_topic(0), {0: failure(0, quarantined=True)})
    assert (verdict.rounds, verdict.look_at_ms) == ((), NOW_MS)


def test_what_failed_twice_is_marked():
    topic = a_topic(0)
    assert not judged(topic, {0: failure(0)}).failing
    assert judged(topic, {0: failure(0, failures=2)}).failing


def test_whole_segments_that_can_go_take_no_round():
    topic = a_topic(0, cleanup_policy="delete", retention_ms=100)
    assert not judged(topic).retains
    verdict = judged(topic, now_ms=NOW_MS + 101)
    assert (verdict.retains, verdict.rounds) == (True, ())


def test_a_log_from_whose_front_something_goes_each_time_still_has_its_round():
    topic = a_topic(0, cleanup_policy="compact,delete", retention_ms=100, min_cleanable_dirty_ratio=0.1)
    judged_ms = NOW_MS + 101
    assert judged(topic, now_ms=judged_ms).rounds == ()  # all of it goes
    topic.append([Record(b"a", b"young", judged_ms, partition=0)])

    verdict = judged(topic, now_ms=judged_ms)

    assert (verdict.retains, verdict.rounds) == (True, (0,))
    quarantined = judged(topic, {0: failure(0, quarantined=True)}, judged_ms)
    assert (quarantined.retains, quarantined.rounds) == (True, ())


def test_a_log_that_cannot_be_read_is_left_out_until_it_may_be_tried():
    topic = a_topic(0, 1)
    segments = segments_of(topic.warehouse.store.segments(topic.state), 1)
    verdict = judge_topic(topic.state, segments, {0: failure(NOW_MS + 500)}, NOW_MS, (1, 2))
    assert verdict.rounds == (1,)


def test_the_worst_log_gives_the_topic_its_place():
    topic = a_topic(0, max_compaction_lag_ms=100)
    verdict = judged(topic, now_ms=NOW_MS + 150)
    assert verdict.overdue_ms == 50
    assert verdict.priority[0] == -50
