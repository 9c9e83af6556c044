"""What `repair` decides about the remains of a topic, from the best case to the worst (C6, C8)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lithify.errors import RefusedError
from lithify.model.names import TopicName
from lithify.model.remains import ClosedState, Entry, MetadataFile, Remains
from lithify.model.replicas.file_names import copied_name
from lithify.model.replicas.replica_of import ReplicaOf
from lithify.model.segment import Mask, Segment
from lithify.model.topic.append_note import CHAIN_ID
from lithify.model.topic.log import LogState, View, WrittenBatch
from lithify.model.topic.state import TopicState
from lithify.rules.lifecycle.repaired_masks import with_masks
from lithify.rules.lifecycle.repairing import Way, clusters, plan_repair
from support.builders import a_segment, a_topic, some_settings

NAME = TopicName("default", "orders")


def a_state(*ends: int, version: int = 7) -> TopicState:
    logs = (LogState(n, log_end_offset=end) for n, end in enumerate(ends))
    return a_topic(*logs, name=NAME, version=version, location="w/orders-1")


def whole(number: int, *ends: int, version: int = 7) -> MetadataFile:
    return MetadataFile(f"m/{number}", number, a_state(*ends, version=version), claims=version)


def remains(*files: MetadataFile, **found: object) -> Remains:
    return replace(Remains("w/orders-1", NAME), files=files, **found)


def test_a_topic_with_nothing_wrong_is_left_alone() -> None:
    assert plan_repair(Remains("w", NAME, Entry.WHOLE)).way is Way.NOTHING


def test_the_newest_version_is_named_again_when_it_is_whole() -> None:
    plan = plan_repair(remains(whole(8, 10), named=(a_segment(),)))

    assert (plan.way, plan.complete, plan.notes) == (Way.REGISTER, True, ())
    assert plan.metadata is not None and plan.metadata.number == 8


def test_what_other_programs_committed_on_it_is_reported_and_loses_nothing_of_ours() -> None:
    """They go on from our version, so that its number stays what it was."""
    theirs = MetadataFile("m/9", 9, problem="main was moved", claims=7, foreign=("an append of 5 records",))

    plan = plan_repair(remains(theirs, whole(8, 10)))

    assert (plan.way, plan.complete) == (Way.REGISTER, True)
    assert plan.notes == ("m/9: main was moved; it is omitted", "omitted: an append of 5 records")


def test_what_lies_beyond_a_file_that_the_catalog_names_was_never_committed() -> None:
    """Such as appends that were refused since another program had changed the table."""
    theirs = MetadataFile("m/9", 9, problem="a column was dropped", claims=7)
    refused = (a_segment("refused", 10, 11), a_segment("refused again", 10, 11))

    plan = plan_repair(remains(theirs, whole(8, 10), entry=Entry.DAMAGED, current="m/9", unnamed=refused))

    assert (plan.way, plan.complete) == (Way.REGISTER, True)
    assert plan.notes[1:] == (
        "refused: offsets 10 to 10 of partition 0 are omitted",
        "refused again: offsets 10 to 10 of partition 0 are omitted",
    )


@pytest.mark.parametrize("claims", [None, 8])
def test_where_later_metadata_is_lost_the_topic_is_rebuilt(claims: int | None) -> None:
    """What it was of is not known, so that its version must not be given a second time."""
    lost = MetadataFile("m/9", 9, problem="the file is missing", claims=claims)

    plan = plan_repair(remains(lost, whole(8, 10), named=(a_segment(),)))

    (log,) = plan.logs
    assert (plan.way, plan.complete) == (Way.REBUILD, False)
    assert (log.state.log_start_offset, log.state.first_dirty_offset, log.state.log_end_offset) == (0, 0, 10)
    assert log.state.uncovered and log.state.round_required
    assert [s.path for s in log.segments] == ["s"]


def test_segments_beyond_the_log_end_are_appended_but_not_those_that_a_commit_removed() -> None:
    beyond, cut_off = a_segment("beyond", 10, 14), a_segment("cut off", 10, 12)

    plan = plan_repair(
        remains(whole(8, 10), named=(a_segment(),), unnamed=(beyond, cut_off), closed=frozenset({"cut off"}))
    )

    (log,) = plan.logs
    assert plan.way is Way.REBUILD
    assert [s.path for s in log.segments] == ["s", "beyond"]
    assert log.state.log_end_offset == 14
    assert any("beyond: offsets 10 to 13" in note and "may not have been" in note for note in plan.notes)
    assert any("cut off" in note and "omitted" in note for note in plan.notes)


def test_a_rebuilt_topic_forgets_which_run_has_appended_with_keys_last() -> None:
    """C75: a later one may have written segments that are taken. Batches of Spark are remembered."""
    of_spark = WrittenBatch("q", 3, "s")
    state = a_topic(
        LogState(0, log_end_offset=10, batches=(of_spark, WrittenBatch(CHAIN_ID, 2, "c r"))),
        version=7,
        location="w/orders-1",
    )

    plan = plan_repair(remains(MetadataFile("m/8", 8, state, claims=7), unnamed=(a_segment("beyond", 10, 14),)))

    (log,) = plan.logs
    assert (plan.way, log.state.batches) == (Way.REBUILD, (of_spark,))


@pytest.mark.parametrize(("found", "known"), [((), 3), ((a_segment("beyond", 10, 14),), None)])
def test_the_epoch_of_a_copy_is_known_only_while_its_end_is(found: tuple[Segment, ...], known: int | None) -> None:
    """C72: what was found beyond it may be of a later one."""
    state = replace(a_state(10), logs=(LogState(0, log_end_offset=10, source_epoch=3),))
    lost = MetadataFile("m/9", 9, problem="damaged")

    (log,) = plan_repair(remains(lost, replace(whole(8), state=state), named=(a_segment(),), unnamed=found)).logs

    assert log.state.source_epoch == known


def test_of_equally_new_versions_a_person_says_which() -> None:
    with pytest.raises(RefusedError, match=r"equally new.*metadata=FILE"):
        plan_repair(remains(whole(8, 10), replace(whole(8, 11), path="m/8b")))


def test_segments_that_are_gone_make_it_incomplete() -> None:
    plan = plan_repair(remains(whole(8, 10), missing=("gone",)))

    assert (plan.way, plan.complete) == (Way.REGISTER, False)
    assert plan.notes == ("gone: the file is missing, so its records are lost",)


@pytest.mark.parametrize(("missing", "complete"), [((), True), (("gone",), False)])
def test_so_do_those_of_a_topic_that_is_rebuilt(missing: tuple[str, ...], complete: bool) -> None:
    plan = plan_repair(remains(whole(8, 10), missing=missing, unnamed=(a_segment("beyond", 10, 14),)))

    assert (plan.way, plan.complete) == (Way.REBUILD, complete)


@pytest.mark.parametrize(
    ("others", "way"),
    [((), Way.NOTHING), ((whole(8, 10, version=6),), Way.NOTHING), ((whole(8, 10),), Way.REGISTER)],
    ids=["none is whole", "only older ones are", "one of that version is"],
)
def test_a_version_that_lost_only_earlier_ones_is_left_unless_it_is_there_twice(
    others: tuple[MetadataFile, ...], way: Way
) -> None:
    """An older one would take back what was committed since."""
    now = MetadataFile("m/9", 9, problem="version 3 cannot be read", claims=7, unkept=True)

    assert plan_repair(remains(now, *others, entry=Entry.DAMAGED, current="m/9")).way is way


def test_what_only_the_view_has_comes_along() -> None:
    """Retention had trimmed the backlog to 10: of the view, what lies below it."""
    state = replace(a_state(20), logs=(LogState(0, 10, 15, 20, view=View(first_offset=2)),))
    file = replace(whole(8), state=state)
    lost = MetadataFile("m/9", 9, problem="damaged")
    backlog, below, above = a_segment("b", 10, 20), a_segment("below", 2, 9), a_segment("above", 10, 15)

    (log,) = plan_repair(remains(lost, file, named=(backlog,), view=(below, above))).logs

    assert [s.path for s in log.segments] == ["below", "b"]
    assert (log.state.log_start_offset, log.state.view) == (2, None)


def test_without_metadata_the_segments_and_the_newest_record_say_what_there_was() -> None:
    settings = some_settings(null_key="retain")
    known = ClosedState(5, settings, (LogState(0, 3, 8, 30, generation=2), LogState(1)), frozenset({"segment.bytes"}))
    live, superseded = a_segment("live", 0, 10), a_segment("superseded", 0, 8)

    plan = plan_repair(remains(unnamed=(live, superseded), closed=frozenset({"superseded"}), last_closed=known))

    assert (plan.way, plan.complete) == (Way.REBUILD, False)
    assert (plan.settings, plan.own_settings) == (settings, frozenset({"segment.bytes"}))
    first, second = plan.logs
    assert [s.path for s in first.segments] == ["live"]
    assert (first.state.log_start_offset, first.state.log_end_offset, first.state.generation) == (3, 30, 2)
    assert (second.segments, second.state.log_end_offset) == ((), 0)


SAYS = ReplicaOf("the warehouse of the source", "its identity", 4)


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (
            (
                MetadataFile("m/9", 9, problem="damaged"),
                replace(whole(8, 10), state=replace(a_state(10), replica=SAYS)),
            ),
            7,
        ),
        ((replace(whole(8, 10), state=replace(a_state(10), replica=SAYS), problem="its manifests are lost"),), 7),
        ((), 5),
    ],
    ids=["an earlier version", "metadata without manifests", "a record of a closed version"],
)
def test_a_rebuilt_replica_is_said_to_be_none_any_more(found: tuple[MetadataFile, ...], told: int) -> None:
    """C64: or a person takes it for one."""
    known = ClosedState(5, some_settings(), (LogState(0, 0, 8, 8),), replica=SAYS)

    plan = plan_repair(remains(*found, unnamed=(a_segment("live", 0, 10),), last_closed=known))

    assert plan.way is Way.REBUILD
    assert plan.notes[-1].startswith(
        f"at version {told} it was a replica of the topic in the warehouse of the source; "
    )


@pytest.mark.parametrize("last_closed", [None, ClosedState(5, some_settings(), (LogState(0, 0, 8, 8),))])
def test_files_that_are_copies_may_be_those_of_a_replica(last_closed: ClosedState | None) -> None:
    """C64: of one that was promoted, if a record tells that it is none."""
    copy = a_segment(
        f"data/{copied_name('w/orders-2/data/partition=0/' + 20 * '0' + '-run-v1-0.parquet', 'copy')}", 0, 10
    )

    plan = plan_repair(remains(unnamed=(copy,), last_closed=last_closed))

    assert ("it may have been a replica" in plan.notes[-1]) == (last_closed is None)
    assert not any("replica" in note for note in plan.notes[:-1])


def with_mask(segment: Segment, path: str, dead: int) -> Segment:
    return replace(segment, records=segment.records - dead, mask=Mask(path, 1, dead))


IN_PLACE = LogState(0, log_end_offset=20, log_start_offset=5, losers_removed=True)
BESIDE = LogState(0, log_end_offset=20, log_start_offset=5, view=View())
LOW, HIGH = a_segment("low", 0, 5), a_segment("high", 5, 20)


@pytest.mark.parametrize(
    ("log", "certain", "closed", "chosen", "told"),
    [
        (IN_PLACE, {"l", "h"}, (), {"l", "h"}, 0),
        (IN_PLACE, {"h"}, (), {"low", "h"}, 1),
        (IN_PLACE, {"h"}, {"l", "h"}, {"low", "high"}, 2),  # one that was let go may have come back with an undo
        (IN_PLACE, {"l", "h", "h2"}, (), {"l", "high"}, 1),
        (BESIDE, {"l", "h"}, (), {"l", "high"}, 0),  # the log itself has what is at and above its start
        (replace(BESIDE, losers_removed=True), {"l", "h"}, (), {"l", "high"}, 1),
        (None, {"l", "h"}, (), {"low", "high"}, 2),
    ],
)
def test_without_metadata_masks_count_where_it_is_certain_that_the_log_has_them(
    log: LogState | None, certain: set[str], closed: set[str], chosen: set[str], told: int
) -> None:
    masked = [with_mask(LOW, "l", 2), with_mask(HIGH, "h", 3)]
    masked += [with_mask(HIGH, "h2", 4)] if "h2" in certain else []
    known = None if log is None else ClosedState(6, some_settings(), (replace(log, log_start_offset=5),))
    segments, notes = with_masks(
        remains(masked=tuple(masked), certain=frozenset(certain), closed=frozenset(closed)), (LOW, HIGH), known
    )
    assert {segment.id for segment in segments} == chosen
    assert len(notes) == told
    assert all("perhaps with values of deleted keys" in note for note in notes)


def test_what_a_later_mask_hides_is_told_where_only_an_earlier_one_is_certain() -> None:
    """The round that wrote the later one may not have committed."""
    masked = (with_mask(HIGH, "h", 3), with_mask(HIGH, "h2", 4))
    known = ClosedState(6, some_settings(), (IN_PLACE,))
    segments, (note,) = with_masks(remains(masked=masked, certain=frozenset({"h"})), (HIGH,), known)
    assert [segment.id for segment in segments] == ["h"]
    assert note.startswith(
        "h2: it is not certain that this mask was committed, so 1 records of high that rounds had hidden"
    )


def test_a_mask_that_is_missing_is_said_to_be_one() -> None:
    lost = MetadataFile("m/9", 9, problem="the file is missing")
    found = {"named": (a_segment(),), "missing": ("m",), "missing_masks": frozenset({"m"})}
    registered, rebuilt = plan_repair(remains(whole(8, 10), **found)), plan_repair(remains(lost, whole(8, 10), **found))
    assert (registered.way, registered.complete) == (Way.REGISTER, False)
    assert registered.notes == ("m: the mask is missing, and its segment cannot be read without it",)
    assert rebuilt.way is Way.REBUILD
    assert rebuilt.notes[1].startswith("m: the mask is missing, and records that it had hidden are back")


def test_with_nothing_to_go_by_it_is_refused() -> None:
    with pytest.raises(RefusedError, match="no metadata, no segment and no record"):
        plan_repair(remains())


def test_a_deletion_that_broke_off_is_finished_whatever_is_left() -> None:
    assert plan_repair(remains(whole(8, 10), deleted=True)).way is Way.FINISH


def test_segments_that_overlap_are_taken_together() -> None:
    parts = [a_segment("a", 0, 5), a_segment("b", 3, 4), a_segment("c", 4, 9), a_segment("d", 9, 12)]

    assert [[s.path for s in cluster] for cluster in clusters(parts)] == [["a", "b", "c"], ["d"]]
