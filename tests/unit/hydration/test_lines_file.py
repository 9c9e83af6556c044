"""A file of JSON lines is replaced as a whole, and what killed runs have left beside it goes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from lithify.hydration.lines_file import WRITTEN_AT_ONCE, write_lines
from lithify.hydration.rows import Row

ROW: Row = (0, b"k", b"v", 0, 0, "[]")
WRITER = """
import sys, time
from pathlib import Path
from lithify.hydration.lines_file import WRITTEN_AT_ONCE, write_lines

def rows():
    yield from [(0, b"k", b"v" * 1000, 0, 0, "[]")] * WRITTEN_AT_ONCE
    yield (0, b"k", b"v", 0, 0, "[]")
    print("written", flush=True)
    time.sleep(600)

write_lines(rows(), Path(sys.argv[1]), lambda table: (b"{}" + b" " * 1000 for _ in range(len(table))))
"""


def lines(table: pa.Table) -> Iterator[bytes]:
    return (b"{}\n" for _ in range(len(table)))


@pytest.fixture
def writing(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Another process in the middle of a file of the folder."""
    command = [sys.executable, "-c", WRITER, str(tmp_path / "other.jsonl")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"written\n"
        yield process
        process.kill()


@pytest.mark.long
def test_the_new_file_of_a_killed_run_is_deleted_by_the_next(tmp_path: Path, writing: subprocess.Popen[bytes]) -> None:
    (left,) = tmp_path.iterdir()
    assert left.stat().st_size
    writing.kill()
    writing.wait()
    write_lines([ROW], tmp_path / "rows.jsonl", lines)
    assert [path.name for path in tmp_path.iterdir()] == ["rows.jsonl"]


@pytest.mark.long
def test_that_of_a_running_one_stays(tmp_path: Path, writing: subprocess.Popen[bytes]) -> None:
    (left,) = tmp_path.iterdir()
    write_lines([ROW], tmp_path / "rows.jsonl", lines)
    assert set(tmp_path.iterdir()) == {left, tmp_path / "rows.jsonl"}


def test_what_may_be_anothers_stays(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("of someone else")
    (tmp_path / ".lithify-link.new").symlink_to("precious")
    (tmp_path / ".lithify-begun.new").touch()  # not locked yet
    (tmp_path / ".lithify-folder.new").mkdir()
    before = set(tmp_path.iterdir())
    write_lines([ROW] * (WRITTEN_AT_ONCE + 1), tmp_path / "rows.jsonl", lines)
    assert set(tmp_path.iterdir()) == before | {tmp_path / "rows.jsonl"}
    assert (tmp_path / "rows.jsonl").read_bytes() == b"{}\n" * (WRITTEN_AT_ONCE + 1)
