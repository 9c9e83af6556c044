"""`lithify produce`: what is written, what is refused, and how far it got."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lithify.cli.records import text_lines
from lithify.columnar.arrivals.partitioner import partition_of
from lithify.columnar.parquet import bounded_batches
from lithify.store.iceberg.store import IcebergStore


def records(lithify, topic="orders", *flags):
    return lithify("consume", topic, *flags).lines


def pairs(lithify, topic="orders"):
    return [(r["key"], r["value"]) for r in records(lithify, topic)]


@pytest.fixture
def orders(lithify):
    lithify("topic", "create", "orders", "--partitions", 2)
    return lithify


def a_line(key, value="v", **more):
    return json.dumps({"key": key, "value": value, **more}) + "\n"


def test_the_ranges_written_are_printed(orders, masked, begins_chain):
    text = "".join(a_line(f"k{n}") for n in range(5))
    sizes = [sum(partition_of(b"k%d" % n, 2) == p for n in range(5)) for p in range(2)]
    for round_ in range(2):
        done = orders("produce", "orders", stdin=text)
        assert masked(done.out) == "PARTITION  OFFSETS  RECORDS\n" + "".join(
            f"        {p}  [{round_ * n}, {round_ * n + n})  {n}\n" for p, n in enumerate(sizes)
        )
        assert done.err == f"orders: 5 records written, version {round_ + 2 + begins_chain}\n"
    assert orders("produce", "orders", "--json", stdin=a_line("k0")).json == {
        "topic": "orders",
        "version": 4 + begins_chain,
        "ranges": [
            {
                "partition": partition_of(b"k0", 2),
                "start_offset": 2 * sizes[partition_of(b"k0", 2)],
                "end_offset": 2 * sizes[partition_of(b"k0", 2)] + 1,
                "records": 1,
            }
        ],
        "records": 1,
    }


def test_the_topic_is_loaded_twice_before_the_first_batch_and_twice_for_each(orders, monkeypatch):
    """By its name, to be appended to; before a batch is staged, and at its commit."""
    monkeypatch.setattr(text_lines, "BATCH_LINES", 2)
    calls = []
    load = IcebergStore.load
    monkeypatch.setattr(IcebergStore, "load", lambda store, name: calls.append(name) or load(store, name))
    orders("produce", "orders", stdin="".join(a_line(f"k{n}") for n in range(6)))
    assert len(calls) == 2 + 3 * 2


def test_nothing_in_nothing_written(orders):
    assert orders("produce", "orders").err == "orders: 0 records written, version 1\n"
    assert orders("produce", "orders", "--json", stdin="\n\r\n").json["ranges"] == []


def test_a_record_keeps_everything_it_was_given(orders):
    line = a_line("k", None, partition=1, timestamp=5, headers=[["a", "1"], ["a", None]])
    orders("produce", "orders", stdin=line)
    assert records(orders) == [
        {"partition": 1, "offset": 0, "timestamp": 5, "key": "k", "value": None, "headers": [["a", "1"], ["a", None]]}
    ]


def test_batches_are_atomic_and_the_error_says_how_far_it_got(orders, monkeypatch):
    monkeypatch.setattr(text_lines, "BATCH_LINES", 10)
    lines = [a_line(f"k{n}") for n in range(30)]
    lines[27] = '{"key": "k27", "value": }\n'
    failed = orders("produce", "orders", "--json", stdin="".join(lines), code=2)
    said = json.loads(failed.err)
    assert said["code"] == "InvalidInput"
    assert said["message"] == "stdin, line 28: it is not JSON: Expecting value at column 25"
    assert said["hint"] == "nothing of its batch was written; 20 records of earlier batches were"
    assert failed.json["records"] == 20
    assert sorted(key for key, _ in pairs(orders)) == sorted(f"k{n}" for n in range(20))


def test_blank_lines_are_counted_but_hold_no_record(orders, tmp_path):
    file = tmp_path / "orders.jsonl"
    file.write_text("\n\n" + a_line("a") + "\r\n" + a_line(None))
    assert orders.error("produce", "orders", file) == (
        f"{file}, line 5: the record is refused: it has no key, and null.key=reject (nothing was written)"
    )
    assert records(orders) == []


def test_the_last_line_needs_no_end(orders):
    orders("produce", "orders", stdin=a_line("a") + a_line("b").rstrip("\n"))
    assert sorted(pairs(orders)) == [("a", "v"), ("b", "v")]


REFUSED = {
    "text": (b'{"key":"a","value":"\xff"}', "it is not UTF-8 text; --encoding base64 accepts any bytes"),
    "large": (a_line("k", "v" * 1_048_588).encode(), "it has 1048589 bytes, above max.message.bytes=1048588"),
    "partition": (a_line("k", partition=2).encode(), "there is no partition 2 (the topic has 2, from 0 on)"),
    "time": (a_line("k", timestamp=2**60).encode(), "is further ahead than message.timestamp.after.max.ms allows"),
    "field": (a_line("k", colour="red").encode(), "unknown field 'colour'"),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED.keys())
def test_a_refused_record_is_named_by_its_line(orders, case):
    line, reason = case
    said = orders.error("produce", "orders", stdin=a_line("good").encode() + line)
    assert said.startswith("stdin, line 2: ")
    assert reason in said
    assert said.endswith("(nothing was written)")
    assert records(orders) == []


def test_kept_offsets_ascend_with_gaps_and_refuse_what_is_there_already(orders):
    lines = [a_line("a", partition=0, offset=5), a_line("b", partition=1, offset=0), a_line("c", partition=0, offset=9)]
    done = orders("produce", "orders", "--keep-offsets", "--json", stdin="".join(lines))
    assert [(r["partition"], r["start_offset"], r["end_offset"], r["records"]) for r in done.json["ranges"]] == [
        (0, 5, 10, 2),
        (1, 0, 1, 1),
    ]
    again = orders.error("produce", "orders", "--keep-offsets", stdin="".join(lines))
    assert again.startswith("orders-0: offset 5 is below the log end 10")
    back = [a_line("a", partition=0, offset=20), a_line("b", partition=0, offset=19)]
    assert orders.error("produce", "orders", "--keep-offsets", stdin="".join(back)).startswith(
        "stdin, line 2: the record is refused: its offset 19 does not ascend: 20 came before it in partition 0"
    )
    missing = orders.error("produce", "orders", "--keep-offsets", stdin=a_line("a"))
    assert "it has no partition, which is needed to keep offsets" in missing
    assert len(records(orders)) == 3


def test_a_copy_of_a_topic_is_the_topic(orders):
    orders("topic", "create", "copy", "--partitions", 2)
    orders("topic", "create", "by-log", "--config", "message.timestamp.type=LogAppendTime")
    orders("produce", "by-log", stdin=a_line("k", timestamp=5))
    orders("produce", "orders", stdin="".join(a_line(f"k{n}", None, timestamp=n) for n in range(9)))
    told = orders("consume", "orders").out
    orders("produce", "copy", "--keep-offsets", stdin=told)
    assert orders("consume", "copy").out == told
    by_log = orders("consume", "by-log").out
    orders("topic", "create", "copy-of-by-log")
    orders("produce", "copy-of-by-log", "--keep-offsets", stdin=by_log)
    assert orders("consume", "copy-of-by-log").out == by_log


def test_tab_separated_values(orders):
    given = b"a\t1\nb\t2\t3\n\na\t-\nc\t\n"
    orders("produce", "orders", "--format", "tsv", "--null-marker", "-", stdin=given)
    assert sorted(pairs(orders), key=str) == [("a", "1"), ("a", None), ("b", "2\t3"), ("c", "")]
    assert orders.error("produce", "orders", "--format", "tsv", stdin=b"a\t1\nb\t\xff\n").startswith(
        "stdin, line 2: it is not UTF-8 text"
    )
    refused = orders.error("produce", "orders", "--format", "tsv", stdin=b"a\t1\n\na\n")
    assert refused == (
        "stdin, line 3: it has no tab between key and value; to delete a key, write --null-marker's text as its "
        "value (nothing was written)"
    )
    assert len(pairs(orders)) == 4
    refused = orders.error("produce", "orders", "--null-marker", "-", stdin=b"")
    assert refused == '--null-marker is for tsv (in json write "value":null, in parquet use nulls)'
    refused = orders.error("produce", "orders", "--format", "tsv", "--keep-offsets", stdin=b"a\t1\n")
    assert refused == "tsv has no offsets to keep (use json or parquet with --keep-offsets)"


def test_any_bytes_pass_as_base64(orders):
    orders("produce", "orders", "--encoding", "base64", stdin=a_line("/w==", "AA=="))
    assert [(r["key"], r["value"]) for r in records(orders, "orders", "--encoding", "base64")] == [("/w==", "AA==")]
    assert "its key is not base64" in orders.error("produce", "orders", "--encoding", "base64", stdin=a_line("a"))


def test_the_name_of_a_file_tells_its_format(orders, tmp_path):
    pq.write_table(pa.table({"key": ["p"], "value": [b"1"]}), tmp_path / "a.parquet")
    (tmp_path / "b.tsv").write_text("t\t2\n")
    (tmp_path / "c.log").write_text(a_line("j", "3"))
    orders("produce", "orders", tmp_path / "a.parquet", tmp_path / "b.tsv", tmp_path / "c.log", "-", stdin=a_line("s"))
    assert sorted(pairs(orders)) == [("j", "3"), ("p", "1"), ("s", "v"), ("t", "2")]


def test_parquet_files_are_taken_by_row_groups(orders, tmp_path, begins_chain):
    file = tmp_path / "a.parquet"
    table = pa.table(
        {
            "key": [f"k{n}" for n in range(25)],
            "value": pa.array([b"\xff", None] * 12 + [b""], pa.binary()),
            "timestamp": range(25),
            "partition": pa.array([0, 1, None, None, 1] * 5, pa.int8()),
            "headers": [[{"key": "h", "value": b"x"}], None, [], None, None] * 5,
        }
    )
    pq.write_table(table, file, row_group_size=10)
    assert orders("produce", "orders", file).err == f"orders: 25 records written, version {4 + begins_chain}\n"
    found = {r["key"]: r for r in records(orders, "orders", "--encoding", "base64")}
    assert [found[k]["timestamp"] for k in map(_base64, table["key"].to_pylist())] == list(range(25))
    assert found[_base64("k0")] | {"offset": None} == {
        "partition": 0,
        "offset": None,
        "timestamp": 0,
        "key": _base64("k0"),
        "value": "/w==",
        "headers": [["h", "eA=="]],
    }
    assert found[_base64("k1")]["value"] is None


def _base64(text):
    import base64

    return base64.b64encode(text.encode()).decode()


def test_large_row_groups_are_cut(orders, tmp_path, monkeypatch, begins_chain):
    monkeypatch.setattr(bounded_batches, "PIECE_ROWS", 10)
    pq.write_table(pa.table({"key": [f"k{n}" for n in range(35)], "value": ["v"] * 35}), tmp_path / "a.parquet")
    done = orders("produce", "orders", tmp_path / "a.parquet")
    assert done.err == f"orders: 35 records written, version {5 + begins_chain}\n"
    monkeypatch.setattr(bounded_batches, "PIECE_BYTES", 100)
    done = orders("produce", "orders", tmp_path / "a.parquet", "--json").json
    assert done["records"] == 35
    assert done["version"] > 7


def test_parquet_refusals_name_row_column_or_file(orders, tmp_path):
    def a_file(name, **columns):
        pq.write_table(pa.table(columns), tmp_path / name, row_group_size=2)
        return tmp_path / name

    good = a_file("good.parquet", key=["a"], value=["1"])
    bad = a_file("bad.parquet", key=["a", "b", None], value=["1", "2", "3"])
    assert orders.error("produce", "orders", a_file("odd.parquet", key=["a"], colour=["red"])) == (
        f"{tmp_path / 'odd.parquet'}: unknown column 'colour' "
        "(the columns are partition, offset, timestamp, timestamp_type, key, value, headers)"
    )
    # All files are looked at before the first is written.
    assert "there is no column 'value'" in orders.error("produce", "orders", good, a_file("no.parquet", key=["a"]))
    (tmp_path / "cut.parquet").write_bytes(good.read_bytes()[:-9])
    assert "cut.parquet: it cannot be read as a Parquet file" in orders.error(
        "produce", "orders", good, tmp_path / "cut.parquet"
    )
    assert records(orders) == []
    said = orders("produce", "orders", bad, code=2).err
    assert said == (
        f"error[InvalidRecord]: {bad}, row 2: the record is refused: it has no key, and null.key=reject "
        "(nothing of its batch was written; 2 records of earlier batches were)\n"
    )
    assert orders.error("produce", "orders", "--format", "parquet") == (
        "Parquet cannot be read from stdin (pass the name of a file)"
    )


def test_files_that_cannot_be_read_are_named(orders, tmp_path):
    missing = tmp_path / "nope.jsonl"
    assert orders.error("produce", "orders", missing) == f"{missing}: No such file or directory"
    assert orders.error("produce", "orders", tmp_path) == f"{tmp_path}: Is a directory"
    assert orders.error("produce", "orders", tmp_path / "nope.parquet").startswith(f"{tmp_path / 'nope.parquet'}: ")
    assert orders.error("produce", "nope", stdin=a_line("k")).startswith("nope: no such topic")
    assert orders.error("produce", "orders", "a" * 300) == f"{'a' * 300}: File name too long"
    odd = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.parquet")
    Path(odd).write_bytes(b"PAR1")
    assert "its name is not UTF-8" in orders.error("produce", "orders", odd)


@pytest.mark.parametrize("name", ["a.jsonl", "a.tsv"])
def test_a_byte_order_mark_is_in_no_key(orders, tmp_path, name):
    text = "k1\tv\nk2\tv\n" if name.endswith("tsv") else a_line("k1") + a_line("k2")
    (tmp_path / name).write_text(text, encoding="utf-8-sig")
    orders("produce", "orders", tmp_path / name)
    orders("produce", "orders", "--format", "tsv" if name.endswith("tsv") else "json", stdin=f"\ufeff{text}")
    assert sorted(key for key, _ in pairs(orders)) == ["k1", "k1", "k2", "k2"]


def test_a_partition_in_the_topics_name_is_where_records_go(lithify):
    name = "persistent://public/default/orders"
    lithify("topic", "create", name, "--partitions", 3)
    lithify("produce", f"{name}-partition-2", stdin=a_line("a") + a_line("b", partition=2))
    assert [(r["partition"], r["key"]) for r in records(lithify, name)] == [(2, "a"), (2, "b")]
    assert lithify.error("produce", f"{name}-partition-1", stdin=a_line("a") + a_line("b", partition=2)) == (
        "stdin, line 2: the record has partition 2, but the topic name has partition 1 (nothing was written)"
    )
    assert "has no partition 3" in lithify.error("produce", f"{name}-partition-3", stdin=a_line("a"))


def test_lines_are_values_of_the_key_that_is_given(orders):
    orders("produce", "orders", "--key", "k", stdin='{"a":1}\nplain\tv\n\nNULL\n')
    orders("produce", "orders", "--key", "k", "--null-marker", "NULL", stdin="NULL\n")
    read = orders("consume", "orders", "--key", "k").lines
    assert [(record["key"], record["value"]) for record in read] == [
        ("k", '{"a":1}'),
        ("k", "plain\tv"),
        ("k", "NULL"),
        ("k", None),
    ]


def test_a_null_marker_may_be_any_bytes(orders):
    orders("produce", "orders", "--key", "k", "--null-marker", os.fsdecode(b"\xff"), stdin=b"\xff\nv\n")
    assert [record["value"] for record in orders("consume", "orders", "--key", "k").lines] == [None, "v"]


def test_a_key_is_refused_beside_what_has_keys_or_offsets(orders, tmp_path):
    produce = ("produce", "orders", "--key", "k")
    assert "use only one of them" in orders.error(*produce, "--format", "json", stdin="v\n")
    assert orders.error(*produce, "--keep-offsets", stdin="v\n").startswith("a line that is a value has no offsets")
    assert orders.error("produce", "orders", "--key", "zz", "--key-encoding", "hex", stdin="v\n").startswith(
        "--key: it is not hex: "
    )
    assert "stdin, line 2: it is not UTF-8 text" in orders.error(*produce, stdin=b"v\n\xff\n")
    assert orders("consume", "orders", "--key", "k").out == ""


def test_keys_and_values_are_encoded_each_in_its_way(orders):
    as_both = ("--key-encoding", "hex", "--value-encoding", "base64")
    orders("produce", "orders", "--key", "00ff", *as_both, stdin="/w==\n")
    line = '{"key":"00ff","value":"/w==","headers":[["h","text"]]}\n'
    orders("produce", "orders", *as_both, stdin=line)
    first, second = orders("consume", "orders", "--key", "00ff", *as_both).lines
    assert (first["key"], first["value"], first["headers"]) == ("00ff", "/w==", [])
    assert (second["key"], second["value"], second["headers"]) == ("00ff", "/w==", [["h", "text"]])
    assert orders("consume", "orders", "--key", "AP8=", "--encoding", "base64").lines[1]["headers"] == [
        ["h", "dGV4dA=="]
    ]
    assert "is not UTF-8 text" in orders.error("consume", "orders", "--key-encoding", "hex", code=1)
    bad = '{"key":"0","value":""}\n'
    assert "its key is not hex: " in orders.error("produce", "orders", *as_both, stdin=bad)
