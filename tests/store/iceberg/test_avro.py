"""Manifests without a checksum are read to their end or not at all, within a bound (C48)."""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.manifest import ManifestFile

from formats.relocation import AvroParts, Block
from lithify.columnar.files.access import local_path
from lithify.store.iceberg.manifests import avro, writers
from lithify.store.iceberg.manifests.avro import decoded_entries, decoded_list
from support.store.builders import Place, some_records


@pytest.fixture
def stored(iceberg: Place, foreign: Catalog, monkeypatch: pytest.MonkeyPatch) -> tuple[bytes, ManifestFile, bytes]:
    """A manifest list, one manifest that it names, and that manifest's bytes: a block for each entry, as before."""
    monkeypatch.setattr(writers, "ENTRIES_PER_BLOCK", 1)
    state = iceberg.create()
    for key in "abc":
        state = iceberg.append(state, some_records(key))
    iceberg.round(state, keep=lambda r: r.key != b"a")
    table = foreign.load_table(("default", "orders"))
    snapshot = table.current_snapshot()
    assert snapshot is not None
    manifest = max(snapshot.manifests(table.io), key=lambda m: m.manifest_length)
    return content(snapshot.manifest_list), manifest, content(manifest.manifest_path)


def content(path: str) -> bytes:
    return Path(local_path(path) or "").read_bytes()


def test_both_ways_read_the_same(stored: tuple[bytes, ManifestFile, bytes]) -> None:
    listed, manifest, entries = stored
    assert decoded_list(listed, known=False) == decoded_list(listed, known=True)
    paths = [
        [entry.data_file.file_path for entry in decoded_entries(entries, manifest, known=known)]
        for known in (False, True)
    ]
    assert paths[0] == paths[1]


def test_a_file_that_was_cut_is_not_a_shorter_one(stored: tuple[bytes, ManifestFile, bytes]) -> None:
    """But for one that ends where a block does: its length tells (`manifests`)."""
    listed, manifest, entries = stored
    whole = len(decoded_entries(entries, manifest, known=False))
    parts = AvroParts.of(entries)
    assert len(parts.blocks) > 1
    shorter = 0
    for end in range(len(entries)):
        try:
            shorter += len(decoded_entries(entries[:end], manifest, known=False)) != whole
        except Exception:
            continue
    assert shorter <= len(parts.blocks)
    for end in range(0, len(listed), 7):
        with pytest.raises(Exception):  # noqa: B017 - in any way, as long as it fails
            decoded_list(listed[:end], known=False)


def test_a_block_that_unpacks_to_far_too_much_is_refused(
    stored: tuple[bytes, ManifestFile, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    listed, _, _ = stored
    monkeypatch.setattr(avro, "BLOCK_BYTES", 2**20)
    bomb = AvroParts.of(listed)
    with pytest.raises(ValueError, match="unpacks to more than"):
        decoded_list(bomb.written(bomb.header, [Block(3, bytes(2**20 + 1))]), known=False)


@pytest.mark.parametrize("records", [-1, 2**60])
def test_a_block_with_more_records_than_bytes_is_refused(
    records: int, stored: tuple[bytes, ManifestFile, bytes]
) -> None:
    listed, _, _ = stored
    parts = AvroParts.of(listed)
    with pytest.raises(ValueError, match=r"a block of \d+ bytes has"):
        decoded_list(parts.written(parts.header, [Block(records, parts.blocks[0].data)]), known=False)


@pytest.mark.parametrize("number", [b"\xff" * 9 + b"\x01", b"\x80" * 8 + b"\x20", b"\xff" * 40])
def test_lengths_and_counts_of_any_size_end_at_the_end_of_the_file(
    number: bytes, stored: tuple[bytes, ManifestFile, bytes]
) -> None:
    """Put at every place of a block: PyIceberg's own decoder reads beyond the buffer there."""
    _, manifest, entries = stored
    parts = AvroParts.of(entries)
    first = parts.blocks[0]
    for at in range(len(first.data)):
        changed = parts.written(parts.header, [Block(first.records, first.data[:at] + number + first.data[at + 1 :])])
        try:
            decoded_entries(changed, manifest, known=False)
        except (MemoryError, zlib.error):
            raise
        except Exception:
            continue
