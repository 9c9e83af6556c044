"""Leader epochs, which no checksum covers, and the replica that they choose."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from lithify.errors import RefusedError
from lithify.kafka_log.directories.checkpoints import EpochStart
from lithify.kafka_log.directories.folders import LogFolder
from lithify.kafka_log.log_epochs import EpochRun, log_epochs
from lithify.kafka_log.log_notes import log_notes
from lithify.kafka_log.replicas import ReplicaError, best_of, left_behind, telling_replicas
from lithify.kafka_log.scanned_log import ScannedLog, ScannedSegment, scanned_log
from lithify.kafka_log.segment_scan import scanned
from lithify.kafka_log.tiered_log import tiered_log
from lithify.kafka_log.whole_logs import lacking
from support.kafka.batches import batch

FOLDER = LogFolder(Path("/logs/orders-0"), "orders", 0)
Starts = Sequence[tuple[int, int]]


def a_segment(name: str, epochs: Sequence[int], first: int = 0) -> ScannedSegment:
    """A batch of one record for each of the epochs."""
    data = b"".join(batch(first + n, b"v", epoch=epoch) for n, epoch in enumerate(epochs))
    return ScannedSegment(Path(name), first, scanned(io.BytesIO(data)))


def a_replica(name: str, epochs: Sequence[int], noted: Starts = ()) -> ScannedLog:
    folder = replace(FOLDER, path=Path(name), epochs=tuple(EpochStart(*each) for each in noted))
    return scanned_log(folder, [a_segment(name, epochs)])


@pytest.mark.parametrize(
    ("epochs", "noted", "counts", "doubt"),
    [
        ([0, 0, 1, 1], [], [(0, 0), (1, 2)], None),
        ([0, 0, 1, 1], [(0, 0), (1, 2)], [(0, 0), (1, 2)], None),
        ([0, 0, 1, 1], [(0, 0), (1, 2), (5, 4)], [(0, 0), (1, 2), (5, 4)], None),
        ([0, 1, 1, 4], [(0, 0), (1, 1), (2, 3), (4, 3)], [(0, 0), (1, 1), (2, 3), (4, 3)], None),
        ([1, 1, 4], [(4, 2)], [(4, 2)], None),
        ([0, 9, 0, 0], [(0, 0)], [(0, 0)], "its batch at offset 2 has the epoch 0, after one of epoch 9"),
        ([0, 9, 0, 0], [], [(0, 0)], "its batch at offset 2 has the epoch 0, after one of epoch 9"),
        ([0, 0, 0, 9], [(0, 0)], [(0, 0), (9, 3)], "its checkpoint of epochs does not have epoch 9, which its batches"),
        ([0, 0, 0, 9], [], [(0, 0), (9, 3)], None),
        ([2, 2, 1, 2], [(2, 0)], [(2, 0)], "its batch at offset 2 has the epoch 1, after one of epoch 2"),
        (
            [0, 0, 0, 0],
            [(9, 0)],
            [(9, 0)],
            "its batch at offset 0 has the epoch 0, and its checkpoint of epochs 9",
        ),
        ([0, 0, 1, 1], [(0, 0), (1, 1)], [(0, 0), (1, 1)], "its batch at offset 1 has the epoch 0, and its checkpoint"),
        ([0, 0, 1, 1], [(0, 0), (1, 3)], [(0, 0), (1, 3)], "its batch at offset 2 has the epoch 1, and its checkpoint"),
    ],
)
def test_the_epochs_that_count(epochs: Sequence[int], noted: Starts, counts: Starts, doubt: str | None) -> None:
    log = a_replica("one", epochs, noted)
    assert [(start.epoch, start.offset) for start in log.epochs] == counts
    told = [text for kind, text in log_notes(log) if kind == "epochs"]
    assert (log.own_epochs.doubt or "").startswith(doubt or "") and bool(told) == (doubt is not None)


def test_a_cleaner_may_have_taken_the_batches_around_the_start_of_an_epoch() -> None:
    noted = (EpochStart(0, 0), EpochStart(1, 50), EpochStart(2, 100))
    assert log_epochs(noted, [EpochRun(0, 0, 40), EpochRun(2, 120, 130)], 131).doubt is None
    assert log_epochs(noted, [EpochRun(0, 0, 60), EpochRun(2, 120, 130)], 131).doubt is not None


TRUE = ("true", [0, 0, 1], [(0, 0), (1, 2)])
"""Of a leader that was elected at offset 2, with less than one that died had."""


@pytest.mark.parametrize(
    "other",
    [
        ("other", [0, 0, 0, 0, 9], [(0, 0)]),
        ("other", [0, 0, 0, 0, 0], [(9, 0)]),
        ("other", [0, 0, 9], [(0, 0)]),
        ("other", [0, 9], []),
    ],
)
def test_a_replica_whose_epoch_may_be_wrong_does_not_win_by_it(other: tuple[str, Sequence[int], Starts]) -> None:
    replicas = [a_replica(*TRUE), a_replica(*other)]
    for each in (replicas, replicas[::-1]):
        with pytest.raises(ReplicaError, match=r"^other of leader epoch 9, which ends at . would count, but"):
            best_of(each)
    assert best_of(replicas[:1]) is replicas[0] and best_of(replicas[1:]) is replicas[1]
    with pytest.raises(RefusedError, match=r"orders-0: other of .* there is true of"), telling_replicas("orders-0"):
        best_of(replicas)


def test_what_the_cluster_leaves_out_is_told() -> None:
    true, died = a_replica(*TRUE), a_replica("died", [0, 0, 0, 0], [(0, 0)])
    assert best_of([died, true]) is true
    (told,) = left_behind(true, [died, true])
    assert told.startswith(
        "true of leader epoch 1, which ends at 3 counts; left out is what there is from offset 2 on in died"
    )
    behind = a_replica("behind", [0, 0], [(0, 0)])
    assert best_of([behind, true]) is true and not left_behind(true, [behind, true])


def test_what_an_earlier_leader_had_at_the_same_offsets_is_told() -> None:
    true, died = a_replica("true", [0, 0, 1, 1, 1], [(0, 0), (1, 2)]), a_replica("died", [0, 0, 0], [(0, 0)])
    (told,) = left_behind(true, [died, true])
    assert told.endswith("left out is what there is from offset 2 on in died of leader epoch 0, which ends at 3")


@pytest.mark.parametrize("noted", [[(0, 0)], [(0, 0), (1, 3)]])
def test_a_replica_that_lost_its_end_still_tells_what_all_had(noted: Starts) -> None:
    """Of epoch 1, in whose place it may have nothing any more."""
    behind = a_replica("a/behind", [0, 0, 0, noted[-1][0]], noted)
    torn = scanned_log(
        replace(FOLDER, path=Path("b/torn"), epochs=tuple(EpochStart(*each) for each in noted), replicated_to=6),
        [a_segment("torn", [0, 0])],
    )
    best = best_of([torn, behind])
    assert (best.written_end, best.replicated) == (4, (6, Path("b")))
    (told,) = lacking("orders", {0: best}, {0: 0}, skips=True)
    assert told.startswith("orders-0: replication-offset-checkpoint in b has 6, but its files end at 4")


def test_a_replica_that_has_lost_its_latest_epoch_lets_no_earlier_one_count() -> None:
    lost, died = a_replica("lost", [0], [(0, 0), (1, 2)]), a_replica("died", [0, 0, 0, 0], [(0, 0)])
    for each in ([lost, died], [died, lost]):
        with pytest.raises(ReplicaError, match=r"^died of .* would count, but lost of .* had epoch 1 from offset 2 on"):
            best_of(each)
    behind = a_replica("behind", [0, 0], [(0, 0)])
    assert best_of([lost, behind]) is behind
    assert [text for _, text in log_notes(lost)] == [
        "its checkpoint of epochs has 1 from offset 2 on, and its files end at 1: its last records are lost"
    ]


def test_a_replica_that_is_cut_is_told_though_another_one_counts() -> None:
    whole, data = a_replica("whole", [0, 0, 0]), batch(0, b"v") + batch(1, b"v") + batch(2, b"v")
    torn = scanned_log(
        replace(FOLDER, path=Path("torn")), [ScannedSegment(Path("torn"), 0, scanned(io.BytesIO(data[:-1])))]
    )
    best = best_of([torn, whole])
    (told,) = left_behind(best, [torn, whole])
    assert best is whole and "torn of leader epoch 0, which ends at 2 does not count, and what it had after" in told


def test_the_mark_of_an_earlier_leader_does_not_count() -> None:
    """Its cluster has lost that, and went on."""
    died = replace(a_replica("died", [0, 0, 0, 0], [(0, 0)]), replicated=(4, Path("died")))
    assert best_of([died, a_replica(*TRUE)]).replicated is None


def test_the_replica_goes_on_that_lacks_no_file_though_a_cleaner_may_have_emptied_it() -> None:
    parts = [a_segment(str(first), [0, 0], first) for first in (0, 2, 4)]
    cleaned = replace(FOLDER, first_dirty=4)
    lacks, whole = scanned_log(cleaned, parts[::2]), scanned_log(cleaned, parts)
    assert best_of([lacks, whole]) is whole and best_of([whole, lacks]) is whole


def test_a_damaged_epoch_within_a_log_chooses_nothing() -> None:
    flipped, whole = a_replica("flipped", [0, 9, 0], [(0, 0)]), a_replica("whole", [0, 0, 0, 0], [(0, 0)])
    assert best_of([flipped, whole]) is whole


def test_a_tiered_segment_does_not_replace_what_ends_behind_it() -> None:
    flipped = tiered_log(FOLDER, [a_segment("a", [0, 0]), a_segment("b", [0, 9], 2), a_segment("c", [0, 0], 4)], None)
    with pytest.raises(ReplicaError, match="replace c, which ends at 6, but they end at 4"):
        flipped.check_end()
    stale = tiered_log(FOLDER, [a_segment("a", [0, 4])], a_replica("broker", [0, 0, 0]))
    with pytest.raises(ReplicaError, match="replace broker, which ends at 3, but they end at 2"):
        stale.check_end()
    tiered_log(FOLDER, [a_segment("a", [0, 0, 0]), a_segment("b", [4, 4, 4], 1)], None).check_end()
