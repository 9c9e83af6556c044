"""A round over segment files refuses what an import takes for damage, and leaves alone what it does not know."""

from __future__ import annotations

import io
import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from lithify.columnar.segment.dead_records import DeadPositions
from lithify.errors import InvalidInputError, RefusedError
from lithify.kafka_log.batches.decoding import header_of, records_of
from lithify.kafka_log.batches.frames import frames_of
from lithify.kafka_log.batches.header import HEADER_BYTES, BatchHeader
from lithify.kafka_log.cleaning.batch_cleaner import BatchCleaner, CleanRules
from lithify.kafka_log.cleaning.directory_cleaner import DirectoryCleaner
from lithify.kafka_log.cleaning.log_round import CleanRequest
from lithify.kafka_log.cleaning.segment_keys import KeysOfFile
from lithify.kafka_log.cleaning.swapping import FolderFiles, recover
from lithify.kafka_log.directories.folders import CLEAN_SHUTDOWN
from lithify.reports.rounds.cleaned_logs import CleanedLog
from support.kafka.batches import batch
from support.kafka.log_files import TasksHere, write_stage

CASE = json.loads((Path(__file__).parents[2] / "kafka_cases" / "data" / "fuzz_txn_11.json").read_text())
CONFIG = {"segment.bytes": "4500"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "scratch").mkdir()
    return write_stage(tmp_path / "data", "t", CASE, CASE["before_round_3"])


def clean(folder: Path, tasks: type[TasksHere] = TasksHere, *, path: Path | None = None) -> CleanedLog:
    now_ms = CASE["after_round_3"]["round_now_ms"]
    request = CleanRequest(path or folder.parent, ["t"], CONFIG, lambda: now_ms)
    (log,) = DirectoryCleaner(tasks(folder.parents[1] / "scratch"), request).clean().logs
    return log


def files_in(folder: Path) -> Mapping[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def positions(path: Path) -> Sequence[int]:
    with path.open("rb") as file:
        return [frame.position for frame in frames_of(file)]


def write_offset(path: Path, position: int, offset: int) -> None:
    """Into the header of a batch, where no checksum covers it."""
    data = bytearray(path.read_bytes())
    data[position : position + 8] = offset.to_bytes(8)
    path.write_bytes(data)


@pytest.mark.parametrize(("at", "offset"), [(-1, 2**40), (0, 0)])
def test_a_batch_at_offsets_that_its_file_cannot_have(folder: Path, at: int, offset: int) -> None:
    """Which the batches before it do not tell: the last of a file, or its first."""
    path = sorted(folder.glob("*.log"))[1]
    position = positions(path)[at]
    write_offset(path, position, offset)
    before = files_in(folder)
    log = clean(folder)
    assert log.error_code == "Damaged" and f"{path}, byte {position}: it has the offsets" in str(log.error)
    assert files_in(folder) == before


def test_a_file_that_changes_after_the_key_pass(folder: Path) -> None:
    """Even where it ends between two batches."""
    path = sorted(folder.glob("*.log"))[0]
    data, last = path.read_bytes(), positions(path)[-1]

    @dataclass(frozen=True, slots=True)
    class Cutting(TasksHere):
        def dead(self, files: Sequence[KeysOfFile]) -> Mapping[int, DeadPositions]:
            found = super(Cutting, self).dead(files)
            path.write_bytes(data[:last])
            return found

    before = files_in(folder)
    log = clean(folder, Cutting)
    assert log.error_code == "Damaged" and "not those that it had when it was scanned" in str(log.error)
    assert files_in(folder) == {**before, path.name: data[:last]}


def test_a_last_segment_that_ends_within_a_batch(folder: Path) -> None:
    """After a broker that stopped in order; one that crashed cuts it when it starts."""
    path = sorted(folder.glob("*.log"))[-1]
    path.write_bytes(path.read_bytes()[:-1])
    before = files_in(folder)
    log = clean(folder)
    assert log.error_code == "Damaged" and "the file ends within a batch" in str(log.error)
    assert files_in(folder) == before


def test_a_damaged_swap_replaces_nothing(folder: Path) -> None:
    first, second = sorted(folder.glob("*.log"))[:2]
    swap = folder / f"{first.name}.swap"
    for data, says in ((first.read_bytes()[:-1], "ends within"), (second.read_bytes(), "it has the offsets")):
        swap.write_bytes(data)
        if says != "ends within":
            write_offset(swap, 0, 2**33)
        before = files_in(folder)
        log = clean(folder)
        assert log.error_code == "Damaged" and f"{swap}, byte " in str(log.error) and says in str(log.error)
        assert files_in(folder) == before


def test_files_of_unknown_names_stay(folder: Path) -> None:
    """Also beside a swap that is completed, and they do not count as a cleaner's."""
    first = sorted(folder.glob("*.log"))[0]
    shutil.copy(first, folder / f"{first.name}.swap")
    names = ("notes.cleaned", "x.swap", f"{first.name}.bak", f"{0:020}.md", "x.deleted", f"{'٠' * 20}.log.deleted")
    for name in names:
        (folder / name).write_text("mine")
    log = clean(folder)
    assert log.error is None and log.changed
    assert all((folder / name).read_text() == "mine" for name in names)


@pytest.mark.parametrize("is_folder", [True, False])
def test_links_are_left_alone(folder: Path, tmp_path: Path, is_folder: bool) -> None:
    """What they lead to may be a broker's that runs, with another lock."""
    path = folder if is_folder else sorted(folder.glob("*.log"))[0]
    elsewhere = tmp_path / "elsewhere"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)
    log = clean(folder)
    assert log.error_code == "Refused" and f"{path} is a link" in str(log.error)
    assert path.is_symlink()


@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir])
def test_a_lock_or_a_segment_that_is_no_file(folder: Path, make: Callable[[Path], None]) -> None:
    """It may never end."""
    segment = sorted(folder.glob("*.log"))[0]
    segment.unlink()
    make(segment)
    assert clean(folder).error_code == "InvalidInput"
    (folder.parent / ".lock").unlink()
    make(folder.parent / ".lock")
    with pytest.raises(InvalidInputError, match=r"\.lock: "):
        clean(folder)


def test_segments_of_tiered_storage_are_left_alone(folder: Path) -> None:
    tiered = folder.parent / f"t-0-{'i' * 22}"
    tiered.mkdir()
    (tiered / f"{0:020}-{'j' * 22}.log").touch()
    with pytest.raises(RefusedError, match="has segments in tiered storage"):
        clean(folder)


def test_no_lock_is_left_in_a_directory_of_something_else(folder: Path) -> None:
    (folder.parent / CLEAN_SHUTDOWN).unlink()
    for path in (folder, folder.parents[1]):
        with pytest.raises(InvalidInputError):
            clean(folder, path=path)
        assert not (path / ".lock").exists()


def test_segments_that_are_not_as_named_are_refused(folder: Path) -> None:
    """Positions in them are counted from their names."""
    first, second, *_ = sorted(folder.glob("*.log"))
    before, data = files_in(folder), first.read_bytes()
    second.write_bytes(data)
    log = clean(folder)
    assert log.error_code == "Damaged" and f"{second}, byte 0: it has the offsets 15 to" in str(log.error)
    second.write_bytes(b"")
    first.write_bytes(data + batch(int(second.stem) + 7, b"a"))
    log = clean(folder)
    assert log.error_code == "Damaged" and f"{first}, byte {len(data)}: it has the offsets" in str(log.error)
    first.write_bytes(data)
    second.write_bytes(before[second.name])
    assert files_in(folder) == before


def test_a_file_that_is_none_of_a_log_does_not_void_a_swap(folder: Path) -> None:
    first, *_ = sorted(folder.glob("*.log"))
    before = files_in(folder)
    first.rename(folder / f"{first.name}.swap")
    for other in ("notes.cleaned", "notes.swap", "notes.deleted"):
        (folder / other).touch()
    recover(FolderFiles(folder))
    assert files_in(folder) == {**before, "notes.cleaned": b"", "notes.swap": b"", "notes.deleted": b""}
    assert clean(folder).segments_in


def test_a_record_that_stays_has_all_its_bytes() -> None:
    """Also a name of a header that is not UTF-8; only its time counts from another base."""
    rest = b"\2k\2v\2\4\xff\xfe\1"
    header = BatchHeader(7, 1, base_timestamp=100, max_timestamp=105, records=2)
    first, second = (b"\x18\0" + time_and_offset + rest for time_and_offset in (b"\0\0", b"\x0a\2"))
    (frame,) = frames_of(io.BytesIO(header.with_records(first + second)))
    rules = CleanRules(0, 0, 10**6, {}, ())
    found = BatchCleaner(rules, {}).cleaned(frame, header_of(frame), lambda record: record.offset == 8)
    assert found is not None and found.data[HEADER_BYTES:] == b"\x18\0\0\2" + rest
    (frame,) = frames_of(io.BytesIO(found.data))
    (record,) = records_of(frame)
    assert (record.offset, record.timestamp, record.key) == (8, 105, b"k")
