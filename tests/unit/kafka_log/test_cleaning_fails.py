"""A round over segment files that fails: what it leaves, and what it says of that."""

from __future__ import annotations

import errno
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from lithify.api.kafka_files.cleaning import clean_log_directory
from lithify.errors import InsufficientSpaceError, RefusedError
from lithify.kafka_log.cleaning import group_cleaner, log_round
from lithify.kafka_log.cleaning.directory_cleaner import DirectoryCleaner
from lithify.kafka_log.cleaning.log_round import CleanRequest
from lithify.kafka_log.cleaning.producers import LastBatch, active_producers
from lithify.kafka_log.cleaning.segment_facts import facts_of
from lithify.kafka_log.cleaning.swapping import FolderFiles
from lithify.kafka_log.directories.checkpoints import offsets_in
from lithify.kafka_log.segment_scan import ANY_OFFSETS
from lithify.reports.rounds.cleaned_logs import CleanedLog
from support.kafka.batches import batch
from support.kafka.log_files import TasksHere, batches_in, latest_in, write_stage
from support.servers.disks import NOBODY, an_open_folder, read_only

CASE = json.loads((Path(__file__).parents[2] / "kafka_cases" / "data" / "fuzz_txn_11.json").read_text())
NOW_MS = CASE["after_round_3"]["round_now_ms"]
CONFIG = {"segment.bytes": "4500"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "scratch").mkdir()
    return write_stage(tmp_path / "data", "t", CASE, CASE["before_round_3"])


def clean(
    folder: Path, tasks: type[TasksHere] = TasksHere, files: Callable[[Path], FolderFiles] = FolderFiles
) -> CleanedLog:
    request = CleanRequest(folder.parent, ["t"], CONFIG, lambda: NOW_MS)
    (log,) = DirectoryCleaner(tasks(folder.parents[1] / "scratch"), request, files=files).clean().logs
    return log


def files_in(folder: Path) -> Mapping[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_segment_that_no_broker_opens_is_not_swapped_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its records may take more bytes than before: by another level of compression, or the time of a delete."""
    before = files_in(folder)
    monkeypatch.setattr(group_cleaner, "LARGEST_FILE_BYTES", 2000)
    log = clean(folder)
    assert log.error_code == "Refused" and "more than 2000 bytes" in str(log.error)
    assert not log.changed and files_in(folder) == before


class ElsewhereTasks(TasksHere):
    """Tasks on a machine that has another file under the same path."""

    def run(self, function: Callable[[Any], Any], tasks: Sequence[Any], *, once: bool = False) -> list[Any]:
        found = [function(task) for task in tasks]
        found[-1].modified_ns += 1
        return found


def test_tasks_read_the_files_of_this_machine(folder: Path) -> None:
    log = clean(folder, ElsewhereTasks)
    assert log.error_code == "Refused" and "another file of this name" in str(log.error)


class BrokenFiles(FolderFiles):
    """A disk on which nothing can be deleted."""

    def delete(self, name: str) -> None:
        raise OSError(errno.EIO, "Input/output error")


def test_a_swap_that_fails_is_told_as_a_change(folder: Path) -> None:
    latest = latest_in(folder)
    log = clean(folder, files=BrokenFiles)
    assert log.error is not None and log.changed
    assert clean(folder).changed and latest_in(folder) == latest


def test_a_log_without_a_replication_checkpoint(folder: Path) -> None:
    """It would look as if nothing were dirty; where nothing can be, nothing is said."""
    checkpoint = folder.parent / "replication-offset-checkpoint"
    for text in (None, "0\n0\n", "0\n1\nu 0 5\n"):
        checkpoint.unlink() if text is None else checkpoint.write_text(text)
        log = clean(folder)
        assert log.error_code == "Refused" and f"no entry in {checkpoint} says which" in str(log.error)
        assert "start the broker and stop it in order" in str(log.error)
    for path in sorted(folder.glob("*.log"))[1:]:
        path.unlink()
    assert clean(folder).error is None


def test_a_segment_of_more_offsets_than_a_broker_has_for_one(folder: Path) -> None:
    """Positions of its records would be those of the next segment."""
    *_, last, active = sorted(folder.glob("*.log"))
    far = int(last.stem) + 2**32
    last.write_bytes(last.read_bytes() + batch(far, b"x"))
    (folder / f"{far + 1:020}.log").write_bytes(batch(far + 1, b"y"))
    active.unlink()
    (folder.parent / "replication-offset-checkpoint").write_text(f"0\n1\nt 0 {far + 2}\n")
    before = files_in(folder)
    log = clean(folder)
    assert log.error_code == "Refused" and f"{last}: its offsets are further apart than" in str(log.error)
    assert files_in(folder) == before


def test_a_dry_run_needs_no_right_to_write(tmp_path: Path) -> None:
    """Nor is it the owner's, and it leaves not even a lock."""
    with an_open_folder() as place, tempfile.TemporaryDirectory() as scratch:
        folder = write_stage(place / "data", "t", CASE, CASE["before_round_3"])
        (folder.parent / ".lock").touch()
        names = sorted(folder.parent.rglob("*"))
        Path(scratch).chmod(0o777)
        request = CleanRequest(folder.parent, ["t"], CONFIG, lambda: NOW_MS, dry_run=True)
        with read_only(folder.parent):
            (log,) = DirectoryCleaner(TasksHere(Path(scratch)), request).clean().logs
        assert log.error is None and log.records_out < log.records_in
        assert sorted(folder.parent.rglob("*")) == names


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    with an_open_folder() as place, tempfile.TemporaryDirectory() as scratch:
        folder = write_stage(place / "data", "t", CASE, CASE["before_round_3"])
        before = files_in(folder)
        Path(scratch).chmod(0o777)
        if os.geteuid() == 0:
            os.chown(folder.parent, NOBODY, NOBODY)
        request = CleanRequest(folder.parent, ["t"], CONFIG, lambda: NOW_MS)
        with read_only(folder):
            (log,) = DirectoryCleaner(TasksHere(Path(scratch)), request).clean().logs
        assert log.error_code == "InvalidInput" and not log.changed
        assert "Permission denied" in str(log.error) and "able to read and write there" in str(log.error)
        assert files_in(folder) == before


def test_each_log_has_a_clock_of_its_own(folder: Path) -> None:
    """A tombstone of the last log of many stays as long after its round as one of the first."""
    shutil.copytree(folder, folder.parent / "t-1")
    for name in ("replication", "recovery-point", "cleaner"):
        path = folder.parent / f"{name}-offset-checkpoint"
        offset = offsets_in(path.read_text())["t", 0]
        path.write_text(f"0\n2\nt 0 {offset}\nt 1 {offset}\n")
    times = iter([NOW_MS, NOW_MS + 5000])
    request = CleanRequest(folder.parent, ["t"], CONFIG, lambda: next(times))
    assert not DirectoryCleaner(TasksHere(folder.parents[1] / "scratch"), request).clean().failed
    earlier, later = (horizons(path) for path in (folder, folder.parent / "t-1"))
    assert max(later) == max(earlier) + 5000


def horizons(folder: Path) -> set[int]:
    return {one.get("delete_horizon_ms", 0) for path in folder.glob("*.log") for one in batches_in(path)}


def test_how_long_a_producer_is_known() -> None:
    """Its last batch stays until it has been silent for so long."""
    last = {7: LastBatch(0, 5, 1000)}
    assert active_producers([last], 999) == last
    assert active_producers([last], 1000) == {}


@pytest.mark.parametrize("expires", ["1ms", "36500d"])
def test_producers_that_are_forgotten(folder: Path, expires: str) -> None:
    request = CleanRequest(
        folder.parent, ["t"], {**CONFIG, "producer.id.expiration.ms": expires}, lambda: NOW_MS + 10**10
    )
    DirectoryCleaner(TasksHere(folder.parents[1] / "scratch"), request).clean()
    empty = [
        one for path in folder.glob("*.log") for one in batches_in(path) if not one["count"] and "control" not in one
    ]
    assert bool(empty) == (expires != "1ms")


def test_a_cluster_of_spark_is_refused(folder: Path) -> None:
    """It has other files, or starts a task twice at the same time."""
    with pytest.raises(RefusedError, match="would run on a cluster"):
        clean_log_directory(folder.parent, ["t"], spark_conf={"spark.master": "spark://127.0.0.1:7077"})


@pytest.mark.parametrize("number", [errno.EIO, errno.EROFS])
def test_a_disk_that_fails_while_files_are_taken_back(folder: Path, number: int) -> None:
    """What failed first is told, and a start on what it has left."""

    class Failing(FolderFiles):
        def delete(self, name: str) -> None:
            raise OSError(number, os.strerror(number), str(self.path / name))

    class Full(TasksHere):
        def run(self, function: Callable[[Any], Any], tasks: Sequence[Any], *, once: bool = False) -> list[Any]:
            found = super().run(function, tasks, once=once)
            if once:
                raise InsufficientSpaceError("full")
            return found

    before = latest_in(folder)
    log = clean(folder, Full, Failing)
    assert log.error_code == "InsufficientSpace" and "full" in str(log.error)
    log = clean(folder, files=Failing)
    assert log.error_code == "InvalidInput" and f"{os.strerror(number)} (this user has to be able" in str(log.error)
    assert latest_in(folder) == before
    assert clean(folder).changed
    assert latest_in(folder) == before


def test_segments_that_have_too_many_facts_together(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As all of them are in the memory of the driver."""
    before = files_in(folder)
    facts = [facts_of(path, ANY_OFFSETS, cuts=False).scan.facts for path in folder.glob("*.log")]
    monkeypatch.setattr(log_round, "MOST_FACTS", sum(facts) - 1)
    assert max(facts) < sum(facts) - 1
    log = clean(folder)
    assert log.error_code == "Refused" and "import a copy without the oldest" in str(log.error)
    assert files_in(folder) == before
    monkeypatch.setattr(log_round, "MOST_FACTS", sum(facts))
    assert clean(folder).changed
