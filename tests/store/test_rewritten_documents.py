"""Documents that are rewritten in an object store while they are read: no read is torn, and none is called damaged."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyarrow.fs import FileSystem, LocalFileSystem, SubTreeFileSystem
from pyiceberg.io.pyarrow import PyArrowFileIO

from lithify.columnar.files.access import FileAccess
from lithify.columnar.files.looks import BLOCK_BYTES, LOOKS
from lithify.columnar.files.sealed import sealed
from lithify.columnar.pace import read_cleaners, read_rates
from lithify.errors import DamagedError, WarehouseError
from lithify.model.settings.rates import Rates, RatesDocument
from lithify.store.iceberg.io.documents import read_document, read_document_if_there, write_document
from lithify.store.iceberg.io.remote_io import IMPLEMENTATION
from support.servers.rewritten_s3 import RewrittenObject, a_rewritten_object

PATH = "s3://bucket/lake/t-1/lithify/failures.json"
SHORT, LONG = sealed(PATH, {"failures": 1}), sealed(PATH, {"failures": 1, "more": "x" * 500})


@pytest.fixture(scope="module")
def endpoint() -> Iterator[RewrittenObject]:
    with a_rewritten_object() as found:
        yield found


@pytest.fixture
def access(endpoint: RewrittenObject) -> FileAccess:
    return FileAccess({**endpoint.properties(), "py-io-impl": IMPLEMENTATION})


@pytest.mark.parametrize("rewritings", [1, LOOKS - 2])
@pytest.mark.parametrize("versions", [(SHORT, LONG), (LONG, SHORT)], ids=["longer", "shorter"])
def test_a_read_that_meets_rewritings_returns_a_version_that_was_written(
    rewritings: int, versions: tuple[bytes, bytes], endpoint: RewrittenObject, access: FileAccess
) -> None:
    written = [versions[n % 2] for n in range(rewritings + 1)]
    for read in (read_document, read_document_if_there):
        endpoint.rewrite(written)
        found = read(access, PATH)
        assert sealed(PATH, found) in versions  # type: ignore[arg-type]


def test_rates_and_cleaners_are_read_whole_too(endpoint: RewrittenObject, access: FileAccess) -> None:
    path = "s3://bucket/lake/.lithify/rates.json"
    limited = RatesDocument("an-id", Rates(1_000_000, 1_000_000))
    other = RatesDocument("another-id-that-is-longer", Rates(None, 1))
    endpoint.rewrite([sealed(path, document.to_json()) for document in (other, limited, limited)])
    assert read_rates(access, path) == limited
    path = "s3://bucket/lake/.lithify/cleaners.json"
    endpoint.rewrite([sealed(path, {"cleaners": n}) for n in (1000, 3, 3)])
    assert read_cleaners(access, path) == 3


def test_one_that_is_rewritten_during_every_look_is_not_called_damaged(
    endpoint: RewrittenObject, access: FileAccess
) -> None:
    endpoint.rewrite([sealed(PATH, {"failures": "x" * n}) for n in range(2 * LOOKS)])
    with pytest.raises(WarehouseError, match="rewritten during each") as raised:
        read_document(access, PATH)
    assert not isinstance(raised.value, DamagedError)
    assert endpoint.looks == LOOKS


@pytest.mark.parametrize("before", [[], [LONG]], ids=["alone", "after a rewriting"])
def test_one_that_stays_damaged_is_said_to_be(
    before: list[bytes], endpoint: RewrittenObject, access: FileAccess
) -> None:
    endpoint.rewrite([*before, SHORT[:-3]])
    with pytest.raises(DamagedError, match=r"failures\.json"):
        read_document(access, PATH)


def test_what_is_written_keeps_its_size_while_it_grows_a_little(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def folder(*_: object, **__: object) -> FileSystem:
        return SubTreeFileSystem(str(tmp_path), LocalFileSystem())

    monkeypatch.setattr(PyArrowFileIO, "_initialize_fs", folder)
    bucket = tmp_path / "documents-by-size"  # of no other test: file systems are kept by bucket
    bucket.mkdir()
    access, path = FileAccess({"py-io-impl": IMPLEMENTATION}), f"s3://{bucket.name}/rates.json"
    sizes = set()
    for size in (1, 500, BLOCK_BYTES // 2):
        write_document(access, path, {"rates": "x" * size})
        text = (bucket / "rates.json").read_bytes()
        assert json.loads(text)["rates"] == "x" * size
        assert read_document(access, path) == {"rates": "x" * size}
        sizes.add(len(text))
    assert sizes == {BLOCK_BYTES}
