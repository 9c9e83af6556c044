"""A round over segment files that fails: what it leaves, and what it says of that."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from lithify.kafka_log.cleaning import group_cleaner
from lithify.kafka_log.cleaning.directory_cleaner import DirectoryCleaner
from lithify.kafka_log.cleaning.log_round import CleanRequest
from lithify.kafka_log.cleaning.swapping import FolderFiles
from lithify.reports.rounds.cleaned_logs import CleanedLog
from support.kafka.log_files import TasksHere, latest_in, write_stage

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
