"""A log of scanned segments: its offsets, its damage, and where a broker would cut it."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import pytest

from lithify.errors import DamagedError
from lithify.kafka_log.batches.decoding import EndKind
from lithify.kafka_log.directories.checkpoints import EpochStart
from lithify.kafka_log.directories.folders import LogFolder
from lithify.kafka_log.log_notes import deletes_text, left_out, log_notes, notes_of
from lithify.kafka_log.scanned_log import ScannedLog, ScannedSegment, is_checked, scanned_log
from lithify.kafka_log.segment_scan import scanned
from lithify.kafka_log.whole_logs import lacking
from support.kafka.batches import batch, transaction_end

FOLDER = Path("/logs/orders-0")


def a_log(files: Sequence[tuple[int, bytes]], *, was_shut_down: bool = True, **noted: object) -> ScannedLog:
    folder = LogFolder(FOLDER, "orders", 0, **noted)  # type: ignore[arg-type]
    checked = is_checked([base for base, _ in files], folder.recovery_point, was_shut_down=was_shut_down)
    return scanned_log(
        folder,
        [
            ScannedSegment(FOLDER / f"{base}.log", base, scanned(io.BytesIO(data), cuts=cuts), cuts)
            for (base, data), cuts in zip(files, checked, strict=True)
        ],
    )


def damaged(data: bytes) -> bytes:
    return data[:-1] + bytes([data[-1] ^ 1])


WHOLE = [(0, batch(0, b"a", b"b", epoch=1)), (2, batch(2, b"c", epoch=4) + batch(5, b"d", epoch=4)), (7, b"")]


def test_a_whole_log() -> None:
    log = a_log(WHOLE, log_start=1, epochs=(EpochStart(1, 0), EpochStart(4, 2)))
    assert (log.start_offset, log.end_offset, log.stable_end, log.leader_epoch) == (1, 7, 7, 4)
    assert (log.damage, log.cut) == ((), None)
    assert [log.end_of_epoch(epoch) for epoch in (0, 1, 3, 4, 5)] == [0, 2, 2, 7, None]


@pytest.mark.parametrize("noted", [(), (EpochStart(1, 0),), (EpochStart(1, 0), EpochStart(4, 2)), (EpochStart(7, 99),)])
def test_epochs_that_the_checkpoint_lacks_are_those_of_the_batches(noted: tuple[EpochStart, ...]) -> None:
    """A checkpoint may be missing or old; what it has of offsets that a crash has torn off does not count."""
    log = a_log(WHOLE, epochs=noted)
    assert log.epochs == (EpochStart(1, 0), EpochStart(4, 2))
    assert (log.leader_epoch, log.end_of_epoch(1), log.end_of_epoch(4)) == (4, 2, 7)


def test_an_epoch_without_records_is_known_from_the_checkpoint() -> None:
    log = a_log(WHOLE, epochs=(EpochStart(1, 0), EpochStart(3, 2), EpochStart(4, 2), EpochStart(6, 7)))
    assert (log.leader_epoch, log.end_of_epoch(1), log.end_of_epoch(4)) == (6, 2, 7)


@pytest.mark.parametrize(("noted", "lacks"), [(None, None), (0, 0), (2, 2), (3, None), (4, None)])
def test_what_is_before_its_first_file_is_told(noted: int | None, lacks: int | None) -> None:
    log = a_log([(3, batch(3, b"a", b"b"))], log_start=noted)
    assert (log.lacks_from, log.start_offset) == (lacks, max(3, noted or 0))


def test_the_first_epoch_tells_as_well_where_a_log_started() -> None:
    """A broker does not note a log start of zero."""
    files = [(3, batch(3, b"a", b"b"))]
    assert a_log(files, epochs=(EpochStart(0, 0),)).lacks_from == 0
    assert (
        "missing: its broker has noted that it starts at 0, and" in notes(a_log(files, epochs=(EpochStart(0, 0),)))[0]
    )
    assert a_log(files, epochs=(EpochStart(0, 3),)).lacks_from is None


def test_a_log_without_segments_has_nothing() -> None:
    log = a_log([], log_start=9)
    assert (log.start_offset, log.end_offset, log.stable_end, log.leader_epoch) == (9, 9, 9, None)


def test_it_ends_for_readers_where_a_transaction_is_open() -> None:
    log = a_log([(0, batch(0, b"a") + batch(1, b"b", producer=7, transactional=True) + batch(2, b"c"))])
    assert (log.stable_end, log.end_offset) == (1, 3)
    ended = a_log([(0, batch(0, b"a", producer=7, transactional=True)), (1, transaction_end(1, 7, EndKind.COMMIT))])
    assert (ended.stable_end, ended.end_offset) == (2, 2)


def test_a_torn_end_is_cut_and_is_no_damage() -> None:
    log = a_log([*WHOLE[:1], (2, batch(2, b"c") + batch(3, b"d")[:30])])
    assert log.end_offset == 3 and log.damage == ()
    assert log.cut is not None and log.cut.position == len(batch(2, b"c"))


def test_damage_before_the_end_is_told_with_its_place() -> None:
    first = damaged(batch(0, b"a")) + batch(1, b"b")
    log = a_log([(0, first), (2, batch(2, b"c")[:30]), (3, batch(3, b"d"))])
    assert [str(one) for one in log.damage] == [
        "/logs/orders-0/0.log, byte 0: the checksum of a batch is wrong",
        "/logs/orders-0/2.log, byte 0: the file ends within a batch",
    ]
    assert [one.is_rest for one in log.damage] == [False, False]
    assert (log.cut, log.end_offset) == (None, 4)
    assert [len(log.damage_from(offset)) for offset in (0, 1, 2, 3, 9)] == [2, 2, 1, 0, 0]


def test_a_segment_of_which_nothing_is_left_is_damaged_up_to_the_next() -> None:
    log = a_log([(0, damaged(batch(0, b"a", b"b"))), (2, batch(2, b"c")), (3, damaged(batch(3, b"d")))])
    assert [one.path.name for one in log.damage_from(1)] == ["0.log", "3.log"]
    assert [one.path.name for one in log.damage_from(3)] == ["3.log"]


@pytest.mark.parametrize(("recovery_point", "end", "kept"), [(0, 1, 1), (1, 1, 1), (2, 3, 2), (3, 3, 2)])
def test_a_broker_that_died_cuts_behind_its_recovery_point(recovery_point: int | None, end: int, kept: int) -> None:
    files = [
        (0, batch(0, b"a") + damaged(batch(1, b"b"))),
        (2, batch(2, b"c") + damaged(batch(3, b"d")) + batch(4, b"e")),
        (5, batch(5, b"f")),
    ]
    log = a_log(files, was_shut_down=False, recovery_point=recovery_point)
    assert (log.end_offset, len(log.segments)) == (end, kept)
    assert log.cut is not None and log.cut.what == "the checksum of a batch is wrong"
    assert len(log.damage) == (kept == 2)
    files = ["2 files", "1 file"][kept - 1]
    assert str(log.cut).endswith(f"is wrong; lost with it: what follows in the file, {files} after it")


def test_without_a_recovery_point_only_the_last_segment_is_cut() -> None:
    files = [(0, batch(0, b"a") + damaged(batch(1, b"b"))), (2, batch(2, b"c") + damaged(batch(3, b"d")))]
    log = a_log(files, was_shut_down=False)
    assert (log.end_offset, [str(one) for one in log.damage]) == (
        3,
        [f"/logs/orders-0/0.log, byte {len(batch(0, b'a'))}: the checksum of a batch is wrong"],
    )
    assert log.cut is not None and log.cut.path.name == "2.log"


def test_the_replica_with_the_latest_epoch_and_then_the_longest_goes_on() -> None:
    old = a_log([(0, batch(0, b"a", b"b", b"c", epoch=1))])
    new = a_log([(0, batch(0, b"a", epoch=2))])
    longer = a_log([(0, batch(0, b"a", b"b", epoch=2))])
    assert max([old, new, longer], key=lambda log: log.rank) is longer


def test_of_replicas_that_end_alike_the_one_with_least_damage_and_most_history_goes_on() -> None:
    one, two, three = batch(0, b"a"), batch(1, b"b"), batch(2, b"c")
    broken = a_log([(0, one + damaged(two) + three)])
    whole = a_log([(1, two + three)])
    longest = a_log([(0, one + two + three)])
    without = a_log([(0, one), (2, three)])
    assert max([without, longest], key=lambda log: log.rank) is longest
    assert max([broken, whole, longest, whole], key=lambda log: log.rank) is longest
    assert max([broken, whole], key=lambda log: log.rank) is whole


def test_what_cannot_be_found_after_a_place_is_told() -> None:
    log = a_log([(0, batch(0, b"a") + bytes(40)), (2, batch(2, b"c"))])
    (told,) = map(str, log.damage)
    assert told.endswith("a batch of version 0 cannot have 0 bytes; lost with it: what follows in the file")


def notes(log: ScannedLog) -> list[str]:
    return [f"{kind}: {text}" for kind, text in log_notes(log)]


def test_offsets_between_files_are_told_where_no_cleaner_was() -> None:
    files = [(0, batch(0, b"a")), (5, batch(5, b"b")), (6, damaged(batch(6, b"c"))), (9, batch(9, b"d"))]
    assert a_log(files).gaps == [(1, 5)]
    assert "missing: no file has the offsets 1 to 4: a cleaner" in notes(a_log(files))[0]
    assert not notes(a_log(files, first_dirty=5))
    many = [(10 * n, batch(10 * n, b"a")) for n in range(15)]
    assert ", 91 to 99, and 4 more: " in notes(a_log(many))[0]


def test_a_log_that_is_said_to_start_behind_its_end() -> None:
    """By a checkpoint that may lie: another replica is better, whose end is the same."""
    lying, honest = (a_log([(0, batch(0, b"a"))], log_start=noted) for noted in (7, 0))
    assert (lying.start_offset, lying.end_offset, lying.stable_end) == (7, 7, 7)
    assert refused(lying).startswith(
        "orders-0: log-start-offset-checkpoint has 7, but its last record is before 1: a broker that starts would"
    )
    assert max([lying, honest], key=lambda log: log.rank) is honest
    assert not notes(honest) and not refused(honest)


def test_a_start_within_its_files_is_told() -> None:
    log = a_log(WHOLE, log_start=2)
    assert "log_start: its log start offset was noted at 2, and its files begin at 0: the offsets" in notes(log)[0]
    assert not [note for note in notes(a_log(WHOLE, log_start=0)) if "log_start" in note] and not refused(log)


def refused(log: ScannedLog, *, skips: bool = False) -> str:
    try:
        return " | ".join(lacking("orders", {0: log}, {0: log.start_offset}, skips=skips))
    except DamagedError as error:
        return error.message


def test_a_log_that_ends_before_what_was_on_all_replicas() -> None:
    """Nothing else shows it: a file is missing at the end, or a broker would cut what it lost to a crash."""
    log = a_log([(0, batch(0, b"a") + batch(1, b"b")[:9])], replicated_to=2, was_shut_down=False, recovery_point=0)
    lost = "orders-0: replication-offset-checkpoint in /logs has 2, but its files end at 1: records that were"
    assert refused(log).startswith(lost) and refused(log, skips=True).startswith(lost)
    assert not refused(a_log(WHOLE, replicated_to=7))


def test_notes_of_a_log_that_is_cut_and_was_not_replicated() -> None:
    log = a_log([(0, batch(0, b"a") + batch(1, b"b") + b"torn")], replicated_to=1)
    assert [note.split(":")[0] for note in notes(log)] == ["cut", "not_replicated"]
    assert "noted at 1, and it ends at 2" in notes(log)[1]


def test_partitions_that_are_lacking_are_named_whatever_number_a_folder_has() -> None:
    """All numbers up to that one are not made."""
    ((kind, text),) = notes_of("orders", {number: a_log([]) for number in (1, 2_000_000_000)})
    assert kind == "missing_partitions"
    assert text.endswith("no log of 1,999,999,999 partitions: 0, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 1999999989 more")
    assert not [*notes_of("orders", {0: a_log([]), 1: a_log([])})] and not [*notes_of("orders", {})]


def test_a_copy_that_ends_where_a_cleaner_was_may_lack_deletes() -> None:
    log = a_log(WHOLE, first_dirty=5)
    assert (deletes_text("copy-0", log, 4) or "").startswith(
        "copy-0: a cleaner has been in /logs/orders-0 up to offset 5, and the copy ends at 4. If"
    )
    assert [deletes_text("copy-0", log, end) for end in (5, 6, 7)] == [None] * 3
    assert deletes_text("copy-0", a_log(WHOLE), 4) is None


def test_the_end_of_a_transaction_may_be_among_what_is_left_out() -> None:
    """Then a reader cannot know how it ended, and it takes the next end of the producer for its own."""
    aborted = batch(0, b"a", producer=7, transactional=True) + damaged(transaction_end(1, 7, EndKind.ABORT))
    log = a_log([(0, aborted + batch(2, b"b", producer=7, transactional=True) + transaction_end(3, 7, EndKind.COMMIT))])
    assert (log.stable_end, log.transactions.aborted) == (4, ())
    assert left_out("orders", "byte 70", [log]).startswith("left out of orders: byte 70; if the end of a transaction")
    plain = a_log([(0, batch(0, b"a") + damaged(batch(1, b"b")))])
    assert left_out("orders", "byte 70", [plain]) == "left out of orders: byte 70"
