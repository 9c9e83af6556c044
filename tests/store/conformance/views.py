"""Compacted views: a second list of segments, which moves in the same commits as the log (C33)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier

import pytest

from lithify.errors import UnknownVersionError
from lithify.model.record import Record
from lithify.model.topic.edit import TopicEdit, Verb
from lithify.model.topic.log import View
from lithify.model.topic.state import TopicState
from lithify.ports.store import StaleVersionError
from support.store.builders import NOW_MS, ORDERS, Place, a_view, some_records


class ViewRules:
    """Rules on compacted views."""

    def test_there_is_none_until_a_commit_makes_one(self, place: Place) -> None:
        state = place.append(place.create(partitions=2), some_records("a"))

        assert place.store.view(state) == ()
        assert place.store.view(state, [1]) == ()

    def test_it_stands_beside_the_backlog(self, place: Place) -> None:
        before = place.append(place.append(place.create(), some_records("a", "b")), some_records("a"))

        after = place.cover(before, keep=lambda record: record.offset != 0)

        assert [r.offset for r in place.view(after)] == [1, 2]
        assert place.store.segments(after) == place.store.segments(before)
        assert place.store.load(ORDERS) == after
        assert after.log(0).view == a_view(place.store.view(after))
        assert place.store.view(before) == ()

    def test_rounds_and_appends_go_on_beside_each_other(self, place: Place) -> None:
        state = place.create()
        for n in range(5):
            state = place.append(state, some_records("a", f"{n}"))
            seen = place.store.view(state)
            state = place.append(state, some_records("b"))
            assert place.store.view(state) == seen
            last = state.log(0).log_end_offset - 1
            state = place.cover(state, keep=lambda r, last=last: r.key not in (b"a", b"b") or r.offset == last)  # type: ignore[misc]

        assert [r.key for r in place.view(state)] == [b"0", b"1", b"2", b"3", b"4", b"b"]
        assert [r.offset for r in place.records(state)] == list(range(15))

    def test_views_are_distinguished_by_log(self, place: Place) -> None:
        state = place.create(partitions=3)
        state = place.append(state, [r._replace(partition=p) for p in range(3) for r in some_records("a", "b")])

        state = place.cover(place.cover(state, 2), 0, keep=lambda record: record.key == b"b")

        views = place.store.view(state)
        assert [segment.partition for segment in views] == [0, 2]
        assert [place.store.view(state, [p]) for p in range(3)] == [views[:1], (), views[1:]]
        assert place.store.view(state, [0, 1]) == views[:1]
        assert place.store.view(state, []) == ()
        assert [state.log(p).view is None for p in range(3)] == [False, True, False]

    def test_one_file_may_be_in_the_log_and_in_its_view(self, place: Place) -> None:
        state = place.cover(place.append(place.create(), some_records("a", "b")), share=True)
        (shared,) = place.store.segments(state)
        assert place.store.view(state) == (shared,)

        left = place.drop(state, (shared,))

        assert (place.store.segments(left), place.store.view(left)) == ((), (shared,))
        assert [r.key for r in place.view(left)] == [b"a", b"b"]

    def test_the_log_and_its_view_change_in_one_commit(self, place: Place) -> None:
        state = place.cover(place.append(place.create(), some_records("a", "b")))
        (old,), (old_view,) = place.store.segments(state), place.store.view(state)
        records = place.records(state)
        (new,) = place.rewrite(state, records[:1], "cut")
        (new_view,) = place.rewrite(state, records[1:], "cutview")
        log = replace(state.log(0), log_end_offset=1, generation=1, view=a_view((new_view,)))

        edit = TopicEdit(
            "cut", NOW_MS, {0: log}, (new,), (old,), view_add=(new_view,), view_remove=(old_view,), verb=Verb.TRUNCATE
        )
        after = place.store.commit(state, edit)

        assert after.version == state.version + 1
        assert (place.store.segments(after), place.store.view(after)) == ((new,), (new_view,))
        assert place.store.load(ORDERS).log(0) == log

    def test_an_empty_view_is_a_view(self, place: Place) -> None:
        state = place.cover(place.append(place.create(), some_records("a")), keep=lambda _: False)
        assert (state.log(0).view, place.store.view(state)) == (View(), ())

        state = place.append(state, some_records("b"))
        assert (state.log(0).view, place.store.view(state)) == (View(), ())

        state = place.cover(state)
        assert [r.key for r in place.view(state)] == [b"b"]

    def test_a_view_that_is_given_up_is_gone_and_another_begins_empty(self, place: Place) -> None:
        state = place.cover(place.append(place.create(), some_records("a", "b")))

        state = place.drop_views(state)
        assert (state.log(0).view, place.store.view(state)) == (None, ())
        assert [r.key for r in place.records(state)] == [b"a", b"b"]

        state = place.cover(place.append(state, some_records("c")))
        assert [r.key for r in place.view(state)] == [b"c"]

    def test_what_is_not_in_the_view_cannot_be_taken_out_of_it(self, place: Place) -> None:
        state = place.append(place.create(), some_records("a"))
        (backlog,) = place.store.segments(state)
        state = place.cover(state)
        (view,) = place.store.view(state)

        for edit in (
            TopicEdit("run", NOW_MS, {}, view_remove=(backlog,)),
            TopicEdit("run", NOW_MS, {}, view_remove=(view, replace(view, path=f"{view.path}x"))),
            TopicEdit("run", NOW_MS, {}, remove=(view,)),
            TopicEdit("run", NOW_MS, {0: replace(state.log(0), view=None)}, view_remove=(backlog,)),
        ):
            with pytest.raises(ValueError, match="does not reference"):
                place.store.commit(state, edit)

        assert place.store.load(ORDERS) == state
        assert place.store.view(state) == (view,)

    def test_a_stale_round_changes_no_view(self, place: Place) -> None:
        old = place.cover(place.append(place.create(), some_records("a")))
        newest = place.append(old, some_records("b"))

        view = place.store.view(newest)

        for edit in (
            TopicEdit("r", NOW_MS, {0: old.log(0)}, view_add=place.store.segments(newest), verb=Verb.COMPACT),
            TopicEdit("r", NOW_MS, {0: replace(old.log(0), view=View())}, view_remove=view, verb=Verb.COMPACT),
            TopicEdit("r", NOW_MS, {0: replace(old.log(0), view=None)}, view_remove=view, verb=Verb.UNCOMPACT),
        ):
            with pytest.raises(StaleVersionError):
                place.store.commit(old, edit)

        assert place.store.load(ORDERS) == newest
        assert [r.key for r in place.view(newest)] == [b"a"]

    def test_of_a_round_and_an_append_at_once_neither_is_lost(self, place: Place) -> None:
        place.append(place.create(), some_records("first"))
        start = Barrier(2)

        def until_it_lands(act: object) -> None:
            start.wait()
            for _ in range(6):
                while True:
                    try:
                        act(place.store.load(ORDERS))  # type: ignore[operator]
                        break
                    except (StaleVersionError, UnknownVersionError):
                        continue  # to a store that was opened since, a version that was overtaken is unknown

        acts = (lambda state: place.append(state, some_records("more")), place.cover)
        with ThreadPoolExecutor(2) as pool:
            for done in [pool.submit(until_it_lands, act) for act in acts]:
                done.result()

        state = place.store.load(ORDERS)
        offsets = [r.offset for r in place.records(state)]
        assert offsets == list(range(7))
        assert [r.offset for r in place.view(state)] == offsets[: state.log(0).first_dirty_offset]
        assert len(place.store.versions(ORDERS)) == 6

    def test_an_old_state_still_tells_its_view(self, place: Place) -> None:
        old = place.cover(place.append(place.create(versions_kept=1), some_records("a")))
        view = self.view_seen_before(place, old)
        newest: TopicState = old
        for n in range(3):
            newest = place.cover(place.append(newest, some_records(f"{n}")))
        place.drop_views(newest)

        assert self.view_seen_before(place, old) == view

    def view_seen_before(self, place: Place, state: TopicState) -> object:
        """The view of a state that may be superseded. A store may override what is promised."""
        return place.store.view(state)

    def test_a_kept_version_keeps_its_view(self, place: Place) -> None:
        before = place.append(place.create(), some_records("a"))
        first = place.cover(before)
        second = place.append(first, some_records("b"))
        third = place.cover(second, keep=lambda record: record.key == b"b")
        place.drop_views(third)

        kept = [place.store.load_version(ORDERS, k.version) for k in place.store.versions(ORDERS)]

        assert kept == [third, second, before]
        assert [[r.key for r in place.view(state)] for state in kept] == [[b"b"], [b"a"], []]
        assert place.store.view(kept[1]) == place.store.view(kept[1], [0]) != ()

    def test_a_view_may_have_many_segments(self, place: Place) -> None:
        value = bytes(range(256)) * 4000  # a megabyte; a segment ends where a row group does
        records = [Record(b"%d" % n, value, NOW_MS, partition=0) for n in range(140)]
        state = place.append(place.create(segment_bytes=1024), records)

        state = place.cover(state, keep=lambda record: record.offset is not None and record.offset % 2 == 0)

        assert len(place.store.view(state)) > 1
        assert [r.offset for r in place.view(state)] == list(range(0, 140, 2))
