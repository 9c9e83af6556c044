"""Folders of a remote warehouse, with a local folder in the place of the bucket."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyarrow.fs import FileSystem, LocalFileSystem, SubTreeFileSystem
from pyiceberg.io.pyarrow import PyArrowFileIO

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
