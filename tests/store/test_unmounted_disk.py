"""Where a warehouse's disk was unmounted under a writer, nothing is written into the empty mount point."""

from __future__ import annotations

from pathlib import Path

import pytest

from lithify.columnar.files.access import FileAccess
from lithify.store.iceberg.io.documents import write_document

FOLDER = "default/orders-1"


@pytest.fixture
def unmounted(tmp_path: Path) -> Path:
    mount_point = tmp_path / "warehouse"
    mount_point.mkdir()
    return mount_point


def test_no_segment_is_begun(unmounted: Path) -> None:
    with pytest.raises(FileNotFoundError):
        FileAccess().create(f"{unmounted}/{FOLDER}/data/partition=0/0.parquet")
    assert list(unmounted.iterdir()) == []


def test_no_document_is_begun(unmounted: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_document(FileAccess(), f"{unmounted}/{FOLDER}/metadata/heartbeat.json", {"time": 1})
    assert list(unmounted.iterdir()) == []


def test_folders_of_a_topic_that_is_there_are_made(unmounted: Path) -> None:
    (unmounted / FOLDER).mkdir(parents=True)
    with FileAccess().create(f"{unmounted}/{FOLDER}/data/partition=0/0.parquet") as sink:
        sink.write(b"PAR1")
    write_document(FileAccess(), f"{unmounted}/{FOLDER}/metadata/heartbeat.json", {"time": 1})
    assert sorted(path.name for path in (unmounted / FOLDER).iterdir()) == ["data", "metadata"]
