"""A round over segment files on a disk that is full, or whose files may not grow: nothing is lost, the next goes on."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from lithify.kafka_log.cleaning.directory_cleaner import DirectoryCleaner
from lithify.kafka_log.cleaning.log_round import CleanRequest
from lithify.kafka_log.directories.checkpoints import CLEANER, offsets_in
from lithify.ports.engine import Progress
from lithify.reports.rounds.cleaned_logs import CleanedLog
from support.kafka.log_files import TasksHere, check_indexes, committed_in, latest_in, started, write_stage
from support.servers.disks import filled, no_file_larger_than, small_disk

CASE = json.loads((Path(__file__).parents[1] / "kafka_cases" / "data" / "fuzz_txn_11.json").read_text())
STAGE, AFTER = CASE["before_round_3"], CASE["after_round_3"]
MOST_BLOCKS = 40


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    """Of the key pass, on another disk."""
    (tmp_path / "scratch").mkdir()
    return tmp_path / "scratch"


def clean(root: Path, tasks: TasksHere, progress: Progress = lambda _phase, _done, _total: None) -> CleanedLog:
    request = CleanRequest(root, ["t"], {"segment.bytes": "4500"}, lambda: int(AFTER["round_now_ms"]))
    (log,) = DirectoryCleaner(tasks, request, progress).clean().logs
    return log


def expected(tmp_path: Path, scratch: Path) -> tuple[Mapping[int, Any], Mapping[bytes, Any]]:
    """What a round leaves where there is room, and the latest values before it."""
    folder = write_stage(tmp_path / "roomy", "t", CASE, STAGE)
    latest = latest_in(folder)
    assert clean(folder.parent, TasksHere(scratch)).changed
    return committed_in(folder), latest


def check_failed(folder: Path, log: CleanedLog, latest: Mapping[bytes, Any]) -> None:
    """It says so, nothing is lost, a broker that starts changes nothing, and the checkpoint is as it was."""
    assert log.error_code == "InsufficientSpace"
    assert not [*folder.glob("*.cleaned"), *folder.glob("*.swap")]
    assert latest_in(folder) == latest
    files = sorted(folder.iterdir())
    started(folder)
    assert sorted(folder.iterdir()) == files
    check_indexes(folder)
    assert offsets_in((folder.parent / CLEANER).read_text())["t", 0] == STAGE["cleaner_checkpoint"]


def check_next(folder: Path, scratch: Path, left: Mapping[int, Any]) -> None:
    assert clean(folder.parent, TasksHere(scratch)).error is None
    assert committed_in(folder) == left
    assert offsets_in((folder.parent / CLEANER).read_text())["t", 0] == AFTER["cleaner_checkpoint"]
    check_indexes(folder)


def test_on_a_full_disk(tmp_path: Path, scratch: Path) -> None:
    left, latest = expected(tmp_path, scratch)
    failures = 0
    with small_disk(tmp_path / "disk", 2**20) as disk:
        for blocks in count():
            folder = write_stage(disk / "data", "t", CASE, STAGE)
            with filled(disk, blocks):
                log = clean(folder.parent, TasksHere(scratch))
                if log.error is None:
                    break
                check_failed(folder, log, latest)
            failures += 1
            check_next(folder, scratch, left)
            shutil.rmtree(disk / "data")
            assert blocks < MOST_BLOCKS
    assert failures > 1


class LimitedTasks(TasksHere):
    """Those that write may write no larger file; a process has more that it writes, such as the spools of keys."""

    most_bytes = 0

    def run(self, function: Callable[[Any], Any], tasks: Sequence[Any], *, once: bool = False) -> list[Any]:
        with no_file_larger_than(self.most_bytes) if once else nullcontext():
            return [function(task) for task in tasks]


def test_where_files_may_not_grow(tmp_path: Path, scratch: Path) -> None:
    left, latest = expected(tmp_path, scratch)
    for size in (0, 10, 1000):
        folder, LimitedTasks.most_bytes = write_stage(tmp_path / f"data{size}", "t", CASE, STAGE), size
        log = clean(folder.parent, LimitedTasks(scratch))
        assert "a file would be larger than this process may write" in str(log.error)
        check_failed(folder, log, latest)
        check_next(folder, scratch, left)


def test_no_room_for_the_checkpoint(tmp_path: Path, scratch: Path) -> None:
    """All segments are replaced, but the next round begins where this one has."""
    left, latest = expected(tmp_path, scratch)
    folder = write_stage(tmp_path / "data", "t", CASE, STAGE)
    with ExitStack() as limit:

        def end(_phase: str, done: int, total: int) -> None:
            if done == total:
                limit.enter_context(no_file_larger_than(0))

        log = clean(folder.parent, TasksHere(scratch), end)
    assert log.changed
    check_failed(folder, log, latest)
    check_next(folder, scratch, left)
