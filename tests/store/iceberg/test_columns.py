"""Manifests decoded as columns: the same as PyIceberg reads, and errors for bytes that no manifest has (C48)."""

from __future__ import annotations

import tracemalloc
import zlib
from pathlib import Path

import pytest
from pyiceberg.catalog import Catalog

from lithify.columnar.files.access import local_path
from lithify.errors import DamagedError
from lithify.store.iceberg.io.checksums import ManifestList, Stated
from lithify.store.iceberg.manifests import adapter, avro_blocks, reading
from lithify.store.iceberg.manifests.avro_blocks import AvroFile
from lithify.store.iceberg.manifests.columns import MISSING, Columns, columns_of
from lithify.store.iceberg.manifests.reading import Listed
from lithify.store.iceberg.manifests.segment_columns import OF_SEGMENTS, segments_in
from lithify.store.iceberg.manifests.segment_entries import read_entries, read_manifests, segment_of
from support.store.builders import Place, some_records


@pytest.fixture
def manifests(iceberg: Place, foreign: Catalog) -> list[bytes]:
    """Those of a topic with a round behind it, which some entries were removed by."""
    state = iceberg.create(partitions=2)
    for key in "abc":
        state = iceberg.append(state, some_records(key))
    iceberg.round(state, keep=lambda r: r.key != b"a")
    table = foreign.load_table(("default", "orders"))
    snapshot = table.current_snapshot()
    assert snapshot is not None
    listed = read_manifests(table.io, ManifestList.of(snapshot))
    contents = [Path(local_path(manifest.path) or "").read_bytes() for manifest in listed]
    live = [segment_of(entry.data_file) for manifest in listed for entry in read_entries(table.io, manifest)]
    assert sorted(live, key=lambda s: s.path) == sorted(
        iceberg.store.segments(iceberg.store.load(state.name)), key=lambda s: s.path
    )
    return contents


def test_what_entries_do_not_have_is_missing(manifests: list[bytes]) -> None:
    files = [AvroFile.of(content) for content in manifests]
    columns = columns_of(files, frozenset({(0,), (125, 99), (108, 99)}))
    assert columns.rows == sum(file.rows for file in files) > 1
    assert columns.bytes_of((125, 99)) == [None] * columns.rows
    assert columns.number((108, 99)).tolist() == [MISSING] * columns.rows
    for ask in (Columns.there, Columns.texts, lambda c, n: Columns.bound_there(c, n, 8)):
        with pytest.raises(ValueError, match="an entry has no"):
            ask(columns, (108, 99))
    with pytest.raises(ValueError, match="does not have 3 bytes"):
        columns_of(files, frozenset({(125, 2)})).bound((125, 2), 3)


@pytest.mark.parametrize("number", [b"\xff" * 9 + b"\x01", b"\x80" * 8 + b"\x20", b"\xff" * 40, b"\x01", b""])
def test_lengths_and_counts_of_any_size_end(number: bytes, manifests: list[bytes]) -> None:
    """Put at every place of a block, and of a file."""
    content = manifests[0]
    file = AvroFile.of(content)
    rows, data = file.blocks[0]
    whole, failed = list(segments_in(columns_of([file], OF_SEGMENTS))), 0
    for at in range(len(data)):
        changed = AvroFile(file.header, [(rows, data[:at] + number + data[at + 1 :])])
        try:
            assert len(list(segments_in(columns_of([changed], OF_SEGMENTS)))) == len(whole)
        except Exception:
            failed += 1
    assert failed
    for at in range(0, len(content), 5):
        try:
            columns_of([AvroFile.of(content[:at] + number + content[at + 1 :])], OF_SEGMENTS)
        except Exception:
            continue


def test_many_entries_are_in_a_block(iceberg: Place, foreign: Catalog) -> None:
    """By itself each takes three times as many bytes."""
    iceberg.append(
        iceberg.create(partitions=40), [r._replace(partition=n) for n, r in enumerate(some_records(*"a" * 40))]
    )
    table = foreign.load_table(("default", "orders"))
    snapshot = table.current_snapshot()
    assert snapshot is not None
    (manifest,) = read_manifests(table.io, ManifestList.of(snapshot))
    file = AvroFile.of(Path(local_path(manifest.path) or "").read_bytes())
    assert [rows for rows, _ in file.blocks] == [16, 16, 8]


def test_a_cut_file_is_not_a_shorter_one(manifests: list[bytes]) -> None:
    """But for one that ends where a block does: its length tells."""
    whole, shorter = AvroFile.of(manifests[0]), 0
    for end in range(len(manifests[0])):
        try:
            shorter += columns_of([AvroFile.of(manifests[0][:end])], OF_SEGMENTS).rows < whole.rows
        except Exception:
            continue
    assert shorter <= len(whole.blocks)


@pytest.mark.parametrize("blocks", [1, 8])
def test_a_file_that_unpacks_to_too_much_is_not_unpacked_c48(
    blocks: int, manifests: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one block or in all; what is below the limit is."""
    most, sync = 2**20, manifests[0][-16:]
    monkeypatch.setattr(avro_blocks, "UNPACKED_BYTES", most)
    header = manifests[0][: manifests[0].index(sync) + len(sync)]
    assert b"deflate" in header

    def a_file(unpacked_bytes: int) -> bytes:
        packed = zlib.compress(bytes(unpacked_bytes // blocks), wbits=-zlib.MAX_WBITS)
        size = bytes([len(packed) * 2 & 0x7F | 0x80, len(packed) * 2 >> 7 & 0x7F | 0x80, len(packed) * 2 >> 14])
        return header + blocks * (b"\x02" + size + packed + sync)

    assert AvroFile.of(a_file(most)).unpacked_bytes == most
    content = a_file(64 * most)
    tracemalloc.start()
    with pytest.raises(ValueError, match="unpacks to more than"):
        AvroFile.of(content)
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak_bytes < 4 * most


def test_of_files_that_are_decoded_at_once_the_one_that_cannot_be_is_named(manifests: list[bytes]) -> None:
    whole = AvroFile.of(manifests[0])
    rows, data = whole.blocks[0]
    named = [Listed(path, Stated(1, path), False, MISSING, MISSING) for path in ("good.avro", "bad.avro")]
    with pytest.raises(DamagedError, match=r"^bad\.avro: the file cannot be read"):
        list(
            reading._decoded(
                [(named[0], whole), (named[1], AvroFile(whole.header, [(rows, data[:-1])]))], reading.SEGMENTS
            )
        )


def test_the_largest_manifests_stay_as_they_are(
    iceberg: Place, foreign: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a commit would rewrite the entries of all segments, into a file that is too large to be read."""
    monkeypatch.setattr(adapter, "MANIFESTS_PER_CLASS", 2)
    monkeypatch.setattr(adapter, "LARGEST_CLASS", 2)
    state = iceberg.create()
    for n in range(24):
        state = iceberg.append(state, some_records(f"{n}"))
    table = foreign.load_table(("default", "orders"))
    snapshot = table.current_snapshot()
    assert snapshot is not None
    sizes = [len(read_entries(table.io, m)) for m in read_manifests(table.io, ManifestList.of(snapshot))]
    assert sum(sizes) == 24
    assert 4 <= max(sizes) < 8


@pytest.mark.parametrize("decoded_bytes", [1, 2**24])
def test_all_manifests_are_read_however_many_are_decoded_at_once(
    decoded_bytes: int, iceberg: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "DECODED_BYTES", decoded_bytes)
    state = iceberg.create(partitions=3)
    for n in range(20):
        state = iceberg.append(state, [r._replace(partition=n % 3) for r in some_records(f"{n}")])
    reading.SEGMENTS.decoded.clear()
    found = iceberg.store.segments(state)
    assert sorted((s.partition, s.base_offset) for s in found) == [
        (n % 3, n // 3) for n in sorted(range(20), key=lambda n: (n % 3, n))
    ]
    reading.SEGMENTS.decoded.clear()
    assert iceberg.store.segments(state, [1]) == tuple(s for s in found if s.partition == 1)
