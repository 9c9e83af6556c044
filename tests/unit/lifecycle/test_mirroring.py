"""What a replica lacks of its source, and the commit that gives it (C63, C65)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lithify.errors import ConflictError, DamagedError, PolicyError
from lithify.model.replicas.file_names import copied_name, origin
from lithify.model.replicas.replica_of import ReplicaOf
from lithify.model.segment import Mask, Segment
from lithify.model.stored_file import FileKind, StoredFile
from lithify.model.topic.edit import Verb
from lithify.model.topic.log import LogState
from lithify.model.topic.state import TopicState
from lithify.rules.lifecycle.mirroring import Copied, TopicFiles, changed_logs, difference_of, mirrored, reusable
from lithify.rules.lifecycle.own_views import NO_RUN, Step
from lithify.rules.lifecycle.replicas import check_replicates, replica_of
from support.builders import some_settings
from support.topics.memory_topic import ORDERS


def a_topic(identity: str = "s", version: int = 5, *logs: LogState, **fields: object) -> TopicState:
    given = logs or (LogState(0),)
    state = TopicState(ORDERS, "orders", identity, version, f"/{identity}", some_settings(), given, 0)
    return replace(state, **fields)  # type: ignore[arg-type]


def a_replica(version: int = 3, *logs: LogState, **fields: object) -> TopicState:
    says = ReplicaOf("there", "s", version, (), 7)
    return a_topic("t", 7, *logs, **{"replica": says, **fields})


def a_segment(name: str, partition: int = 0, size_bytes: int = 10, folder: str = "/lake/orders-aaaaaaaa") -> Segment:
    path = f"{folder}/data/partition={partition}/{int(name):020d}-run{name}-v1-0.parquet"
    return Segment(path, partition, int(name), int(name) + 1, 1, size_bytes, 1, 0, 0, 0, 0, 1, b"k", b"k")


def copy_of(segment: Segment, run: str = "c") -> Segment:
    folder = f"/there/orders-bbbbbbbb/data/partition={segment.partition}"
    return replace(segment, path=f"{folder}/{copied_name(segment.path, run)}")


OF_THERE = ReplicaOf("there", "s", 5)
A, B, C, D = (a_segment(name) for name in "1234")


def test_files_are_compared_by_their_origins_c65() -> None:
    difference = difference_of(
        TopicFiles((A, C), (A, D)), TopicFiles((copy_of(A), copy_of(B)), (copy_of(C), copy_of(B)))
    )
    assert (difference.add, difference.view_add) == ((C,), (A, D))
    assert (difference.remove, difference.view_remove) == ((copy_of(B),), (copy_of(C), copy_of(B)))
    assert difference.to_copy == (D,)  # of the others the log or the view has copies


def test_a_file_of_log_and_view_is_copied_once_c65() -> None:
    assert difference_of(TopicFiles((A, B), (A, C)), TopicFiles()).to_copy == (A, B, C)


@pytest.mark.parametrize("other", [{"size_bytes": 11}, {"records": 2}, {"end_offset": 9}, {"min_key": b"j"}])
def test_a_copy_with_other_facts_is_damage_c65(other: dict[str, object]) -> None:
    with pytest.raises(DamagedError, match="does not match the metadata of its source") as error:
        difference_of(TopicFiles((A,)), TopicFiles((replace(copy_of(A), **other),)))  # type: ignore[arg-type]
    assert copy_of(A).path in error.value.message


def test_logs_are_the_same_if_their_last_commit_is_the_one_that_was_copied_c63() -> None:
    log = LogState(0, log_end_offset=4, run_ids=("a", "b"))
    target = a_replica(3, replace(log, run_ids=("b", "c")), LogState(1))
    assert changed_logs(Step(a_topic("s", 5, log, LogState(1)), target, OF_THERE)) == ()
    assert changed_logs(Step(a_topic("s", 5, log, LogState(1, epoch=2), LogState(2)), target, OF_THERE)) == (1, 2)
    assert changed_logs(Step(a_topic("s", 5, replace(log, run_ids=("a", "d")), LogState(1)), target, OF_THERE)) == (0,)


def test_the_commit_has_the_states_of_the_source_and_the_runs_of_the_replica_c63() -> None:
    before, after = LogState(0, run_ids=("ours",)), LogState(0, log_end_offset=5, epoch=9, run_ids=("theirs",))
    source = a_topic("s", 8, after, LogState(1, run_ids=("x",)), clock_ms=50, own_settings=frozenset({"retention.ms"}))
    target = a_replica(3, before, clock_ms=70)
    difference = difference_of(TopicFiles((A,), (A,)), TopicFiles((copy_of(B),)))
    copies = {origin(A.path): copy_of(A)}
    edit = mirrored(
        Step(source, target, replica_of(source, "there")), Copied(difference, copies, (copy_of(B),)), "c", 99
    )
    assert edit.logs == {0: replace(after, run_ids=("ours", "theirs")), 1: LogState(1, run_ids=("x",))}
    assert (edit.verb, edit.run_id, edit.time_ms, edit.clock_ms) == (Verb.REPLICATE, "c", 99, 70)
    assert (edit.add, edit.view_add, edit.remove) == ((copy_of(A),), (copy_of(A),), (copy_of(B),))
    assert edit.written == (copy_of(A),)
    assert (edit.settings, edit.own_settings) == (None, frozenset({"retention.ms"}))
    assert edit.replica == ReplicaOf("there", "s", 8)


def with_mask(segment: Segment, name: str, dead: int = 1) -> Segment:
    folder = segment.path.rpartition("/")[0]
    path = f"{folder}/{segment.base_offset:020d}-{name}-0-0.deletes.parquet"
    return replace(segment, records=segment.records - dead, mask=Mask(path, 100, dead))


def copy_with_mask(segment: Segment, run: str = "c", size_bytes: int = 90) -> Segment:
    assert segment.mask is not None
    path = f"{copy_of(segment).path.rpartition('/')[0]}/{copied_name(segment.mask.path, run)}"
    return replace(copy_of(segment), mask=Mask(path, size_bytes, segment.mask.dead))


LARGE = replace(A, records=9)
M, N = with_mask(LARGE, "m", 2), with_mask(LARGE, "n", 3)


def test_a_file_is_copied_once_and_each_of_its_masks_c65() -> None:
    difference = difference_of(TopicFiles((M, B), (N, B)), TopicFiles())
    assert difference.to_copy == (LARGE, M, B, N)
    assert difference.records_to_copy == 7 + 1
    difference = difference_of(TopicFiles((LARGE,), (N,)), TopicFiles((copy_of(LARGE),), (copy_with_mask(M),)))
    assert (difference.to_copy, difference.records_to_copy) == ((N,), 0)
    assert (difference.add, difference.remove) == ((), ())
    assert (difference.view_add, difference.view_remove) == ((N,), (copy_with_mask(M),))
    assert not difference.needs_only({})
    assert difference.needs_only({origin(N.id): copy_with_mask(N)})
    assert not difference.needs_only({origin(N.id): replace(copy_with_mask(N), path="another copy")})


def test_a_mask_may_be_of_another_size_at_the_replica_and_hides_as_many_of_the_same_file_c65() -> None:
    assert difference_of(TopicFiles((M,)), TopicFiles((copy_with_mask(M),))).to_copy == ()
    other = copy_with_mask(with_mask(LARGE, "m", 4))
    elsewhere = replace(copy_with_mask(M), path=copy_of(D).path)
    for wrong in (other, elsewhere):
        with pytest.raises(DamagedError, match="does not match the metadata of its source") as error:
            difference_of(TopicFiles((M,)), TopicFiles((wrong,)))
        assert wrong.id in error.value.message


def test_a_commit_exchanges_masks_and_vouches_for_both_files_c45_c63() -> None:
    log = LogState(0, log_end_offset=9, run_ids=("theirs",))
    source, target = a_topic("s", 8, log), a_replica(3, LogState(0))
    for there, copies in (
        ((copy_with_mask(M),), {origin(N.id): copy_with_mask(N)}),
        ((), {origin(N.id): copy_with_mask(N), origin(LARGE.path): copy_of(LARGE)}),
    ):
        difference = difference_of(TopicFiles((N,)), TopicFiles(there))
        step = Step(source, target, replica_of(source, "there"))
        edit = mirrored(step, Copied(difference, copies, there), "c", 99)
        assert (edit.add, edit.remove) == ((copy_with_mask(N),), there)
        assert set(edit.written) == set(copies.values())


def stored(segment: Segment, size_bytes: int = 10, run: str = "c", kind: FileKind = FileKind.OUTPUT) -> StoredFile:
    return StoredFile(segment.path, size_bytes, 0, kind, run)


def test_what_earlier_copies_left_is_used_if_it_may_be_c65() -> None:
    files = [
        stored(copy_of(A)),
        stored(copy_of(B), size_bytes=9),
        stored(copy_of(C, "gone"), run="gone"),
        stored(copy_of(D), kind=FileKind.FOREIGN),
        stored(D),
        stored(copy_of(a_segment("5"))),
    ]
    assert reusable(files, (A, B, C, D), ("gone",)) == (copy_of(A),)
    left = copy_with_mask(M)
    assert left.mask is not None
    found = replace(M, mask=left.mask)
    assert reusable([StoredFile(left.id, 90, 0, run_id="c")], (LARGE, M), ()) == (found,)  # of which file is not known


def run(*run_ids: str) -> LogState:
    return LogState(0, run_ids=run_ids)


REFUSALS: list[tuple[TopicState, TopicState, type[Exception], str]] = [
    (a_topic(), a_topic("t"), PolicyError, "is not a replica"),
    (a_topic(), a_topic("s"), PolicyError, "the target is the topic itself"),
    (a_topic(replica=ReplicaOf("x", "t")), a_replica(), PolicyError, "the source is a replica of it"),
    (a_topic(replica=ReplicaOf("x", "u", 1, ("v", "t"))), a_replica(), PolicyError, "the source is a replica of it"),
    (a_topic("other"), a_replica(), PolicyError, "is a replica of another topic"),
    (a_topic(), replace(a_replica(), version=9), ConflictError, "has written to"),
    (a_topic(version=2), a_replica(), ConflictError, "went back: it is at version 2"),
    (a_topic("s", 5, LogState(0, epoch=1)), a_replica(3, LogState(0, epoch=2)), ConflictError, "logs are older"),
    (a_topic("s", 5, LogState(0)), a_replica(3, LogState(0), LogState(1)), ConflictError, "logs are older"),
    (a_topic("s", 3, LogState(0, log_end_offset=1)), a_replica(3, LogState(0)), ConflictError, "its version 3 is not"),
    (a_topic("s", 3, run("a", "b")), a_replica(3, run("a", "own")), ConflictError, "its version 3 is not the one"),
    (a_topic("s", 9, run("b", "c")), a_replica(3, run("a", "own")), ConflictError, "its logs lack commits"),
    (a_topic("s", 6, run(*"bcdefghi")), a_replica(3, run("a", "own")), ConflictError, "its logs lack commits of its v"),
]


@pytest.mark.parametrize(("source", "target", "error", "says"), REFUSALS, ids=[r[3] for r in REFUSALS])
def test_what_is_not_a_replica_of_this_source_is_refused_c64(
    source: TopicState, target: TopicState, error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        check_replicates(source, "here", target)


def test_a_replica_of_this_source_is_not_refused_c64() -> None:
    assert check_replicates(a_topic(), "here", a_replica()) == a_replica().replica
    assert check_replicates(a_topic(version=3), "here", a_replica()).version == 3
    assert check_replicates(a_topic(version=1), "here", a_replica(0)).version == 0
    for forgotten in ("a", NO_RUN):  # by so many commits since, or never known
        later = a_topic("s", 11 if forgotten == "a" else 4, run(*"bcdefghi"))
        assert check_replicates(later, "here", a_replica(3, run(forgotten, "own"))).version == 3
