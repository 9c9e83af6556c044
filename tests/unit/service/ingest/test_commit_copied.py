"""What a copier may commit: from where it has left each log itself, whatever the newest version says (C1, C6)."""

from __future__ import annotations

import pytest

from lithify.errors import ConflictError
from lithify.model.staged import StagedLog
from lithify.service.ingest.commit_copied import Copied, Reached, commit_copied
from support.builders import a_log
from support.topics.memory_topic import ORDERS, MemoryTopic


@pytest.fixture
def topic():
    return MemoryTopic(partitions=2)


def staged(topic, text, first_offset):
    """Records of log 0 that a task has written, with Kafka's offsets."""
    records = a_log(text, first_offset=first_offset).records
    arrived = topic.files.receive(topic.state, records, now_ms=1_000, keep_offsets=True)
    segments = tuple(topic.files.write(topic.state, arrived[0], first_offset, f"task{first_offset}"))
    return StagedLog(ORDERS, topic.state.identity, 0, segments, arrived[0].last_timestamp_ms)


def copied(*logs, **ends):
    """They and, by partition (`p0=7`), up to where Kafka was read; without it, up to their last record."""
    known = {log.partition: log.segments[-1].end_offset for log in logs}
    return Copied(ORDERS, logs, {**known, **{int(name[1:]): end for name, end in ends.items()}})


def offsets(topic):
    return [r.offset for s in topic.warehouse.store.segments(topic.state) for r in topic.files.data[s.path]]


def test_it_goes_on_batch_after_batch_over_gaps(topic):
    reached = Reached.of(topic.state)
    for first in (5, 20):
        batch = copied(staged(topic, "a=1 b=1", first))
        assert commit_copied(topic.warehouse, batch, reached, f"run{first}").log(0).log_end_offset == first + 2
        reached = reached.after(batch)
    assert offsets(topic) == [5, 6, 20, 21]


def test_logs_end_where_kafka_was_read_to(topic):
    """Markers of transactions and what was left out come after the last record, or are all there is."""
    reached, batch = Reached.of(topic.state), copied(staged(topic, "a=1 b=1", 0), p0=7, p1=3)
    state = commit_copied(topic.warehouse, batch, reached, "run")
    assert [log.log_end_offset for log in state.logs] == [7, 3]
    assert [log.last_record and log.last_record.offset for log in state.logs] == [1, None]
    reached = reached.after(batch)
    state = commit_copied(topic.warehouse, copied(p0=9), reached, "next")
    assert [log.log_end_offset for log in state.logs] == [9, 3]
    with pytest.raises(ConflictError, match="the copy ended at 7, but ends at 9 now"):
        commit_copied(topic.warehouse, copied(p0=12), reached, "another")


def test_what_another_has_copied_meanwhile_is_not_copied_again(topic):
    """The other one was in between when this one looked at the newest version: that must not count as its own."""
    reached = Reached.of(topic.state)
    commit_copied(topic.warehouse, copied(staged(topic, "a=1 b=1", 0)), reached, "another")
    assert topic.state.log(0).log_end_offset == 2
    with pytest.raises(ConflictError, match="another program writes to it: the copy ended at 0, but ends at 2 now"):
        commit_copied(topic.warehouse, copied(staged(topic, "a=1 b=1", 0)), reached, "this")
    assert offsets(topic) == [0, 1]


def test_a_copier_does_not_commit_to_a_recreated_topic(topic):
    reached, batch = Reached.of(topic.state), copied(staged(topic, "a=1", 0))
    topic.make_again()
    with pytest.raises(ConflictError, match="recreated"):
        commit_copied(topic.warehouse, batch, reached, "run")
    assert topic.state.log(0).log_end_offset == 0
