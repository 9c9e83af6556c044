"""Directories that no broker would leave, or that a copy was not made of: refused, told, or left out alone."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import lithify
from lithify.api.lake import Lake
from lithify.kafka_log.batches.header import BatchHeader
from lithify.reports.ingest import IngestReport
from lithify.spark.kafka.directories import log_tasks
from support.kafka.batches import batch, changed


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return lithify.open(str(tmp_path / "lake"))


def a_log(directory: Path, *segments: tuple[int, bytes], epochs: str = "") -> Path:
    """A directory of a broker that was shut down."""
    folder = directory / "orders-0"
    folder.mkdir(parents=True)
    for base, data in segments:
        (folder / f"{base:020}.log").write_bytes(data)
    (folder / "leader-epoch-checkpoint").write_text(epochs)
    (directory / ".kafka_cleanshutdown").touch()
    return directory


def imported(lake: Lake, session: SparkSession, *directories: Path, **how: Any) -> IngestReport:
    (report,) = lake.import_kafka(directories, ["orders"], spark=session, **how)
    return report


def values(lake: Lake) -> list[tuple[int | None, bytes | None]]:
    return [(record.offset, record.value) for record in lake.topic("orders").reader(0)]


def test_exactly_what_is_damaged_is_left_out_if_told_to(lake: Lake, session: SparkSession, tmp_path: Path) -> None:
    """What checksums do not show, too: an offset behind the file's, and records that cannot be read."""
    far = struct.pack(">q", 2**40) + batch(3, b"d")[8:]
    unread = BatchHeader(1, 0, 0, 0, 1, attributes=7).with_records(b"?")
    files = a_log(tmp_path / "files", (0, batch(0, b"a") + unread + batch(2, b"c") + far), (4, batch(4, b"e")))
    segment, at = files / "orders-0" / f"{0:020}.log", len(batch(0, b"a")) + len(unread) + len(batch(2, b"c"))
    assert f"{segment}, byte {at}: it has the offsets 1099511627776" in str(imported(lake, session, files).error)
    notes = list[str]()
    report = imported(lake, session, files, skip_damaged=True, notes=lambda note: notes.append(note.text))
    assert report.error is None and values(lake) == [(0, b"a"), (2, b"c"), (4, b"e")]
    (told,) = (note for note in notes if note.startswith("left out"))
    assert told.count("byte") == 2 and f"byte {at}" in told and "its codec 7 is not known" in told


def test_files_that_change_after_they_were_scanned_are_noticed(
    lake: Lake, session: SparkSession, tmp_path: Path
) -> None:
    files = a_log(tmp_path / "files", (0, batch(0, b"a")), (1, batch(1, b"b") + batch(2, b"c")))
    second = files / "orders-0" / f"{1:020}.log"
    changes = iter([lambda: second.write_bytes(batch(1, b"b"))])
    report = imported(lake, session, files, max_records=1, tell=lambda _batch: next(changes)())
    assert f"{second}, byte {len(batch(1, b'b'))}: its batches are not those" in str(report.error)
    assert values(lake) == [(0, b"a")]


def test_a_replica_that_was_behind_does_not_continue_a_copy_of_another(
    lake: Lake, session: SparkSession, tmp_path: Path
) -> None:
    """A cleaner has taken the record that would tell them apart; the copy was read in an epoch it has not reached."""
    elected = batch(0, b"a") + changed(batch(1, b"b"), leader_epoch=1)
    assert imported(lake, session, a_log(tmp_path / "new", (0, elected), epochs="0\n2\n0 0\n1 1\n")).error is None
    behind = a_log(tmp_path / "old", (0, batch(0, b"a") + batch(2, b"other")), epochs="0\n1\n0 0\n")
    assert "has lost its records below 2 and now has others" in str(imported(lake, session, behind).error)
    assert values(lake) == [(0, b"a"), (1, b"b")]


def test_a_flipped_epoch_does_not_let_a_shorter_replica_win(lake: Lake, session: SparkSession, tmp_path: Path) -> None:
    whole, noted = batch(0, b"a") + batch(1, b"b") + batch(2, b"c"), "0\n1\n0 0\n"
    flipped = batch(0, b"a") + changed(batch(1, b"b"), leader_epoch=2**20)
    one, two = (a_log(tmp_path / name, (0, data), epochs=noted) for name, data in (("1", flipped), ("2", whole)))
    error = str(imported(lake, session, one, two).error)
    assert f"orders-0: {one}/orders-0 of leader epoch 1048576, which ends at 2 would count, but its checkpoint" in error
    assert list(lake.topics()) == []
    assert imported(lake, session, two).error is None and len(values(lake)) == 3


@pytest.mark.parametrize(("checkpoint", "kept"), [("log-start", []), ("replication", [(0, b"a")])])
def test_checkpoints_that_take_records_away_are_not_followed_unasked(
    lake: Lake, session: SparkSession, tmp_path: Path, checkpoint: str, kept: list[tuple[int, bytes]]
) -> None:
    """Nor is a topic created for what is refused."""
    files = a_log(tmp_path / "files", (0, batch(0, b"a")))
    (files / f"{checkpoint}-offset-checkpoint").write_text("0\n1\norders 0 7\n")
    error = str(imported(lake, session, files).error)
    assert f"orders-0: {checkpoint}-offset-checkpoint" in error and " has 7, but its" in error
    assert list(lake.topics()) == []
    assert imported(lake, session, files, skip_damaged=True).error is None and values(lake) == kept


def test_segments_that_would_take_the_drivers_memory_are_refused(
    lake: Lake, session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_tasks, "MOST_FACTS", 3)
    segments = ((n, batch(n, b"a", producer=n, transactional=True)) for n in range(4))
    assert "4 segments have more than" in str(imported(lake, session, a_log(tmp_path / "files", *segments)).error)
    assert list(lake.topics()) == []
