"""Files that would take gigabytes are refused by name, with the limit, in a process that may take one (C51)."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cli.records.hostile_files import KEYS, PARQUET, SCHEMA, one_line, produced
from support.generated.parquet_bombs import write_bomb
from support.processes.bounded_child import in_bounded_child

MORE_BYTES = 2**30


@pytest.mark.parametrize("kind", PARQUET)
def test_a_parquet_file_that_expands_to_gigabytes(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "bomb.parquet"
    PARQUET[kind](path)
    assert path.stat().st_size < 2**20
    code, said, records = in_bounded_child(produced, tmp_path, kind, str(path), more_bytes=MORE_BYTES)
    assert (code, records) == (2, 0), said
    assert str(path) in said
    assert "row group 0" in said or "row 0: the record is refused" in said


def test_a_file_that_expands_to_gigabytes_of_records_that_are_taken(tmp_path: Path) -> None:
    path = tmp_path / "large.parquet"
    keys = KEYS[: 2 * MORE_BYTES // 2**20]
    write_bomb(path, SCHEMA, {"key": keys.cast(pa.binary())}, value_bytes=2**20)
    code, said, records = in_bounded_child(produced, tmp_path, "large", str(path), more_bytes=MORE_BYTES)
    assert (code, records) == (0, len(keys)), said


@pytest.mark.parametrize("suffix", ["jsonl", "tsv"])
def test_a_line_of_gigabytes(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"endless.{suffix}"
    one_line(path)
    code, said, records = in_bounded_child(produced, tmp_path, suffix, str(path), more_bytes=MORE_BYTES)
    assert (code, records) == (2, 0), said
    assert f"{path}, line 1" in said
    assert "max.message.bytes" in said


def test_a_device_without_an_end(tmp_path: Path) -> None:
    code, said, _ = in_bounded_child(produced, tmp_path, "zero", "/dev/zero", more_bytes=MORE_BYTES)
    assert code == 2
    assert "/dev/zero, line 1" in said


def test_lines_as_long_as_a_record_may_be_are_taken(lithify, tmp_path):
    """The longest that JSON can make of a record: every byte as an escape of six."""
    lithify("topic", "create", "any", "--config", f"max.message.bytes={2**63 - 1}")
    lithify("produce", "any", stdin='{"key":"k","value":"v"}\n')
    lithify("topic", "create", "t", "--config", "max.message.bytes=1000")
    line = '{"key":"k","value":"' + "\\u0001" * 999 + '"}\n'
    assert "1 record written" in lithify("produce", "t", stdin=line).err
    assert "refused" in lithify.error("produce", "t", stdin=line.replace('"k"', '"kk"'))


def test_a_pipe_is_read_once(lithify, tmp_path):
    pipe = tmp_path / "pipe.jsonl"
    os.mkfifo(pipe)
    lithify("topic", "create", "t")
    writer = threading.Thread(target=lambda: pipe.write_text('{"key":"k","value":"v"}\n'))
    writer.start()
    assert "1 record written" in lithify("produce", "t", str(pipe)).err
    writer.join()


@pytest.mark.parametrize("name", ["a folder", "a pipe", "empty", "only the end", "a huge footer", "text"])
def test_what_is_no_parquet_file_is_named(name, lithify, tmp_path):
    path = tmp_path / "x.parquet"
    match name:
        case "a folder":
            path.mkdir()
        case "a pipe":
            os.mkfifo(path)
        case "empty":
            path.touch()
        case "only the end":
            path.write_bytes(b"PAR1")
        case "a huge footer":
            path.write_bytes(b"PAR1" + bytes(100) + b"\xff\xff\xff\x7fPAR1")
        case "text":
            path.write_text("hello " * 1000)
    lithify("topic", "create", "t")
    assert str(path) in lithify.error("produce", "t", str(path))


def test_many_small_pieces_make_as_few_appends_as_before(lithify, tmp_path):
    """A dictionary of large values is read a few rows at a time, and appended a row group at a time."""
    path = tmp_path / "x.parquet"
    values = [b"%d" % (n % 3) * 300_000 for n in range(300)]
    table = pa.table([[b"k%d" % n for n in range(300)], values], schema=SCHEMA)
    pq.write_table(table, path)
    lithify("topic", "create", "t")
    lithify("produce", "t", str(path))
    assert lithify("topic", "info", "t", "--json").json["records"] == 300
    assert len(lithify("versions", "t", "--json").lines) <= 3
