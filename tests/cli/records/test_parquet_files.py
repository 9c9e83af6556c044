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
def test_a_run_of_parts_of_which_one_is_empty_is_taken(orders, tmp_path, dictionaries, begins_chain):
    for number, part in enumerate([RECORDS, RECORDS[:0], RECORDS]):
        pq.write_table(part, tmp_path / f"part-{number}.parquet", use_dictionary=dictionaries)
    orders("produce", "orders", *sorted(tmp_path.glob("part-*.parquet")))
    assert [record["key"] for record in orders("consume", "orders").lines] == ["a", "b"] * 2
    alone = orders("produce", "orders", tmp_path / "part-1.parquet")
    assert alone.err == f"orders: 0 records written, version {3 + begins_chain}\n"


@pytest.mark.parametrize(
    ("column", "values", "said"),
    [
        ("key", [1, 2], "'key' of type int64 is not accepted: it must be binary or string"),
        ("timestamp", ["x", "y"], "'timestamp' of type string is not accepted: it must be an integer"),
        ("headers", ["x", "y"], "'headers' of type string is not accepted: it must be a list of (key, value)"),
    ],
)
def test_types_of_all_files_are_checked_before_anything_is_written(orders, tmp_path, column, values, said):
    good, bad = tmp_path / "good.parquet", tmp_path / "bad.parquet"
    pq.write_table(RECORDS, good)
    pq.write_table(pa.table({**dict(zip(RECORDS.column_names, RECORDS.columns, strict=True)), column: values}), bad)
    assert orders.error("produce", "orders", good, bad, good) == f"{bad}: the column {said}"
    assert orders("consume", "orders").lines == []


def test_a_number_that_is_too_large_is_told_with_its_file_and_rows(orders, tmp_path):
    file = tmp_path / "x.parquet"
    times = pa.array([1, 2, 2**63, 4], pa.uint64())
    pq.write_table(pa.table({"key": list("abcd"), "value": list("1234"), "timestamp": times}), file, row_group_size=2)
    said = orders("produce", "orders", file, code=2).err
    assert f"{file}, rows 2 to 3: the column 'timestamp' of type uint64 is not accepted: " in said
    assert "2 records of earlier batches were" in said


def test_encodings_are_refused_where_no_file_is_text(orders, tmp_path):
    file = tmp_path / "x.parquet"
    pq.write_table(RECORDS, file)
    said = "--encoding is for text, but Parquet files hold bytes (omit it)"
    assert orders.error("produce", "orders", "--encoding", "base64", file) == said
    assert orders.error("produce", "orders", "--key-encoding", "hex", file) == said
    orders("produce", "orders", "--key-encoding", "hex", file, "-", stdin='{"key":"00ff","value":"v"}\n')
    assert len(orders("consume", "orders", "--encoding", "base64").lines) == 3


def test_a_name_of_a_file_that_is_empty_is_said_to_be_so(orders):
    for flags in ((), ("--format", "parquet")):
        said = orders.error("produce", "orders", *flags, "")
        assert said == "the name of a file is empty (pass the name of a file, or - for stdin)"
