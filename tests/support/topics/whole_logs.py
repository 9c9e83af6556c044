"""Whole logs read, judged and checked: what the tests of faults and kills compare."""

from __future__ import annotations

from lithify.model.names import TopicName
from lithify.model.record import Record
from lithify.model.segment import segments_of, sizes_of
from lithify.model.topic.state import TopicState
from lithify.ports.store import Warehouse
from lithify.rules.compaction.planner import plan_log
from lithify.rules.compaction.survivors import survivors
from lithify.rules.proof.consistency import metadata_findings
from lithify.service.read.fetch import open_log

Contents = tuple[tuple[Record, ...], ...]
"""By partition, all records in offset order."""


def contents(warehouse: Warehouse, name: TopicName) -> Contents:
    state = warehouse.store.load(name)
    return tuple(tuple(open_log(warehouse, state, p)) for p in state.partitions)


def check_whole(warehouse: Warehouse, name: TopicName) -> TopicState:
    """The metadata agrees with the segments, and every named file is there."""
    state = warehouse.store.load(name)
    segments, view = warehouse.store.segments(state), warehouse.store.view(state)
    assert [f for log in state.logs for f in metadata_findings(state, log, segments, view)] == []
    assert warehouse.files.missing(list(sizes_of(segments + view))) == ()
    return state


def compacted(warehouse: Warehouse, name: TopicName) -> Contents:
    """What the oracle leaves of the logs as they are now, records above the horizon included."""
    state = warehouse.store.load(name)
    segments = warehouse.store.segments(state)
    left = []
    for log, whole in zip(state.logs, contents(warehouse, name), strict=True):
        plan = plan_log(log, segments_of(segments, log.partition), state.settings, warehouse.clock.now_ms())
        above = tuple(r for r in whole if r.offset is not None and r.offset >= plan.horizon.offset)
        left.append(survivors(whole, plan.rules).records + above)
    return tuple(left)
