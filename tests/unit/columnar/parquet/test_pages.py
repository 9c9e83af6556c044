"""What a column chunk can expand to is never less than what it does expand to (C51)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lithify.columnar.parquet.footer import read_footer
from lithify.columnar.parquet.pages import weigh

pytestmark = pytest.mark.long

ROWS = 2500
LARGE = b"prefix" * 2000
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))

COLUMNS = {
    "one large value": [LARGE] * ROWS,
    "large values, one prefix": [LARGE + b"%d" % n for n in range(ROWS)],
    "many small": [b"%d" % n for n in range(ROWS)],
    "nulls": [None] * ROWS,
    "a large one at the end": [b""] * (ROWS - 1) + [LARGE * 50],
    "few in a dictionary": [b"%d" % (n % 7) * 100 for n in range(ROWS)],
}
WRITERS: dict[str, dict[str, Any]] = {
    "as Arrow does": {},
    "plain": {"use_dictionary": False},
    "shared prefixes": {"use_dictionary": False, "column_encoding": "DELTA_BYTE_ARRAY"},
    "lengths apart": {"use_dictionary": False, "column_encoding": "DELTA_LENGTH_BYTE_ARRAY"},
    "pages of version 2": {"data_page_version": "2.0"},
    "small pages": {"data_page_size": 1000},
    "uncompressed": {"compression": "none"},
}


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("column", COLUMNS)
def test_the_bound_holds(column: str, writer: str, tmp_path: Path) -> None:
    given = {"compression": "zstd", **WRITERS[writer]}
    _check(pa.table({"c": pa.array(COLUMNS[column], pa.binary())}), tmp_path / "file.parquet", given)


@pytest.mark.parametrize("writer", ["as Arrow does", "plain", "pages of version 2"])
def test_the_bound_holds_for_lists(writer: str, tmp_path: Path) -> None:
    headers = [None, [], [{"key": "k", "value": LARGE}] * 300] * 20
    _check(pa.table({"c": pa.array(headers, HEADERS)}), tmp_path / "file.parquet", WRITERS[writer])


@pytest.mark.parametrize("kind", [pa.int64(), pa.int32(), pa.bool_(), pa.timestamp("ms"), pa.float64()])
def test_the_bound_holds_for_numbers(kind: pa.DataType, tmp_path: Path) -> None:
    _check(pa.table({"c": pa.array([1] * ROWS).cast(kind)}), tmp_path / "file.parquet", {})


def _check(table: pa.Table, path: Path, options: dict[str, Any]) -> None:
    pq.write_table(table, path, row_group_size=2000, **options)
    with pa.OSFile(str(path)) as source:
        footer = read_footer(source)
        file = pq.ParquetFile(source)
        assert len(footer.chunks) == file.num_row_groups
        for group, chunks in enumerate(footer.chunks):
            most = sum(weigh(source.read_at, chunk).most(chunk.values) for chunk in chunks.values())
            assert most >= file.read_row_group(group).nbytes
