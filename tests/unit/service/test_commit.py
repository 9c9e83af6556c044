"""What the gate adds to every commit: its run, and the epoch that it begins (C6, C44)."""

from __future__ import annotations

import pytest

from lithify.model.record import Record
from lithify.model.topic.edit import KEEPS_EPOCH, Verb
from lithify.service.change.alter import alter, uncompact
from lithify.service.change.cut import delete_records, truncate
from lithify.service.change.expire import expire_versions
from lithify.service.change.retain import retain
from lithify.service.change.sweep import sweep
from lithify.service.change.undo import undo
from lithify.service.clock_check import trust_clock
from lithify.service.replica.copied_files import MirrorRequest
from lithify.service.replica.mirror import mirror
from lithify.service.replica.promote import promote
from lithify.testing.memory_store import MemoryWarehouse
from support.builders import a_log
from support.topics.memory_topic import ORDERS, MemoryTopic


def a_topic() -> MemoryTopic:
    """Two logs with views, the backlog of the first old enough to be trimmed."""
    config = {"compaction_mode": "side-by-side", "cleanup_policy": "compact,delete", "retention_ms": 100}
    topic = MemoryTopic(partitions=2, now_ms=50, versions_retention_ms=10, **config)
    for partition in (0, 1):
        topic.append([r._replace(offset=None, partition=partition) for r in a_log("a=1!10 a=2!20 b=1!30").records])
    topic.compact()
    return topic


def sweep_what_a_dead_run_left(topic: MemoryTopic) -> None:
    files, state = topic.warehouse.files, topic.state
    arrived = files.receive(state, [Record(b"k", b"v")], now_ms=0, keep_offsets=False)
    for partition, arrivals in arrived.items():
        files.write(state, arrivals, state.log(partition).log_end_offset, "dead")
    topic.clock.advance(2 * 86_400_000)
    assert sweep(topic.warehouse, ORDERS, delete=True).files


ACTS = {
    Verb.APPEND: lambda topic: topic.append([r._replace(offset=None) for r in a_log("c=1").records]),
    Verb.COMPACT: lambda topic: (ACTS[Verb.APPEND](topic), topic.compact(partitions=(0,))),
    Verb.RETAIN: lambda topic: retain(topic.warehouse, ORDERS, now_ms=1000),
    Verb.DELETE_RECORDS: lambda topic: delete_records(topic.warehouse, ORDERS, 0, 1),
    Verb.TRUNCATE: lambda topic: truncate(topic.warehouse, ORDERS, 0, 2, below_compacted=True),
    Verb.ALTER: lambda topic: alter(topic.warehouse, ORDERS, {"null.key": "drop"}),
    Verb.UNCOMPACT: lambda topic: uncompact(topic.warehouse, ORDERS),
    Verb.UNDO: lambda topic: undo(topic.warehouse, ORDERS),
    Verb.EXPIRE: lambda topic: (topic.clock.advance(10_000), expire_versions(topic.warehouse, ORDERS)),
    Verb.SWEEP: sweep_what_a_dead_run_left,
    Verb.TRUST_CLOCK: lambda topic: (topic.clock.advance(-10), trust_clock(topic.warehouse, ORDERS)),
}


@pytest.mark.parametrize("verb", [verb for verb in Verb if verb not in (Verb.REPLICATE, Verb.PROMOTE)])
def test_a_commit_begins_an_epoch_if_it_changes_what_a_round_goes_by(verb: Verb) -> None:
    """C44: in the logs that it changes. None ever goes back."""
    topic = a_topic()
    before, version = [log.epoch for log in topic.state.logs], topic.state.version
    ACTS[verb](topic)
    assert topic.state.version > version, "it committed"
    grown = [now - then for now, then in zip((log.epoch for log in topic.state.logs), before, strict=True)]
    assert grown[0] == (0 if verb in KEEPS_EPOCH else 1)
    assert set(grown) <= {0, 1}


@pytest.mark.parametrize("verb", ACTS)
def test_a_replica_has_the_epochs_of_its_source_c63(verb: Verb) -> None:
    """Also once it was promoted: a reader's cursor means the same at both (C44, C49)."""
    topic = a_topic()
    target = MemoryWarehouse(topic.clock.new_id, topic.clock.now_ms).with_clock(topic.clock)
    mirror(topic.warehouse, target, ORDERS, MirrorRequest("there"))
    ACTS[verb](topic)
    mirror(topic.warehouse, target, ORDERS, MirrorRequest("there"))
    promote(target, ORDERS)
    replica = target.store.load(ORDERS)
    assert [log.epoch for log in replica.logs] == [log.epoch for log in topic.state.logs]
    assert [log.committed for log in replica.logs] == [log.committed for log in topic.state.logs]


def test_partitions_that_are_new_begin_at_the_first_epoch() -> None:
    topic = MemoryTopic()
    alter(topic.warehouse, ORDERS, {}, partitions=2)
    assert [log.epoch for log in topic.state.logs] == [1, 1]
