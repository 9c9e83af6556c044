"""What `sweep` asks of a store: which files there are, which are named, and since when not (C6, C7)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from lithify.model.segment import Segment
from lithify.model.settings.rates import Rates, RatesDocument
from lithify.model.stored_file import Closing
from lithify.model.topic.edit import TopicEdit, Verb
from lithify.model.topic.state import TopicState
from lithify.ports.store import Warehouse
from lithify.service.change.sweep import sweep
from lithify.service.documents import put_rates, put_report, reports_of
from lithify.testing.fake_clock import FakeClock
from support.store.builders import NOW_MS, ORDERS, Place, a_report, some_records

DAY_MS = 86_400_000
LONG_AFTER_MS = 2**43
"""Later than the clock of any file system that tests run on."""


def paths(segments: tuple[Segment, ...]) -> set[str]:
    return {segment.path for segment in segments}


def stored(place: Place, state: TopicState) -> set[str]:
    return {file.path for file in place.store.stored_files(state)}


def closings(place: Place, state: TopicState) -> Mapping[str, Closing]:
    return place.store.closings(state, tuple(place.store.stored_files(state)), NOW_MS)


def kept_versions(place: Place) -> list[TopicState]:
    return [place.store.load_version(ORDERS, kept.version) for kept in place.store.versions(ORDERS)]


class SweepRules:
    """Rules on files that may go."""

    def test_every_file_is_listed_with_its_size(self, place: Place) -> None:
        state = place.append(place.create(partitions=2), [r._replace(partition=1) for r in some_records("a")])
        committed = place.store.segments(state)
        left_behind = place.rewrite(state, [r._replace(offset=9) for r in some_records("b")], "died")

        files = {file.path: file for file in place.store.stored_files(state)}

        assert paths(committed) | paths(left_behind) <= set(files)
        for segment in committed + left_behind:
            assert files[segment.path].size_bytes == segment.size_bytes
        assert paths(committed) <= place.store.named_files(ORDERS).all
        assert not paths(left_behind) & place.store.named_files(ORDERS).all

    def test_files_of_another_topic_are_not_listed(self, place: Place) -> None:
        state = place.append(place.create(), some_records("a"))
        other = place.create(type(ORDERS)("default", "orders2"))

        assert not stored(place, state) & stored(place, other)

    def test_all_that_is_needed_is_named(self, place: Place) -> None:
        state = place.append(place.create(), some_records("a", "b"))
        put_report(place.store, state, "r1", a_report(1))
        put_rates(place.store, state, RatesDocument("r", Rates(1)))
        state = place.cover(place.round(state, report_id="r1"))
        state = place.cover(place.append(state, some_records("c")))

        unnamed = stored(place, state) - place.store.named_files(ORDERS).all
        assert {path for path in unnamed if "/metadata/" not in path} == set()

    def test_kept_versions_name_their_files_and_no_others_do(self, place: Place) -> None:
        state = place.create(versions_kept=2)
        seen: list[set[str]] = []
        for n in range(5):
            state = place.append(state, some_records(f"{n}"))
            seen.append(paths(place.store.segments(state)))
            state = place.round(state)

        named = place.store.named_files(ORDERS).all

        assert seen[3] | seen[4] | paths(place.store.segments(state)) <= named
        assert not (seen[0] | seen[1] | seen[2]) & named

    def test_views_and_views_of_kept_versions_are_named(self, place: Place) -> None:
        state = place.create(versions_kept=1)
        views: list[set[str]] = []
        for n in range(3):
            state = place.cover(place.append(state, some_records(f"{n}")))
            views.append(paths(place.store.view(state)))

        named = place.store.named_files(ORDERS).all

        assert views[2] | views[1] <= named
        assert not views[0] & named

    def test_a_closing_is_when_the_last_one_stopped_naming_it(self, place: Place) -> None:
        state = place.append(place.create(), some_records("a"))
        (first,) = place.store.segments(state)
        assert self.of_data(place, state) == {}

        state = place.round(state, closed_ms=NOW_MS + 1)
        assert self.of_data(place, state) == {first.path: NOW_MS + 1}

        (second,) = place.store.segments(state)
        log = {0: state.log(0)}
        undone = TopicEdit("u", NOW_MS + 2, log, add=(first,), remove=(second,), verb=Verb.UNDO)
        state = place.store.commit(state, undone)
        state = place.drop(state, (first,), closed_ms=NOW_MS + 9)
        assert self.of_data(place, state) == {first.path: NOW_MS + 9, second.path: NOW_MS + 2}

    def of_data(self, place: Place, state: TopicState) -> dict[str, int]:
        """Closings of data files: a store may tell more, of its own."""
        found = closings(place, state).items()
        return {path: closing.at_ms for path, closing in found if "partition=" in path}

    def test_a_file_in_two_places_is_closed_by_the_commit_that_leaves_it_in_none(self, place: Place) -> None:
        state = place.cover(place.append(place.create(versions_kept=1), some_records("a")), share=True)
        (shared,) = place.store.segments(state)

        state = place.drop(state, (shared,), closed_ms=NOW_MS + 1)
        assert self.of_data(place, state) == {}
        assert shared.path in place.store.named_files(ORDERS).all

        state = place.drop_views(state, closed_ms=NOW_MS + 2)
        assert self.of_data(place, state) == {shared.path: NOW_MS + 2}
        state = place.round(place.append(state, some_records("b")))
        assert shared.path not in place.store.named_files(ORDERS).all

    def test_files_are_deleted_and_those_that_are_gone_do_not_matter(self, place: Place) -> None:
        state = place.append(place.append(place.create(), some_records("a")), some_records("b"))
        gone, doomed = (
            segment
            for offset in (8, 9)
            for segment in place.rewrite(state, [r._replace(offset=offset) for r in some_records("x")], "died")
        )
        place.lose(gone)

        place.store.delete_files(state, [gone.path, doomed.path])
        place.store.delete_files(state, [])

        assert not {gone.path, doomed.path} & stored(place, state)
        assert [r.key for r in place.records(state)] == [b"a", b"b"]

    def test_a_sweep_leaves_what_is_needed_and_nothing_else(self, place: Place) -> None:
        state = place.create(versions_kept=2)
        for n in range(6):
            put_report(place.store, state, f"r{n}", a_report(n))
            state = place.append(state, some_records("a", f"{n}"))
            state = place.cover(state, keep=lambda r: r.key != b"a", closed_ms=NOW_MS + n)
            state = place.round(place.append(state, some_records("z")), report_id=f"r{n}", closed_ms=NOW_MS + n)
        place.rewrite(state, [r._replace(offset=99) for r in some_records("b")], "died")
        versions = [*kept_versions(place), state]
        before = [(place.records(s), place.view(s)) for s in versions]
        clock = FakeClock(LONG_AFTER_MS)
        warehouse = Warehouse(place.store, place.files, clock)

        listed = sweep(warehouse, ORDERS, delete=False)
        swept = sweep(warehouse, ORDERS, delete=True)
        assert [f.path for f in listed.files] == [f.path for f in swept.files]
        assert len(swept.files) >= 7
        for _ in range(4):  # metadata goes a day after a sweep has found it unnamed, and so does that of the sweep
            clock.advance(DAY_MS)
            sweep(warehouse, ORDERS, delete=True)

        assert stored(place, state) <= place.store.named_files(ORDERS).all
        loaded = place.store.load(ORDERS)
        clock.advance(DAY_MS)
        assert sweep(warehouse, ORDERS, delete=True).files == ()
        assert place.store.load(ORDERS) == loaded, "a sweep that finds nothing commits nothing"
        assert replace(loaded, version=state.version, abandoned=(), clock_ms=state.clock_ms) == state
        again = [*kept_versions(place), loaded]
        assert [s.logs for s in again] == [s.logs for s in versions]
        assert [(place.records(s), place.view(s)) for s in again] == before
        assert [report.version for report in reports_of(place.store, loaded)] == [5, 4, 3, 2, 1, 0]
        place.cover(place.append(loaded, some_records("on")))

    def test_a_sweep_waits_for_the_retention_of_versions(self, place: Place) -> None:
        """C7: a reader of a version that is not kept any more has that time to read on."""
        state = place.append(place.create(versions_kept=1), some_records("a"))
        (first,) = place.store.segments(state)
        state = place.round(state, closed_ms=LONG_AFTER_MS)
        place.round(place.append(state, some_records("b")), closed_ms=LONG_AFTER_MS + 5)

        for later_ms, goes in ((DAY_MS - 1, False), (DAY_MS, True)):
            clock = FakeClock(LONG_AFTER_MS + later_ms)
            swept = sweep(Warehouse(place.store, place.files, clock), ORDERS, delete=True)
            assert (first.path in {file.path for file in swept.files}) == goes
            assert place.files.missing([first.path]) == ((first.path,) if goes else ())
