"""A topic and its replica in another warehouse, and whether the one is the other."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lithify.model.names import TopicName
from lithify.model.replicas.file_names import origin
from lithify.model.segment import Segment
from lithify.ports.store import Warehouse
from lithify.reports.replicas import MirrorReport
from lithify.rules.lifecycle.own_views import content_of_replica, content_of_source, settings_of_copy
from lithify.service.replica.copied_files import MirrorRequest
from lithify.service.replica.mirror import mirror
from lithify.store.iceberg import open_store
from lithify.testing.fake_clock import FakeClock
from lithify.testing.memory_store import MemoryWarehouse
from support.faults.topics import IN_PLACE, NAME, picture, prepared

SOURCE = "the warehouse of the source"


def two_warehouses(kind: str, folder: Path, now_ms: int = 1_000_000) -> tuple[Warehouse, Warehouse]:
    """Two new warehouses on one clock, which also gives both their ids."""
    clock = FakeClock(now_ms)
    if kind == "memory":
        first, second = (MemoryWarehouse(clock.new_id, clock.now_ms).with_clock(clock) for _ in range(2))
        return first, second
    return warehouses_in(folder, clock)


def warehouses_in(folder: Path, clock: FakeClock) -> tuple[Warehouse, Warehouse]:
    """The two in a folder, as they are, or new ones."""
    first, second = (
        Warehouse(*open_store(str(folder / side), None, clock.new_id), clock) for side in ("source", "target")
    )
    return first, second


@dataclass(frozen=True)
class Pair:
    """A topic with some history, and another warehouse."""

    source: Warehouse
    target: Warehouse

    @property
    def clock(self) -> FakeClock:
        assert isinstance(self.source.clock, FakeClock)
        return self.source.clock

    def mirror(self, **how: Any) -> MirrorReport:
        return mirror(self.source, self.target, NAME, MirrorRequest(SOURCE, **how))

    def mirrored(self) -> None:
        """A copy, after which the replica is its source."""
        self.mirror()
        check_same(self.source, self.target)


def a_pair(kind: str, folder: Path, config: dict[str, object] = IN_PLACE) -> Pair:
    """A source as the tests of faults have it: batches, rounds, and failures, in two partitions."""
    source, target = two_warehouses(kind, folder)
    return Pair(prepared(lambda _: source, folder, config), target)


def check_same(source: Warehouse, target: Warehouse, name: TopicName = NAME) -> None:
    """The replica is its source at its newest version: state, files, and what readers get (C63)."""
    theirs, ours = source.store.load(name), target.store.load(name)
    assert ours.replica is not None
    assert ours.replica.is_intact(ours.version)
    assert (ours.replica.identity, ours.replica.version) == (theirs.identity, theirs.version)
    copied = [content_of_replica(ours, partition) for partition in ours.partitions]
    assert copied == [content_of_source(log, ours.replica) for log in theirs.logs]
    assert (ours.settings, ours.own_settings) == settings_of_copy(theirs, ours.replica)
    assert ours.origin == theirs.origin
    assert (ours.original_name, ours.created_ms) == (theirs.original_name, theirs.created_ms)
    assert facts(target.store.segments(ours)) == facts(source.store.segments(theirs))
    if ours.replica.compacts:  # its views are its own
        return
    assert facts(target.store.view(ours)) == facts(source.store.view(theirs))
    assert picture(target, name) == picture(source, name)


def facts(segments: tuple[Segment, ...]) -> list[tuple[str, str, int, int, int, int]]:
    """What a source and its replica have in common of their files and masks."""
    return [(origin(s.path), origin(s.id), s.base_offset, s.end_offset, s.records, s.size_bytes) for s in segments]
