"""Views of replicas that compact by themselves: when a copy keeps them, and what it notes when it drops them (C67)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lithify.model.cursor import UNTOLD, Cursor
from lithify.model.groups.copies import at_replica
from lithify.model.groups.positions import Position
from lithify.model.missed import DroppedDeletes
from lithify.model.names import LogId
from lithify.model.replicas.replica_of import CopiedLog, ReplicaOf
from lithify.model.segment import Segment, Volume
from lithify.model.topic.log import HeldTombstones, LogState, TombstoneStep, View
from lithify.model.topic.state import TopicState
from lithify.rules.lifecycle.own_views import (
    LogFiles,
    Step,
    copied_logs,
    followed,
    keeps_view,
    may_compact,
    same_log,
    settings_of_copy,
    why_not_compacting,
)
from lithify.rules.reading.continuation import Continues, MissedDeletes, continuation
from lithify.store.iceberg.state.replica_codec import replica_from_json, replica_to_json
from support.builders import some_settings
from support.topics.memory_topic import ORDERS


def a_source(log: LogState, **config: object) -> TopicState:
    settings = some_settings(**{"cleanup_policy": "delete", **config})
    return TopicState(ORDERS, "orders", "s", 9, "/s", settings, (log,), 0)


def a_replica(source: TopicState, log: LogState, compact: bool = True) -> TopicState:
    """A replica of that source which has compacted its log up to 50, in three epochs of its own."""
    copied = (CopiedLog(4, "copied"),)
    says = ReplicaOf("there", "s", 8, (), 7, compact=compact, compacts=compact, copied=copied)
    settings, own = settings_of_copy(source, says)
    return TopicState(ORDERS, "orders", "t", 7, "/t", settings, (log,), 0, own_settings=own, replica=says)


def a_segment(base: int, end: int) -> Segment:
    path = f"/lake/orders-aaaaaaaa/data/partition=0/{base:020d}-run-v1-0.parquet"
    return Segment(path, 0, base, end, end - base, 10, 1, 0, 0, 0, 0, 1, b"k", b"k")


SEGMENTS = (a_segment(0, 25), a_segment(25, 50), a_segment(50, 80))
COPIED = LogState(0, log_end_offset=80, epoch=4, run_ids=("copied",), dirty=Volume(80, 30))
OURS = replace(
    COPIED,
    first_dirty_offset=50,
    epoch=7,
    steps=(TombstoneStep(50, 5, 2),),
    view=View(Volume(9, 9), 3, None, 0, True),
    last_round="r",
    run_ids=("copied", "own"),
)


def step_to(log: LogState, *, compact: bool = True, ours: LogState = OURS, **config: object) -> Step:
    source = a_source(log, **config)
    compacts = compact and may_compact(source)
    copied = copied_logs(source)
    says = ReplicaOf("there", "s", 9, compact=compact, compacts=compacts, copied=copied)
    return Step(source, a_replica(a_source(COPIED), ours), says)


def after(step: Step, moved: tuple[Segment, ...] = ()) -> LogState:
    return followed(step, 0, LogFiles(SEGMENTS, moved))


def test_a_copy_keeps_the_view_and_what_rounds_have_noted_c67() -> None:
    step = step_to(replace(COPIED, log_end_offset=90, log_start_offset=25, epoch=6, run_ids=("copied", "later")))
    found = after(step, (a_segment(80, 90), a_segment(50, 80), a_segment(0, 25)))
    assert (found.view, found.steps, found.first_dirty_offset) == (OURS.view, OURS.steps, 50)
    assert (found.log_start_offset, found.log_end_offset, found.epoch) == (25, 90, 9)


def test_where_nothing_was_cut_no_epoch_begins_and_held_tombstones_are_known_c20_c67() -> None:
    ours = replace(OURS, held=HeldTombstones(50, 50))
    same = after(step_to(COPIED, ours=ours))
    assert (same.view, same.epoch, same.held) == (OURS.view, OURS.epoch, ours.held)
    cut_above = replace(COPIED, log_end_offset=60, generation=1, truncated=(60,), epoch=5, run_ids=("copied", "later"))
    assert (after(step_to(cut_above, ours=ours)).view, after(step_to(cut_above, ours=ours)).held) == (OURS.view, None)


@pytest.mark.parametrize(
    ("changed", "moved"),
    [
        ({"log_start_offset": 51}, ()),
        ({"log_end_offset": 49, "generation": 1, "truncated": (49,)}, ()),
        ({"generation": 2, "truncated": (40, 60)}, ()),
        ({"generation": 9, "truncated": (60,) * 8}, ()),
        ({}, (a_segment(25, 50),)),
    ],
    ids=["start above", "cut below", "cut below twice", "cut too often to know", "rewritten"],
)
def test_a_copy_drops_a_view_of_another_log_c67(changed: dict[str, object], moved: tuple[Segment, ...]) -> None:
    log = replace(COPIED, epoch=5, run_ids=("copied", "later"), **changed)  # type: ignore[arg-type]
    found = after(step_to(log), moved)
    assert not keeps_view(step_to(log), 0, moved)
    assert (found.view, found.steps, found.first_dirty_offset) == (None, (), found.log_start_offset)
    assert found.epoch == 8


def test_a_view_that_is_dropped_for_no_commit_of_the_log_begins_an_epoch_c44_c67() -> None:
    found = after(step_to(COPIED, compact=False))
    assert (found.view, found.first_dirty_offset, found.epoch) == (None, 0, 8)
    assert after(step_to(replace(COPIED, log_start_offset=60))).epoch == 8  # `delete-records`, which begins none


def test_readers_of_a_dropped_view_may_have_passed_values_that_a_truncation_restored_c49_c67() -> None:
    log = replace(COPIED, log_end_offset=40, generation=1, truncated=(40,), epoch=5, run_ids=("copied", "later"))
    step = step_to(log)
    now = replace(step.replica, logs=(after(step),))
    reader = Cursor("t", 0, 30, 7)
    assert isinstance(continuation(reader, now, now.log(0), compacted=True), MissedDeletes)
    assert isinstance(continuation(reader, now, now.log(0), compacted=False), Continues)


def test_deletes_of_the_source_are_dropped_in_the_epoch_of_the_copy_c49_c67() -> None:
    drops = (DroppedDeletes(3, 70), DroppedDeletes(5, 60))
    log = replace(COPIED, epoch=6, dropped=drops, losers_removed=True, run_ids=("copied", "later"))
    found = after(step_to(log, cleanup_policy="compact"))
    assert (found.dropped, found.epoch) == ((DroppedDeletes(9, 60),), 9)  # the first one was known before


def test_the_position_of_a_reader_at_the_source_has_seen_no_loss_of_the_view_c49_c67() -> None:
    ours = replace(OURS, epoch=7, dropped=(DroppedDeletes(6, 50, of_view=True),))
    replica = a_replica(a_source(COPIED), ours)
    cursor = Cursor("s", 0, 20, 6, version=3, run="of the source")
    position = Position("g", LogId(ORDERS, 0), cursor, True, 1)
    there = at_replica(position, "s", replica).cursor
    assert (there.identity, there.epoch, there.version, there.run) == ("t", 5, None, None)
    assert isinstance(continuation(there, replica, ours, compacted=True), MissedDeletes)
    assert isinstance(continuation(there, replica, ours, compacted=False), Continues)
    untold = replace(position, cursor=replace(cursor, epoch=UNTOLD))
    assert at_replica(untold, "s", replica).cursor.is_untold


def test_a_log_is_compared_without_what_rounds_have_noted_c63_c67() -> None:
    replica = a_replica(a_source(COPIED), replace(OURS, clean=Volume(50, 20), dirty=Volume(30, 10)))
    assert same_log(COPIED, replica)
    assert not same_log(replace(COPIED, log_end_offset=81), replica)
    assert not same_log(replace(COPIED, epoch=5), replica)
    assert not same_log(replace(COPIED, run_ids=("other",)), replica)


def test_a_replica_of_a_compacted_source_has_no_rounds_c67() -> None:
    assert may_compact(a_source(COPIED))
    for log, config in (
        (COPIED, {"cleanup_policy": "compact"}),
        (replace(COPIED, losers_removed=True), {}),
        (replace(COPIED, first_dirty_offset=50), {}),
        (replace(COPIED, view=View()), {}),
    ):
        source = a_source(log, **config)
        assert not may_compact(source)
        says = ReplicaOf("there", "s", 9, compact=True)
        why = why_not_compacting(replace(source, replica=says))
        assert why is not None and why.startswith("its source " + ("compacts" if config else "was compacted"))
    assert why_not_compacting(a_source(COPIED)) is None


def test_what_a_replica_says_is_stored_c67() -> None:
    says = a_replica(a_source(COPIED), OURS).replica
    assert says is not None
    stored = replica_to_json(says)
    assert replica_from_json(stored) == says
    assert stored is not None
    assert set(replica_to_json(ReplicaOf("there", "s")) or ()).isdisjoint({"compact", "compacts", "copied"})
    for wrong in ({"compact": 1}, {"copied": [["4", "run"]]}, {"copied": [[4]]}, {"compacts": None}):
        with pytest.raises((TypeError, ValueError)):
            replica_from_json({**stored, **wrong})
