"""Which files of a topic's folder are Lithify's own: what it writes, and nothing else."""

from __future__ import annotations

from pathlib import Path
from zipfile import ZipFile

import pytest

from lithify.model.settings.rates import Rates, RatesDocument
from lithify.model.sources.copied_topic import CopiedTopic
from lithify.service.documents import put_failures, put_rates, put_report, put_source
from lithify.store.iceberg.layout import is_ours
from support.store.builders import Place, a_report, some_records

FORMATS = Path(__file__).parents[2] / "formats"


def test_every_file_that_a_topic_leaves_in_its_folder_is_ours(iceberg: Place) -> None:
    state = iceberg.append(iceberg.create(), some_records("a", "b"))
    put_report(iceberg.store, state, "0123456789ab", a_report(1))
    put_failures(iceberg.store, state, {})
    put_source(iceberg.store, state, CopiedTopic("orders", "id"))
    put_rates(iceberg.store, state, RatesDocument("1", Rates()))
    state = iceberg.round(state, keep=lambda record: record.key == b"b")

    paths = [file.path.removeprefix(f"{state.location}/") for file in iceberg.store.stored_files(state)]

    assert len(paths) > 10
    assert [path for path in paths if not is_ours(path)] == []


@pytest.mark.parametrize("stored", sorted(path.name for path in FORMATS.glob("v*.zip")))
def test_so_is_every_file_of_topics_that_were_stored_earlier(stored: str) -> None:
    with ZipFile(FORMATS / stored) as archive:
        names = [name.split("/", 2)[-1] for name in archive.namelist() if name.count("/") > 2]

    assert len(names) > 50
    assert [name for name in names if not is_ours(name)] == []


@pytest.mark.parametrize(
    "path",
    [
        "data/partition=0/00000000000000000007-5cf2a1b0c9d8-12-0.parquet",
        "data/partition=12/00000000000000000007-5cf2a1b0c9d8-3-a1-0.parquet",
        "metadata/00003-2f1e.gz.metadata.json",
        "lithify/versions/00000000000000000003-0a1b.json.4711-140.part",
    ],
)
def test_names_that_a_running_topic_has_for_a_while_are_ours(path: str) -> None:
    assert is_ours(path)


@pytest.mark.parametrize(
    "path",
    [
        "",
        "catalog.db",
        "README.md",
        "notes/data/partition=0/00000000000000000007-5cf2-0.parquet",
        "data/part-00000-2f1e.snappy.parquet",
        "data/partition=0/part-00000.parquet",
        "data/partition=0/00000000000000000007-5cf2-0.parquet.bak",
        "data/partition=0/00000000000000000007-5cf2-0.parquet\n",
        "data/partition=0/../../../other/data/partition=0/00000000000000000007-5cf2-0.parquet",
        "data/partition=x/00000000000000000007-5cf2-0.parquet",
        "data/partition=0/deep/00000000000000000007-5cf2-0.parquet",
        "metadata/20231114_statistics.puffin",
        "metadata/old/00003-2f1e.metadata.json",
        "metadata/",
        "lithify/notes.txt",
        "lithify/versions/a/b.json",
        "/data/partition=0/00000000000000000007-5cf2-0.parquet",
    ],
)
def test_what_others_put_there_is_not(path: str) -> None:
    assert not is_ours(path)
