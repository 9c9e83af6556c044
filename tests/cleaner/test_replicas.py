"""Cleaners beside replicas: they change no settings, sweep them, and compact those that do by themselves (C64, C67)."""

from __future__ import annotations

import pytest

from lithify.errors import PolicyError
from lithify.model.names import TopicName
from lithify.reports.events import EventKind
from lithify.rules.reading.pieces import Reading
from lithify.service.change.cut import delete_records
from lithify.service.change.streams import edit_stream
from lithify.service.look.status import topic_status
from lithify.service.read.fetch import open_log
from lithify.service.replica.copied_files import MirrorRequest
from lithify.service.replica.mirror import mirror
from lithify.service.replica.promote import promote
from lithify.service.round.compact import RunRequest, compact, plan_compact
from support.topics.cleaner_lake import CleanerLake

DAY_MS = 86_400_000


@pytest.fixture
def lakes() -> tuple[CleanerLake, CleanerLake]:
    """The lake of the source and that of the replica, on one clock."""
    source, target = CleanerLake(9 * DAY_MS), CleanerLake(9 * DAY_MS)
    source.warehouse.store._new_id = target.clock.new_id  # type: ignore[attr-defined]
    return source, target


def replicated(source: CleanerLake, target: CleanerLake, **config: object) -> TopicName:
    orders = source.topic("orders", **config)
    source.append(orders, "a=1 a=2 b=1 a=3 b=-", age_ms=DAY_MS)
    mirror(source.warehouse, target.warehouse, orders, MirrorRequest("there"))
    return orders


def test_a_cleaner_compacts_no_replica_c64(lakes: tuple[CleanerLake, CleanerLake]) -> None:
    source, target = lakes
    config = {"cleanup_policy": "compact,delete", "retention_ms": 1, "delete_retention_ms": 0}
    orders = replicated(source, target, **config)
    before, one = target.state(orders), target.cleaner()
    one.work()
    target.clock.advance(DAY_MS)
    one.work()
    assert [event for event in one.events if event.kind in (EventKind.ROUND, EventKind.RETAINED)] == []
    assert target.engine.jobs == []
    assert target.state(orders).logs == before.logs
    (log,) = topic_status(target.warehouse, target.state(orders)).logs
    assert (log.due, log.due_at_ms, log.due_reason) == (False, None, "a replica: only its source is compacted")
    for refused in (lambda: plan_compact(target.warehouse, 1, orders, RunRequest()), lambda: compacted(target, orders)):
        with pytest.raises(PolicyError, match="it is a replica"):
            refused()


def compacted(lake: CleanerLake, topic: TopicName) -> None:
    compact(lake.warehouse, lake.engine, topic, RunRequest())


def test_a_stream_changes_no_replica_c63(lakes: tuple[CleanerLake, CleanerLake]) -> None:
    source, target = lakes
    target.warehouse.store.create_stream("default", {"compression": "lz4"})
    orders = replicated(source, target)
    one = target.cleaner()
    one.work()
    report = edit_stream(target.warehouse, "default", {"compression": "gzip"})
    assert not report.failed
    one.work()
    assert target.state(orders).settings == source.state(orders).settings
    assert target.state(orders).version == 2


def test_a_cleaner_sweeps_replicas_and_expires_their_versions_c64(lakes: tuple[CleanerLake, CleanerLake]) -> None:
    source, target = lakes
    orders = replicated(source, target, min_cleanable_dirty_ratio=0)
    source.cleaner().work()
    mirror(source.warehouse, target.warehouse, orders, MirrorRequest("there"))
    assert target.warehouse.store.versions(orders) != ()
    one = target.cleaner()
    one.work()
    target.clock.advance(9 * DAY_MS)
    one.work()
    assert target.warehouse.store.versions(orders) == ()
    stored = {file.path for file in target.warehouse.store.stored_files(target.state(orders))}
    assert stored == {segment.path for segment in target.warehouse.store.segments(target.state(orders))}
    assert target.text(orders) == source.text(orders)


def test_a_promoted_replica_is_compacted_c64(lakes: tuple[CleanerLake, CleanerLake]) -> None:
    source, target = lakes
    orders = replicated(source, target)
    one = target.cleaner()
    one.work()
    promote(target.warehouse, orders)
    target.clock.advance(60_000)
    one.work()
    assert target.text(orders) == "a=3 b=-"


def test_a_cleaner_compacts_replicas_that_compact_by_themselves_c67(lakes: tuple[CleanerLake, CleanerLake]) -> None:
    """And drops nothing of their logs: neither for retention nor what was deleted at the source."""
    source, target = lakes
    config = {
        "cleanup_policy": "delete",
        "retention_ms": DAY_MS,
        "delete_retention_ms": DAY_MS,
        "tombstone_hold_groups": "g",
    }
    orders = source.topic("orders", **config)
    source.append(orders, "a=1 b=1")
    source.append(orders, "a=2 b=-")
    wanted = MirrorRequest("there", compact=True)
    mirror(source.warehouse, target.warehouse, orders, wanted)
    one = target.cleaner()
    one.work()
    assert len(one.told(EventKind.ROUND)) == 1
    assert (view(target, orders), target.text(orders)) == (["a=2", "b=-"], "a=1 b=1 a=2 b=-")
    (log,) = topic_status(target.warehouse, target.state(orders)).logs
    assert (log.due, log.due_reason) == (False, "nothing dirty below the horizon")
    delete_records(source.warehouse, orders, 0, 2)
    mirror(source.warehouse, target.warehouse, orders, wanted)
    target.clock.advance(2 * DAY_MS)
    one.work()
    assert one.told(EventKind.RETAINED) == []
    assert len(target.warehouse.store.segments(target.state(orders))) == 2
    assert (view(target, orders), target.text(orders)) == (["a=2", "b=-"], "a=2 b=-")  # the group holds the tombstone
    jobs = len(target.engine.jobs)
    one.work()
    target.clock.advance(DAY_MS)
    one.work()
    assert len(target.engine.jobs) == jobs


def view(lake: CleanerLake, topic: TopicName) -> list[str]:
    """What a reader of compacted data gets."""
    found = open_log(lake.warehouse, lake.state(topic), 0, "earliest", Reading(compacted=True))
    return [f"{(r.key or b'').decode()}={'-' if r.value is None else r.value.decode()}" for r in found]
