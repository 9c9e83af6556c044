"""Which files are kept in memory, and how much of it they take."""

from __future__ import annotations

import pytest

from lithify.store.iceberg.io import file_cache
from lithify.store.iceberg.io.file_cache import FileCache


@pytest.mark.parametrize(
    ("name", "taken"),
    [
        ("metadata/00001-6f0c.metadata.json", True),
        ("metadata/snap-1-0-6f0c.avro", True),
        ("metadata/6f0c-m0.avro", True),
        ("lithify/failures.json", False),
        ("lithify/rates.json", False),
        ("data/partition=0/00000000000000000000-run-0.parquet", False),
    ],
)
def test_only_files_that_are_written_once_are_taken(name, taken):
    assert FileCache.takes(f"s3://bucket/lake/orders/{name}") is taken


def test_the_latest_are_kept_within_the_bound(monkeypatch):
    monkeypatch.setattr(file_cache, "MEMORY_BYTES", 100)
    files = FileCache()
    for number in range(10):
        files.put(f"{number}.avro", b"x" * 30)
    assert [number for number in range(10) if files.get(f"{number}.avro")] == [7, 8, 9]


def test_a_large_file_pushes_nothing_out(monkeypatch):
    monkeypatch.setattr(file_cache, "FILE_BYTES", 50)
    files = FileCache()
    files.put("small.avro", b"x")
    files.put("large.avro", b"x" * 51)
    assert files.get("small.avro") == b"x"
    assert files.get("large.avro") is None


def test_what_is_forgotten_is_read_again():
    files = FileCache()
    files.put("a.avro", b"x")
    files.clear()
    assert files.get("a.avro") is None
