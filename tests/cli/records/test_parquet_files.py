"""`lithify produce` of Parquet files: which are taken, and what is found before anything is written."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

RECORDS = pa.table({"key": ["a", "b"], "value": ["1", "2"]})


@pytest.fixture
def orders(lithify):
    lithify("topic", "create", "orders")
    return lithify


@pytest.mark.parametrize("dictionaries", [True, False])
def test_a_run_of_parts_of_which_one_is_empty_is_taken(orders, tmp_path, dictionaries):
    for number, part in enumerate([RECORDS, RECORDS[:0], RECORDS]):
        pq.write_table(part, tmp_path / f"part-{number}.parquet", use_dictionary=dictionaries)
    orders("produce", "orders", *sorted(tmp_path.glob("part-*.parquet")))
    assert [record["key"] for record in orders("consume", "orders").lines] == ["a", "b"] * 2
    alone = orders("produce", "orders", tmp_path / "part-1.parquet")
    assert alone.err == "orders: 0 records written, version 3\n"
