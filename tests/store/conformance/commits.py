"""Commits: all of an edit or nothing, and only on the version that it was made on (C6)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier

import pytest

from lithify.model.segment import Volume
from lithify.model.settings.topic_settings import changed
from lithify.model.topic.edit import TopicEdit
from lithify.model.topic.log import HeldTombstones, LastRecord, LogState, TombstoneStep
from lithify.model.topic.state import TopicState
from lithify.ports.store import StaleVersionError
from support.store.builders import NOW_MS, ORDERS, Place, some_records

STATES = [
    LogState(0),
    LogState(
        0,
        log_start_offset=3,
        first_dirty_offset=5,
        log_end_offset=2**63 - 1,
        generation=2,
        steps=(TombstoneStep(4, 0, 7), TombstoneStep(5, NOW_MS)),
        clean=Volume(1, 0),
        dirty=Volume(2**40, 2**50),
        oldest_dirty_timestamp_ms=0,
        last_record=LastRecord(0, 0),
        run_ids=("a", "b"),
        last_round_ms=0,
    ),
    LogState(
        0,
        truncated=(2**62, 0),
        last_round="r",
        deleted_below=2**62,
        round_required="changed: empty.value ∅",
        uncovered=True,
        held=HeldTombstones(0, 7),
        aged_before_ms=0,
    ),
    LogState(0, oldest_dirty_timestamp_ms=-1, last_record=LastRecord(2**62, -(2**40)), last_round_ms=NOW_MS),
]

RACERS = 4


class CommitRules:
    """Rules on commits."""

    def test_a_commit_is_the_next_version(self, place: Place) -> None:
        before = place.create()

        after = place.append(before, some_records("a", "b"))

        assert after.version > before.version
        assert after.identity == before.identity
        assert after.log(0).log_end_offset == 2
        assert place.store.load(ORDERS) == after

    @pytest.mark.parametrize("log", STATES, ids=["new", "full", "owed", "odd times"])
    def test_a_log_state_comes_back_as_it_was(self, place: Place, log: LogState) -> None:
        state = place.create()

        after = place.store.commit(state, TopicEdit("run", NOW_MS, {0: log}))

        assert after.log(0) == log
        assert place.store.load(ORDERS).log(0) == log

    def test_a_stale_edit_changes_nothing(self, place: Place) -> None:
        old = place.append(place.create(), some_records("a"))
        segments = place.store.segments(old)
        newest = place.append(old, some_records("b"))

        for stale in (
            lambda: place.append(old, some_records("c")),
            lambda: place.change(old, log_start_offset=1),
            lambda: place.store.commit(old, TopicEdit("round", NOW_MS, {0: old.log(0)}, remove=segments)),
            lambda: place.store.commit(old, TopicEdit("none", NOW_MS, {})),
        ):
            with pytest.raises(StaleVersionError):
                stale()

        assert place.store.load(ORDERS) == newest
        assert [r.key for r in place.records(newest)] == [b"a", b"b"]
        assert place.store.versions(ORDERS) == ()

    def test_of_two_state_changes_without_files_one_wins(self, place: Place) -> None:
        state = place.create()

        won = place.change(state, generation=1)
        with pytest.raises(StaleVersionError):
            place.change(state, generation=2)

        assert won.version > state.version
        assert place.store.load(ORDERS).log(0).generation == 1

    def test_racing_threads_lose_no_change(self, place: Place) -> None:
        place.create()
        start = Barrier(RACERS)

        def race(racer: int) -> int:
            start.wait()
            tries = 0
            for n in range(5):
                while True:
                    state = place.store.load(ORDERS)
                    tries += 1
                    try:
                        if racer % 2:
                            place.append(state, some_records(f"{racer}"), run_id=f"{racer}x{n}")
                        else:
                            place.change(state, generation=state.log(0).generation + 1, run_id=f"{racer}x{n}")
                        break
                    except StaleVersionError:
                        continue
            return tries

        with ThreadPoolExecutor(RACERS) as pool:
            tries = list(pool.map(race, range(RACERS)))

        state = place.store.load(ORDERS)
        assert sum(tries) >= 5 * RACERS
        assert state.log(0).generation == 5 * RACERS / 2
        assert state.log(0).log_end_offset == 5 * RACERS / 2
        assert [r.offset for r in place.records(state)] == list(range(5 * RACERS // 2))

    def test_an_edit_leaves_other_logs_alone(self, place: Place) -> None:
        state = place.create(partitions=3)
        state = place.append(state, [r._replace(partition=p) for p in range(3) for r in some_records("a", "b")])
        others = place.store.segments(state, [0, 2])

        after = place.round(state, 1, keep=lambda record: record.key == b"b")

        assert (after.log(0), after.log(2)) == (state.log(0), state.log(2))
        assert place.store.segments(after, [0, 2]) == others
        assert [(r.offset, r.key) for r in place.records(after, 1)] == [(1, b"b")]
        assert [len(place.records(after, p)) for p in range(3)] == [2, 1, 2]

    def test_one_edit_may_change_many_logs(self, place: Place) -> None:
        state = place.create(partitions=40)
        logs = {p: LogState(p, log_end_offset=p * 10) for p in range(40)}

        after = place.store.commit(state, TopicEdit("run", NOW_MS, logs))

        assert [log.log_end_offset for log in after.logs] == [p * 10 for p in range(40)]
        assert place.store.load(ORDERS) == after

    def test_an_edit_may_add_logs(self, place: Place) -> None:
        state = place.append(place.create(), some_records("a"))

        after = place.store.commit(state, TopicEdit("run", NOW_MS, {1: LogState(1), 2: LogState(2)}))

        assert after.logs == (*state.logs, LogState(1), LogState(2))
        assert place.store.load(ORDERS) == after

    def test_an_edit_may_change_settings(self, place: Place) -> None:
        state = place.create()
        settings = changed(
            state.settings,
            {"compaction.mode": "side-by-side", "compaction.strategy": "timestamp", "delete.retention.ms": "0"},
        )

        after = place.store.commit(state, TopicEdit("run", NOW_MS, {}, settings=settings))

        assert after.settings == settings
        assert place.store.load(ORDERS).settings == settings

    def test_an_edit_that_removes_what_is_not_there_is_refused(self, place: Place) -> None:
        state = place.append(place.create(), some_records("a"))
        (segment,) = place.store.segments(state)
        later = place.round(state)

        for absent in (segment, replace(segment, path=f"{segment.path}x"), replace(segment, partition=0, path="")):
            with pytest.raises(ValueError, match="does not reference"):
                place.store.commit(later, TopicEdit("run", NOW_MS, {}, remove=(absent,)))

        assert place.store.load(ORDERS) == later

    def test_an_edit_may_remove_and_add_nothing(self, place: Place) -> None:
        state = place.append(place.create(), some_records("a", "b"))

        after = place.round(state, keep=lambda _: False)

        assert place.store.segments(after) == ()
        assert after.log(0).log_end_offset == 2

    def test_an_old_state_still_tells_its_segments(self, place: Place) -> None:
        old = place.append(place.create(), some_records("a"))
        segments = self.segments_seen_before(place, old)
        newest: TopicState = old
        for n in range(5):
            newest = place.append(newest, some_records(f"{n}"))
        place.round(newest)

        assert self.segments_seen_before(place, old) == segments

    def segments_seen_before(self, place: Place, state: TopicState) -> object:
        """The segments of a state that may be superseded. A store may override what is promised."""
        return place.store.segments(state)

    def test_the_lock_can_be_taken_again_and_keeps_no_committer_out_for_ever(self, place: Place) -> None:
        state = place.create()
        for _ in range(2):
            with place.store.commit_lock(ORDERS):
                state = place.change(state, generation=state.log(0).generation + 1)
        with pytest.raises(RuntimeError, match="inside"), place.store.commit_lock(ORDERS):
            raise RuntimeError("inside")
        with place.store.commit_lock(ORDERS):
            state = place.change(state, generation=9)
        assert place.store.load(ORDERS).log(0).generation == 9
