"""How files are reached: folders of a remote warehouse, with a local folder for the bucket, and the cache of files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyarrow.fs import FileSystem, LocalFileSystem, SubTreeFileSystem
from pyiceberg.io.pyarrow import PyArrowFileIO

from lithify.store.iceberg.io import file_cache
from lithify.store.iceberg.io.file_cache import FileCache, Recent
from lithify.store.iceberg.io.folders import DELETIONS_AT_ONCE, delete_files, stored_files

WHEN_S = 1_700_000_000


@pytest.fixture
def remote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What stands in for all of `s3://`: the folder `bucket` in it is `s3://bucket`."""

    def instead(*_: object, **__: object) -> FileSystem:
        return SubTreeFileSystem(str(tmp_path), LocalFileSystem())

    monkeypatch.setattr(PyArrowFileIO, "_initialize_fs", instead)
    return tmp_path


def put(remote: Path, name: str, size: int) -> None:
    path = remote / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * size)
    os.utime(path, (WHEN_S, WHEN_S))


def test_files_are_listed_by_the_paths_that_metadata_has(remote: Path) -> None:
    put(remote, "bucket/lake/t-1/data/partition=0/a.parquet", 7)
    put(remote, "bucket/lake/t-1/metadata/m.json", 3)
    put(remote, "bucket/lake/t-11/data/other.parquet", 1)

    found = sorted((f.path, f.size_bytes, f.modified_ms) for f in stored_files("s3://bucket/lake/t-1", {}))

    assert found == [
        ("s3://bucket/lake/t-1/data/partition=0/a.parquet", 7, WHEN_S * 1000),
        ("s3://bucket/lake/t-1/metadata/m.json", 3, WHEN_S * 1000),
    ]
    assert list(stored_files("s3://bucket/lake/none", {})) == []


def test_files_are_deleted_and_those_that_are_gone_do_not_matter(remote: Path) -> None:
    names = [f"bucket/t/{n}.parquet" for n in range(3 * DELETIONS_AT_ONCE)]
    for name in names[1:]:
        put(remote, name, 1)

    delete_files([f"s3://{name}" for name in names[:-1]], {})

    assert [path.name for path in (remote / "bucket/t").iterdir()] == [Path(names[-1]).name]


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


def test_an_entry_that_is_larger_than_all_that_is_kept_is_not_kept():
    recent = Recent[str, bytes](10, len)
    recent.put("small", b"x")
    recent.put("large", b"x" * 11)
    assert (recent.get("small"), recent.get("large")) == (b"x", None)


def test_what_is_forgotten_is_read_again():
    files = FileCache()
    files.put("a.avro", b"x")
    files.clear()
    assert files.get("a.avro") is None
