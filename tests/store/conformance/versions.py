"""Kept versions: what rounds, and commits that remove segments, close (C7, `versions.kept`)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lithify.errors import UnknownVersionError
from lithify.model.segment import sizes_of
from lithify.model.settings.topic_settings import changed
from lithify.model.topic.edit import KeptVersion, TopicEdit, Verb
from support.store.builders import NOW_MS, ORDERS, Place, a_view, some_records


def of_earlier_versions(place: Place) -> int:
    """The size of the files that kept versions name and the newest does not, found by reading them all."""
    store, newest = place.store, place.store.load(ORDERS)
    now = sizes_of((*store.segments(newest), *store.view(newest)))
    then = [store.load_version(ORDERS, kept.version) for kept in store.versions(ORDERS)]
    before = sizes_of(segment for state in then for segment in (*store.segments(state), *store.view(state)))
    return sum(size for path, size in before.items() if path not in now)


def told(place: Place) -> int:
    """The same as the versions tell it."""
    return sum(kept.no_longer_named_bytes or 0 for kept in place.store.versions(ORDERS))


class VersionRules:
    """Rules on kept versions."""

    def test_a_commit_that_removes_segments_keeps_what_it_closes(self, place: Place) -> None:
        before = place.append(place.append(place.create(), some_records("a", "b")), some_records("a"))
        segments = place.store.segments(before)

        after = place.round(before, keep=lambda record: record.offset != 0, closed_ms=NOW_MS + 5)

        run = after.log(0).run_ids[-1]
        gone = sum(segment.size_bytes for segment in segments)
        assert place.store.versions(ORDERS) == (KeptVersion(before.version, NOW_MS + 5, run, Verb.COMPACT, gone),)
        past = place.store.load_version(ORDERS, before.version)
        assert past == before
        assert place.store.segments(past) == segments
        assert [r.key for r in place.records(past)] == [b"a", b"b", b"a"]
        assert [r.offset for r in place.records(after)] == [1, 2]

    def test_a_round_that_removes_nothing_closes_a_version_too(self, place: Place) -> None:
        state = place.append(place.create(), some_records("a"))
        log = replace(state.log(0), first_dirty_offset=1)

        place.store.commit(state, TopicEdit("r1", NOW_MS, {0: log}, verb=Verb.COMPACT))

        assert place.store.versions(ORDERS) == (KeptVersion(state.version, NOW_MS, "r1", Verb.COMPACT, 0),)
        assert place.store.load_version(ORDERS, state.version) == state
        assert place.records(place.store.load_version(ORDERS, state.version)) == place.records(state)

    def test_a_kept_version_tells_what_closed_it(self, place: Place) -> None:
        state = place.create()
        for verb in Verb:
            state = place.append(state, some_records("a"))
            state = place.drop(state, place.store.segments(state), verb=verb)

        assert [kept.verb for kept in place.store.versions(ORDERS)] == list(reversed(Verb))

    def test_the_newest_version_can_be_loaded_and_is_not_listed(self, place: Place) -> None:
        state = place.round(place.append(place.create(), some_records("a")))

        assert place.store.load_version(ORDERS, state.version) == state
        assert state.version not in [kept.version for kept in place.store.versions(ORDERS)]

    def test_appends_and_changes_of_state_keep_no_version(self, place: Place) -> None:
        state = place.create()
        appended = place.append(state, some_records("a"))
        place.change(appended, first_dirty_offset=1)

        assert place.store.versions(ORDERS) == ()
        for version in (state.version, appended.version, 99, 0, -1):
            with pytest.raises(UnknownVersionError, match=f"version {version} "):
                place.store.load_version(ORDERS, version)

    def test_the_newest_stay_and_older_ones_go(self, place: Place) -> None:
        state = place.create(versions_kept=3)
        closed = []
        for n in range(6):
            state = place.append(state, some_records(f"{n}"))
            closed.append(state)
            state = place.round(state, closed_ms=NOW_MS + n)

        kept = place.store.versions(ORDERS)

        assert [k.version for k in kept] == [c.version for c in reversed(closed[3:])]
        assert [k.closed_ms for k in kept] == [NOW_MS + 5, NOW_MS + 4, NOW_MS + 3]
        for past in closed[3:]:
            assert place.store.load_version(ORDERS, past.version) == past
            assert len(place.records(place.store.load_version(ORDERS, past.version))) == past.log(0).log_end_offset
        for past in closed[:3]:
            with pytest.raises(UnknownVersionError, match=str(closed[3].version)):
                place.store.load_version(ORDERS, past.version)

    def test_the_setting_that_the_commit_brings_counts(self, place: Place) -> None:
        state = place.create(versions_kept=9)
        for n in range(4):
            state = place.round(place.append(state, some_records(f"{n}")))
        segments = place.store.segments(state)
        settings = changed(state.settings, {"versions.kept": 2})

        place.store.commit(state, TopicEdit("run", NOW_MS, {}, remove=segments, settings=settings))

        kept = place.store.versions(ORDERS)
        assert kept[0].version == state.version
        assert len(kept) == 2
        assert place.store.load_version(ORDERS, state.version).settings.versions_kept == 9
        assert place.store.load(ORDERS).settings.versions_kept == 2

    def test_logs_of_a_kept_version_are_those_of_then(self, place: Place) -> None:
        state = place.append(place.create(partitions=2), some_records("a"))
        closed = place.change(state, 1, generation=4, log_start_offset=0)
        newest = place.change(place.round(closed), 1, generation=5)

        past = place.store.load_version(ORDERS, closed.version)

        assert past.logs == closed.logs
        assert past.log(1).generation == 4
        assert newest.log(1).generation == 5
        assert (past.identity, past.location) == (newest.identity, newest.location)

    def test_kept_versions_tell_the_size_of_the_files_that_only_they_name(self, place: Place) -> None:
        """As rounds replace files, an append adds some, versions leave, and an `undo` names files again."""
        state = place.create(versions_kept=2)
        for n in range(4):
            state = place.append(state, some_records("a", f"{n}"))
            before = place.store.segments(state)
            state = place.round(state, keep=lambda record: record.key != b"a", closed_ms=NOW_MS + n)
            assert told(place) == of_earlier_versions(place) > 0
        state = place.append(state, some_records("b"))
        replaced = tuple(s for s in place.store.segments(state) if s.base_offset < before[-1].end_offset)
        edit = TopicEdit("u", NOW_MS, {0: state.log(0).with_run("u")}, add=before, remove=replaced, verb=Verb.UNDO)
        place.store.commit(state, edit)
        assert told(place) == of_earlier_versions(place)
        assert [kept.no_longer_named_bytes for kept in place.store.versions(ORDERS)] == [
            sum(sizes_of(replaced).values()),
            0,
        ]

    def test_a_file_that_only_the_view_still_names_is_not_of_earlier_versions(self, place: Place) -> None:
        state = place.append(place.create(compaction_mode="side-by-side"), some_records("a"))
        segments = place.store.segments(state)
        log = replace(state.log(0), view=a_view(segments))
        state = place.store.commit(state, TopicEdit("r1", NOW_MS, {0: log}, view_add=segments, verb=Verb.COMPACT))
        state = place.drop(state, segments)
        assert told(place) == of_earlier_versions(place) == 0
        place.drop_views(state)
        assert told(place) == of_earlier_versions(place) == sum(sizes_of(segments).values())
