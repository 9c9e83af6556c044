"""Row groups without records: writers say nothing true of their places, and nothing is read of them (C51)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lithify.columnar.parquet import footer
from lithify.columnar.parquet.bounded_batches import BoundedFile
from lithify.columnar.parquet.footer import UnsoundFileError, read_footer
from lithify.columnar.parquet.thrift import Struct, read_struct

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
FULL = pa.table(
    {"key": pa.array([b"a", b"b"]), "timestamp": [1, 2], "headers": pa.array([[("a", b"1"), ("b", b"2")], []], HEADERS)}
)
EMPTY = FULL[:0]
ROWS, COLUMNS, FACTS, VALUES = 3, 1, 3, 5


def written(path: Path, *groups: pa.Table, **how: Any) -> Path:
    with pq.ParquetWriter(path, FULL.schema, **how) as writer:
        for group in groups:
            writer.write_table(group)
    return path


def changed(monkeypatch: pytest.MonkeyPatch, group: int, column: int, **numbers: int) -> None:
    """The footer as it is read, with another number of records of a row group, or of values of a column in it."""

    def lying(raw: bytes) -> tuple[Struct, int]:
        found, end = read_struct(raw)
        of_group = found[4][group]
        found[ROWS] += numbers.get("rows", of_group[ROWS]) - of_group[ROWS]
        of_group[ROWS] = numbers.get("rows", of_group[ROWS])
        of_group[COLUMNS][column][FACTS][VALUES] = numbers.get("values", of_group[COLUMNS][column][FACTS][VALUES])
        return found, end

    monkeypatch.setattr(footer, "read_struct", lying)


@pytest.mark.parametrize("dictionaries", [True, False])
@pytest.mark.parametrize("groups", [[EMPTY], [FULL, EMPTY, FULL], [EMPTY, FULL], []], ids=len)
def test_row_groups_without_records_are_passed_over(tmp_path, groups, dictionaries):
    path = written(tmp_path / "x.parquet", *groups, use_dictionary=dictionaries)
    with pa.OSFile(str(path)) as source:
        file = BoundedFile.of(source)
        assert file.footer.metadata.num_row_groups == len(groups)
        assert [bool(chunks) for chunks in file.footer.chunks] == [group.num_rows > 0 for group in groups]
        assert [piece.to_pylist() for piece in file.pieces()] == [g.to_pylist() for g in groups if g.num_rows]


@pytest.mark.parametrize("column", [0, 1, 2], ids=["key", "timestamp", "headers"])
@pytest.mark.parametrize(
    ("group", "lie"),
    [(1, {"rows": 2}), (1, {"values": 3}), (0, {"values": 0}), (0, {"values": 1}), (0, {"rows": 0})],
    ids=str,
)
def test_records_without_values_and_values_without_records_are_refused(tmp_path, monkeypatch, group, lie, column):
    path = written(tmp_path / "x.parquet", FULL, EMPTY)
    changed(monkeypatch, group, column, **lie)
    with pa.OSFile(str(path)) as source, pytest.raises(UnsoundFileError) as refused:
        read_footer(source)
    assert re.fullmatch(r"a row group of \d records has \d values of .*", str(refused.value))
