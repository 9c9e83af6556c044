"""A machine that loses power in a round: of what was renamed and deleted since a sync, any part may be on the disk."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from lithify.kafka_log.cleaning.directory_cleaner import DirectoryCleaner
from lithify.kafka_log.cleaning.log_round import CleanRequest
from lithify.kafka_log.cleaning.swapping import FolderFiles, recover
from support.kafka.log_files import TasksHere, check_indexes, latest_in, started, write_stage

CASE = json.loads((Path(__file__).parents[2] / "kafka_cases" / "data" / "fuzz_txn_11.json").read_text())
NOW_MS = CASE["after_round_3"]["round_now_ms"]


class UnsyncedFiles(FolderFiles):
    """Keeps copies of a folder: as it was at each sync, and with one of the changes that came before the next."""

    def __init__(self, path: Path, copies: list[Path]) -> None:
        super().__init__(path)
        self._copies, self._changes = copies, list[Callable[[FolderFiles], None]]()
        self._synced = self._copy(path)

    def names(self) -> Sequence[str]:
        self._synced = self._copy(self.path)
        return super().names()

    def rename(self, old: str, new: str) -> None:
        if not self._changes and not (self._synced / old).exists():
            self._synced = self._copy(self.path)  # it was synced by a task
        self._changes.append(lambda files: files.rename(old, new))
        super().rename(old, new)

    def delete(self, name: str) -> None:
        self._changes.append(lambda files: files.delete(name))
        super().delete(name)

    def sync(self) -> None:
        for change in self._changes:
            self._copies.append(self._copy(self._synced))
            change(FolderFiles(self._copies[-1]))
        self._changes.clear()
        super().sync()
        self._synced = self._copy(self.path)

    def _copy(self, folder: Path) -> Path:
        return Path(shutil.copytree(folder, Path(tempfile.mkdtemp(dir=self.path.parents[1])) / "t-0"))


@pytest.mark.parametrize("recovers", [started, lambda folder: recover(FolderFiles(folder))])
def test_no_segment_has_only_some_of_its_indexes(recovers: Callable[[Path], None], tmp_path: Path) -> None:
    """Also if power is lost once more, while that is recovered."""
    (tmp_path / "scratch").mkdir()
    folder = write_stage(tmp_path / "data", "t", CASE, CASE["before_round_3"])
    latest, copies = latest_in(folder), list[Path]()
    request = CleanRequest(folder.parent, ["t"], {"segment.bytes": "4500"}, lambda: NOW_MS)
    cleaner = DirectoryCleaner(TasksHere(tmp_path / "scratch"), request, files=lambda path: UnsyncedFiles(path, copies))
    assert cleaner.clean().logs[0].changed
    for copy in list(copies):
        recover(UnsyncedFiles(Path(shutil.copytree(copy, copy.parent / "again" / "t-0")), copies))
    assert len(copies) > 50
    for copy in copies:
        recovers(copy)
        assert latest_in(copy) == latest
        check_indexes(copy)
        for index in copy.glob("*.index"):
            names = f"{index.stem}.*index"
            assert {path.name for path in copy.glob(names)} == {path.name for path in folder.glob(names)}
