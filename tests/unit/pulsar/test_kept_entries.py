"""Entries that a task keeps are those that it has read, and are asked for once (C54)."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import IO

import pytest

from lithify.columnar.files.spilled import spill_file
from lithify.errors import EngineError
from lithify.model.message import MessageId
from lithify.pulsar.format.entry import RawEntry
from lithify.pulsar.rounds.kept import LIST_BYTES, KeptEntries

ENTRIES = [RawEntry(5, number, bytes([number]) * (LIST_BYTES // 3)) for number in range(10)]
END = MessageId(5, 9)


@pytest.fixture
def file() -> Iterator[IO[bytes]]:
    with spill_file() as file:
        yield file


class Counting:
    """A reader that counts how often it is asked."""

    def __init__(self) -> None:
        self.asked: list[bool] = []

    def read(self, start, end, *, compacted=False):
        self.asked.append(compacted)
        yield ENTRIES[:7]
        yield ENTRIES[7:]


def all_of(lists):
    return [raw for entries in lists for raw in entries]


def test_entries_are_asked_for_once(file):
    reader = Counting()
    kept = KeptEntries(reader, file)
    assert all_of(kept.read(None, END)) == ENTRIES
    again = list(kept.read(None, END))
    assert all_of(again) == ENTRIES
    assert max(map(len, again)) <= 3
    assert reader.asked == [False]


def test_a_view_is_not_kept(file):
    """It may be large, and is read once."""
    reader = Counting()
    kept = KeptEntries(reader, file)
    assert all_of(kept.read(None, END, compacted=True)) == ENTRIES
    assert all_of(kept.read(None, END, compacted=True)) == ENTRIES
    assert reader.asked == [True, True]
    assert file.seek(0, os.SEEK_END) == 0


def test_a_read_that_was_not_finished_is_not_taken_for_the_whole(file):
    reader = Counting()
    kept = KeptEntries(reader, file)
    begun = kept.read(None, END)
    assert next(begun) == ENTRIES[:7]
    begun.close()
    assert all_of(kept.read(None, END)) == ENTRIES
    assert all_of(kept.read(None, END)) == ENTRIES
    assert reader.asked == [False, False]


def test_ranges_are_kept_beside_each_other(file):
    kept = KeptEntries(Counting(), file)
    ends = [MessageId(5, number) for number in range(3)]
    begun = kept.read(None, ends[0])
    next(begun)
    begun.close()
    for _ in range(2):
        assert [all_of(kept.read(None, end)) for end in ends] == [ENTRIES] * 3


def test_a_full_disk_is_an_error_of_the_engine():
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (LIST_BYTES, before[1]))
    try:
        with (
            pytest.raises(EngineError, match=r"cannot be kept.*File too large.*spark\.local\.dir"),
            spill_file() as file,
        ):
            all_of(KeptEntries(Counting(), file).read(None, END))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


KILLED = """
import os, signal
from lithify.columnar.files.spilled import spill_file
from lithify.model.message import MessageId
from lithify.pulsar.rounds.kept import KeptEntries
from unit.pulsar.test_kept_entries import Counting, END

with spill_file() as file:
    for _ in KeptEntries(Counting(), file).read(None, END):
        assert os.fstat(file.fileno()).st_size > 0
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_process_leaves_nothing(tmp_path):
    """Without Spark nobody would delete it."""
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    environment.pop("SPARK_LOCAL_DIRS", None)
    ended = subprocess.run([sys.executable, "-c", KILLED], env=environment, check=False, capture_output=True)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert list(tmp_path.iterdir()) == []
