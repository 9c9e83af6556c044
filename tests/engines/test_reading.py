"""Other engines read a topic right: the programs of the page, run as they stand there."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

import lithify
from lithify.ports.store import Warehouse
from lithify.service.round.compact import RunRequest, compact
from lithify.testing.oracle_engine import OracleEngine
from support.pages.text import programs

PAGE = "docs/data-out/query-the-latest.md"
DUCKDB_PYTHON = Path(sys.prefix) / "engines" / "bin" / "python"


def program(anchor: str) -> str:
    """The first Python program of a section of the page."""
    return programs(PAGE, anchor)[0]


def printed(python: Path, source: str, folder: Path) -> list[str]:
    """What a program prints when it runs next to the warehouse; a session of its own needs a Python with Lithify."""
    env = {**os.environ, "PYSPARK_PYTHON": str(python)}
    result = subprocess.run([python, "-c", source], cwd=folder, capture_output=True, text=True, check=False, env=env)
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()


def a_round(warehouse: Warehouse, topic: lithify.Topic) -> None:
    report = compact(warehouse, OracleEngine(warehouse.files), topic.topic_name, RunRequest())
    assert report.changed and not report.failed


@pytest.fixture
def orders(tmp_path: Path) -> lithify.Topic:
    """Two logs' worth of orders, among them a delete, a keyless record, headers and an empty value."""
    lake = lithify.open(str(tmp_path / "lithify-warehouse"))
    topic = lake.create_topic("orders", 2, config={"null.key": "retain"})
    topic.append([lithify.Record(b"o-%d" % n, b"placed", partition=n % 2) for n in range(6)])
    topic.append(
        [
            lithify.Record(b"o-2", b"paid", partition=0, headers=(("by", b"card"), ("note", None))),
            lithify.Record(b"o-4", None, partition=0),
            lithify.Record(None, b"keyless", partition=1),
            lithify.Record(b"o-1", b"", partition=1),
        ]
    )
    return topic


def test_pyiceberg_reads_records_with_their_offsets(orders, tmp_path):
    before = printed(Path(sys.executable), program("all-records-in-pyiceberg"), tmp_path)
    assert before == ["10 records", "3 b'o-2' b'paid'", "4 b'o-4' None"]
    a_round(orders.warehouse, orders)
    after = printed(Path(sys.executable), program("all-records-in-pyiceberg"), tmp_path)
    assert after == ["7 records", "3 b'o-2' b'paid'", "4 b'o-4' None"]


@pytest.mark.engines
def test_duckdb_finds_the_latest_value_of_every_key(orders, tmp_path):
    assert DUCKDB_PYTHON.exists(), "run `scripts/setup dev`"
    latest = ["o-0 placed", "o-1 ", "o-2 paid", "o-3 placed", "o-5 placed"]
    assert printed(DUCKDB_PYTHON, program("one-query-in-duckdb"), tmp_path) == latest
    a_round(orders.warehouse, orders)
    assert printed(DUCKDB_PYTHON, program("one-query-in-duckdb"), tmp_path) == latest
    ours = orders.table().sort_by("key").select(["key", "value"]).to_pylist()
    assert [f"{row['key'].decode()} {row['value'].decode()}" for row in ours] == latest


@pytest.fixture
def latest(orders) -> list[str]:
    """What a view of the latest has, with the year: one record came late."""
    orders.append([lithify.Record(b"o-3", b"late", 1_600_000_000_000, partition=1)])
    year = str(datetime.now(UTC).year)
    return [f"{year} o-0 placed", f"{year} o-1 ", f"{year} o-2 paid", "2020 o-3 late", f"{year} o-5 placed"]


@pytest.mark.parametrize(
    ("anchor", "python"),
    [
        pytest.param("duckdb", DUCKDB_PYTHON, marks=pytest.mark.engines),
        ("pyiceberg", Path(sys.executable)),
    ],
)
def test_a_view_of_the_latest_has_them_before_and_after_a_round(anchor, python, orders, latest, tmp_path):
    source = program(anchor)
    assert printed(python, source, tmp_path) == latest
    a_round(orders.warehouse, orders)
    assert printed(python, source, tmp_path) == latest


A_ROUND_IN_BETWEEN = """
import lithify
assert lithify.open("./lithify-warehouse").topic("orders").compact(spark=spark).changed
spark.catalog.dropTempView("orders_latest")
"""


@pytest.mark.spark
def test_a_view_in_a_session_of_spark_has_them_before_and_after_a_round(latest, tmp_path):
    source = program("spark-sql")
    assert printed(Path(sys.executable), source + A_ROUND_IN_BETWEEN + source, tmp_path) == latest * 2


@pytest.mark.engines
def test_duckdb_reads_every_column_as_it_was_written(orders, tmp_path):
    everything = program("one-query-in-duckdb").partition("latest = ")[0] + (
        'rows = connection.sql(f"SELECT partition, \\"offset\\", timestamp_type, key, value, value_size, '
        "headers FROM iceberg_scan('{metadata}') ORDER BY 1, 2\").fetchall()\n"
        "print(*rows, sep='\\n')\n"
    )
    a_round(orders.warehouse, orders)
    assert printed(DUCKDB_PYTHON, everything, tmp_path) == [
        "(0, 0, 0, b'o-0', b'placed', 6, None)",
        "(0, 3, 0, b'o-2', b'paid', 4, [{'key': 'by', 'value': b'card'}, {'key': 'note', 'value': None}])",
        "(0, 4, 0, b'o-4', None, None, None)",
        "(1, 1, 0, b'o-3', b'placed', 6, None)",
        "(1, 2, 0, b'o-5', b'placed', 6, None)",
        "(1, 3, 0, None, b'keyless', 7, None)",
        "(1, 4, 0, b'o-1', b'', 0, None)",
    ]
