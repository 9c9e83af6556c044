"""A round over segment files that is killed anywhere loses nothing; what it refuses; what it does not touch."""

from __future__ import annotations

import errno
import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lithify.errors import InvalidInputError, RefusedError
from lithify.kafka_log.batches.decoding import header_of, records_of
from lithify.kafka_log.batches.frames import frames_of
from lithify.kafka_log.cleaning import log_round
from lithify.kafka_log.cleaning.batch_cleaner import BatchCleaner, CleanRules
from lithify.kafka_log.cleaning.directory_cleaner import DirectoryCleaner
from lithify.kafka_log.cleaning.log_round import CleanRequest
from lithify.kafka_log.cleaning.swapping import FolderFiles, recover
from lithify.kafka_log.directories.checkpoints import offsets_in
from lithify.kafka_log.directories.folders import CLEAN_SHUTDOWN
from lithify.reports.rounds.cleaned_logs import CleanedLog, CleanReport
from support.kafka.batches import batch
from support.kafka.log_files import (
    TasksHere,
    batches_in,
    check_indexes,
    committed_in,
    latest_in,
    started,
    write_stage,
)

CASE = json.loads((Path(__file__).parents[2] / "kafka_cases" / "data" / "fuzz_txn_11.json").read_text())
STAGE, AFTER = CASE["before_round_3"], CASE["after_round_3"]
SMALL = {"segment.bytes": "4500"}
"""So that there are several groups of segments."""


class KilledError(BaseException):
    """Nothing that handles errors gets to see the end of a process."""


class KilledFiles(FolderFiles):
    """A folder whose process is killed before a call that changes it, after some."""

    left = 0

    def rename(self, old: str, new: str) -> None:
        self._count()
        super().rename(old, new)

    def delete(self, name: str) -> None:
        self._count()
        super().delete(name)

    def sync(self) -> None:
        self._count()
        super().sync()

    def _count(self) -> None:
        KilledFiles.left -= 1
        if KilledFiles.left < 0:
            raise KilledError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "scratch").mkdir()
    return write_stage(tmp_path / "data", "t", CASE, STAGE)


def clean(folder: Path, files: Callable[[Path], FolderFiles] = FolderFiles, **how: Any) -> CleanReport:
    scratch = folder.parents[1] / "scratch"
    request = CleanRequest(folder.parent, ["t"], SMALL, lambda: int(AFTER["round_now_ms"]))
    return DirectoryCleaner(TasksHere(scratch), replace(request, **how), files=files).clean()


def log_of(report: CleanReport) -> CleanedLog:
    (log,) = report.logs
    assert log.error is None
    return log


def batches_of(folder: Path) -> Sequence[Any]:
    return [(path.name, batches_in(path)) for path in sorted(folder.glob("*.log"))]


def checkpoint(folder: Path) -> int | None:
    text = (folder.parent / "cleaner-offset-checkpoint").read_text()
    return offsets_in(text).get(("t", 0))


@pytest.mark.parametrize("recovers", [started, lambda folder: recover(FolderFiles(folder))])
def test_killed_at_each_operation(
    folder: Path, recovers: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Recovered by a broker's start, or by ours, and by the next round, which may only do more to markers."""
    monkeypatch.setattr(os, "fsync", lambda _descriptor: None)  # which takes most of the time
    copy, latest = tmp_path / "copy", latest_in(folder)
    shutil.copytree(folder.parent, copy)
    assert log_of(clean(folder)).segments_out == 2
    expected, kills = committed_in(folder), 0
    while True:
        shutil.rmtree(folder.parent)
        shutil.copytree(copy, folder.parent)
        KilledFiles.left = kills
        try:
            clean(folder, KilledFiles)
            break
        except KilledError:
            kills += 1
        assert checkpoint(folder) == STAGE["cleaner_checkpoint"]
        recovers(folder)
        assert latest_in(folder) == latest
        check_indexes(folder)
        if kills % 5 == 0:
            log_of(clean(folder))
            assert committed_in(folder) == expected
            assert checkpoint(folder) == AFTER["cleaner_checkpoint"]
            check_indexes(folder)
    assert kills > 30


def test_a_second_round_changes_nothing(folder: Path) -> None:
    first = log_of(clean(folder))
    assert first.changed and first.records_out < first.records_in
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    second = log_of(clean(folder))
    assert not second.changed and second.end == second.first_dirty == first.end
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_dry_run_tells_what_a_round_does(folder: Path) -> None:
    before = {path: path.read_bytes() for path in folder.parent.rglob("*") if path.is_file()}
    told = log_of(clean(folder, dry_run=True))
    assert {path: path.read_bytes() for path in before} == before
    assert replace(told, changed=True) == log_of(clean(folder))
    (folder / f"{0:020}.log.cleaned").touch()
    assert "was ended in it" in str(clean(folder, dry_run=True).logs[0].error)


def test_a_full_disk_leaves_the_log_as_it_was(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, cleaned = batches_of(folder), log_round.cleaned_group

    def full(group: Any) -> Any:
        cleaned(group)
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(log_round, "cleaned_group", full)
        (log,) = clean(folder).logs
    assert log.error_code == "InsufficientSpace" and not log.changed
    assert batches_of(folder) == before
    assert not [*folder.glob("*.cleaned")]
    assert log_of(clean(folder)).changed


HOLD = """
import fcntl, sys
with open(sys.argv[1], "ab") as lock:
    fcntl.lockf(lock, fcntl.LOCK_EX)
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_directory_in_use_is_refused(folder: Path) -> None:
    command = [sys.executable, "-c", HOLD, str(folder.parent / ".lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"held\n"
        for dry_run in (False, True):
            with pytest.raises(RefusedError, match="in use by a broker"):
                clean(folder, dry_run=dry_run)
    log_of(clean(folder))


def test_what_is_refused(folder: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"no log of a topic u \(check the name: there is t\)"):
        clean(folder, topics=["u"])
    with pytest.raises(InvalidInputError, match="the folder of one partition"):
        clean(folder, path=folder)
    shutil.copytree(folder, folder.parent / "__consumer_offsets-0")
    with pytest.raises(RefusedError, match="a topic of Kafka itself"):
        clean(folder, topics=["__consumer_offsets"])
    (folder.parent / CLEAN_SHUTDOWN).unlink()
    with pytest.raises(RefusedError, match="not stopped in order"):
        clean(folder)
    assert log_of(clean(folder, after_crash=True)).changed


def test_damage_is_named_and_nothing_is_touched(folder: Path) -> None:
    """Of a broker that was shut down, in any segment; of one that crashed, where it would cut the log."""
    first = sorted(folder.glob("*.log"))[0]
    data = bytearray(first.read_bytes())
    data[70] ^= 1
    first.write_bytes(data)
    for after_crash in (False, True):
        if after_crash:
            (folder.parent / CLEAN_SHUTDOWN).unlink()
            (folder.parent / "recovery-point-offset-checkpoint").write_text("0\n1\nt 0 0\n")
        (log,) = clean(folder, after_crash=after_crash).logs
        assert log.error_code == "Damaged" and f"{first}, byte 0" in str(log.error)
    assert first.read_bytes() == data


def test_nothing_beyond_the_high_watermark_is_cleaned(folder: Path) -> None:
    second = sorted(folder.glob("*.log"))[1]
    (folder.parent / "replication-offset-checkpoint").write_text(f"0\n1\nt 0 {int(second.stem) + 1}\n")
    log = log_of(clean(folder))
    assert (log.end, log.limited_by) == (int(second.stem), "high watermark")
    assert second.exists()


def test_an_active_segment_is_never_cleaned(folder: Path) -> None:
    """Whether it is the only one, or empty."""
    first, *others = sorted(folder.glob("*.log"))
    for path in others:
        path.unlink()
    config = {**SMALL, "min.compaction.lag.ms": "1"}
    data = first.read_bytes()
    for content in (data, b""):
        first.write_bytes(content)
        log = log_of(clean(folder, config=config))
        assert not log.changed and log.end == log.first_dirty
        assert first.read_bytes() == content


def test_segments_are_grouped_by_their_sizes(folder: Path) -> None:
    """And by those of their indexes."""
    (folder / f"{0:020}.index").write_bytes(bytes(64))
    names = sorted(path.name for path in folder.glob("*.log"))
    assert log_of(clean(folder, dry_run=True, config={"segment.bytes": "1"})).segments_out == len(names) - 1
    for index_bytes, segments in ((64, 1), (63, 2)):
        config = {"segment.index.bytes": str(index_bytes)}
        assert log_of(clean(folder, dry_run=True, config=config)).segments_out == segments


def test_the_last_batch_of_a_round_stays_without_its_records() -> None:
    """So that the log does not end before it."""
    (frame,) = frames_of(io.BytesIO(batch(7, b"a", b"b")))
    for end, left in ((9, True), (10, False)):
        rules = CleanRules(0, 0, end, {}, ())
        found = BatchCleaner(rules, {}).cleaned(frame, header_of(frame), lambda _record: False)
        assert (found is not None) is left
        if found is not None:
            (empty,) = frames_of(io.BytesIO(found.data))
            assert (header_of(empty).base_offset, header_of(empty).last_offset, header_of(empty).records) == (7, 8, 0)


def test_a_tombstone_that_stays_for_ever() -> None:
    """As Kafka takes such a time, though with it its own cleaner counts to one that has passed."""
    (frame,) = frames_of(io.BytesIO(batch(7, b"a", None)))
    rules = CleanRules(2**41, 2**63 - 1, 100, {}, ())
    found = BatchCleaner(rules, {}).cleaned(frame, header_of(frame), lambda _record: True)
    assert found is not None and found.header.delete_horizon_ms == 2**63 - 1
    (left,) = frames_of(io.BytesIO(found.data))
    assert [(r.offset, r.timestamp, r.value) for r in records_of(left)] == [(7, 1, b"a"), (8, 1, None)]
