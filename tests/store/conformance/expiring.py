"""Letting go of kept versions for their age: the edit, the service, and what is left to sweep (C6, C7)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lithify.errors import NothingToUndoError, UnknownVersionError
from lithify.model.stored_file import FileKind
from lithify.model.topic.edit import TopicEdit, Verb
from lithify.model.topic.state import TopicState
from lithify.ports.store import StaleVersionError, Warehouse
from lithify.service.change.expire import expire_versions
from lithify.service.change.sweep import sweep
from lithify.service.change.undo import undo
from lithify.testing.fake_clock import FakeClock
from support.store.builders import NOW_MS, ORDERS, Place, some_records

RETENTION_MS = 1_000
LATER_MS = 2**43
"""Later than the clock of any file system that tests run on."""


def rounds(place: Place, *closed_ms: int, **config: object) -> TopicState:
    """A topic with a version kept for each of these times, each with one segment that nothing else names."""
    state = place.create(**{"versions_retention_ms": RETENTION_MS, "sweep_grace_ms": 60_000, **config})
    for n, ms in enumerate(closed_ms):
        state = place.append(state, some_records("a", f"{n}"))
        state = place.round(state, keep=lambda record: record.key != b"a", closed_ms=ms)
    return state


def expiring(place: Place, state: TopicState, before_ms: int) -> TopicState:
    edit = TopicEdit(place.clock.new_id(), NOW_MS, {}, verb=Verb.EXPIRE, expire_closed_before_ms=before_ms)
    return place.store.commit(state, edit)


def closed(place: Place) -> list[int]:
    return [kept.closed_ms for kept in place.store.versions(ORDERS)]


def at(place: Place, now_ms: int) -> Warehouse:
    return Warehouse(place.store, place.files, FakeClock(now_ms))


class ExpiryRules:
    """Rules on kept versions that are too old."""

    def test_versions_closed_before_the_time_go_and_others_stay(self, place: Place) -> None:
        state = rounds(place, 10, 20, 30, 40)
        versions = {kept.closed_ms: kept for kept in place.store.versions(ORDERS)}
        then = {ms: place.records(place.store.load_version(ORDERS, kept.version)) for ms, kept in versions.items()}

        after = expiring(place, state, 30)

        assert place.store.versions(ORDERS) == (versions[40], versions[30])
        for ms in (30, 40):
            past = place.store.load_version(ORDERS, versions[ms].version)
            assert place.records(past) == then[ms]
        for ms in (10, 20):
            says = f"version {versions[ms].version} is not retained .* newest version is {after.version}, "
            with pytest.raises(UnknownVersionError, match=says):
                place.store.load_version(ORDERS, versions[ms].version)
        assert place.store.load(ORDERS) == after

    def test_it_changes_no_log_and_closes_nothing(self, place: Place) -> None:
        state = place.cover(rounds(place, 10, 20))
        segments, view = place.store.segments(state), place.store.view(state)

        after = expiring(place, state, 2**62)

        assert after == replace(state, version=after.version)
        assert after.version > state.version
        assert (place.store.segments(after), place.store.view(after)) == (segments, view)
        assert place.store.versions(ORDERS) == ()
        place.round(place.append(after, some_records("on")))
        assert [kept.version for kept in place.store.versions(ORDERS)] == [after.version + 1]

    def test_nothing_to_let_go_of_is_no_trouble(self, place: Place) -> None:
        state = expiring(place, place.create(), 2**62)
        state = expiring(place, place.round(place.append(state, some_records("a")), closed_ms=10), 10)
        assert closed(place) == [10]

    def test_there_is_never_a_gap_among_those_that_stay(self, place: Place) -> None:
        """A version was closed before any newer one, whatever the clocks of those said who closed them."""
        state = rounds(place, 50, 20, 60, 30, 70)

        expiring(place, state, 31)

        assert closed(place) == [70]

    def test_a_stale_edit_lets_go_of_nothing(self, place: Place) -> None:
        old = rounds(place, 10, 20)
        newest = place.append(old, some_records("b"))

        with pytest.raises(StaleVersionError):
            expiring(place, old, 2**62)

        assert place.store.load(ORDERS) == newest
        assert closed(place) == [20, 10]

    def test_any_other_edit_may_let_go_as_well_and_keeps_what_it_closes(self, place: Place) -> None:
        state = place.append(rounds(place, 10, 20, 30), some_records("b"))
        segments = place.store.segments(state)
        log = {0: replace(state.log(0), generation=7)}

        edit = TopicEdit("r", 5, log, remove=segments, verb=Verb.RETAIN, expire_closed_before_ms=30)
        after = place.store.commit(state, edit)

        assert closed(place) == [5, 30]
        assert place.store.load_version(ORDERS, state.version) == state
        assert after.log(0).generation == 7

        append = TopicEdit("a", 40, {0: replace(after.log(0), generation=8)}, expire_closed_before_ms=30)
        after = place.store.commit(after, append)
        assert (closed(place), after.log(0).generation) == ([], 8)

    def test_a_version_is_closed_at_the_trusted_time_where_the_clock_is_behind_it(self, place: Place) -> None:
        """C7, C46: both the version and the files that only it names."""
        state = place.append(rounds(place, 10), some_records("b"))
        segments = place.store.segments(state)

        edit = TopicEdit("r", 20, {0: replace(state.log(0), generation=7)}, remove=segments, verb=Verb.RETAIN)
        after = place.store.commit(state, replace(edit, clock_ms=30))

        assert closed(place) == [30, 10]
        closings = place.store.closings(after, list(place.store.stored_files(after)), 30)
        assert {closings[segment.path].at_ms for segment in segments} == {30}

    def test_what_only_they_needed_is_not_named_any_more(self, place: Place) -> None:
        """C6: a quiet topic keeps no file for ever that a round has replaced."""
        state = rounds(place, LATER_MS, LATER_MS + 500)
        first, second = (
            {s.path for s in place.store.segments(place.store.load_version(ORDERS, kept.version))}
            for kept in reversed(place.store.versions(ORDERS))
        )
        needed = second | {s.path for s in place.store.segments(state)}
        old = first - needed
        assert old
        for now_ms, goes in ((LATER_MS + RETENTION_MS - 1, False), (LATER_MS + RETENTION_MS, True)):
            warehouse = at(place, now_ms)
            assert (expire_versions(warehouse, ORDERS) is not None) == goes
            sweep(warehouse, ORDERS, delete=True)
            assert set(place.files.missing(sorted(old | needed))) == (old if goes else set())

        warehouse = at(place, LATER_MS + 500 + RETENTION_MS)
        expire_versions(warehouse, ORDERS)
        sweep(warehouse, ORDERS, delete=True)
        newest = place.store.load(ORDERS)
        stored = {f.path for f in place.store.stored_files(newest) if f.kind is FileKind.OUTPUT}
        assert stored <= place.store.named_files(ORDERS).all
        assert [r.key for r in place.records(newest)] == [b"0", b"1"]

    def test_all_that_are_too_old_go_in_one_commit(self, place: Place) -> None:
        state = rounds(place, 10, 20, 30, 40)
        old = [kept.version for kept in place.store.versions(ORDERS)]

        report = expire_versions(at(place, 30 + RETENTION_MS), ORDERS)

        assert report is not None
        assert report.to_json() == {
            "topic": "orders",
            "version": state.version + 1,
            "expired": tuple(old[1:]),
            "now_ms": 30 + RETENTION_MS,
        }
        assert closed(place) == [40]

    def test_a_time_may_be_given_and_nothing_to_do_is_no_commit(self, place: Place) -> None:
        state = rounds(place, 10, 20)
        warehouse = at(place, 10 + RETENTION_MS)

        assert expire_versions(warehouse, ORDERS, now_ms=9 + RETENTION_MS) is None
        assert place.store.load(ORDERS) == state
        assert expire_versions(warehouse, ORDERS) is not None
        assert expire_versions(warehouse, ORDERS) is None
        assert place.store.load(ORDERS).version == state.version + 1

    def test_the_newest_setting_counts(self, place: Place) -> None:
        rounds(place, 10, versions_retention_ms=2**40)
        assert expire_versions(at(place, 2**40 + 9), ORDERS) is None
        assert expire_versions(at(place, 2**40 + 10), ORDERS) is not None

    def test_a_round_cannot_be_taken_back_once_its_version_is_let_go_of(self, place: Place) -> None:
        state = rounds(place, 10)
        run = state.log(0).run_ids[-1]
        state = place.change(state, last_round=run)
        expire_versions(at(place, 10 + RETENTION_MS), ORDERS)

        with pytest.raises(NothingToUndoError, match=r"no longer retained .*versions\.retention\.ms"):
            undo(at(place, 10 + RETENTION_MS), ORDERS)
