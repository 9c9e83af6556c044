"""Reads the segments of a version: the manifests that its list names, as columns (`columns`).

    manifest list ─► manifests that may have a wanted partition ─► decoded before? ─► segments, with their masks
                                                                        └─ no: many at once

Each file is read and its checksum compared each time, and its bytes are decoded once (C48). Manifests without a
checksum, of formats before 3, are decoded with PyIceberg's readers, which take a third of a second to import.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from lithify.columnar.files.access import FileAccess
from lithify.model.segment import Segment
from lithify.store.iceberg.io.checksums import MANIFESTS, ManifestList, Stated
from lithify.store.iceberg.io.file_cache import Recent
from lithify.store.iceberg.manifests.avro_blocks import AvroFile
from lithify.store.iceberg.manifests.columns import MISSING, Columns, Name, columns_of
from lithify.store.iceberg.manifests.mask_entries import MaskEntry, mask_of, masked
from lithify.store.iceberg.manifests.segment_columns import (
    DELETED,
    OF_MASKS,
    OF_SEGMENTS,
    PARTITION,
    STATUS,
    masks_in,
    segments_in,
)
from lithify.store.iceberg.manifests.written import check_written, damage_named

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile, ManifestFile

ENTRIES_KEPT = 100_000
"""Entries of manifests that remain decoded, in all topics of a process: some 70 MB."""
DECODED_BYTES = 16 * 2**20
"""Manifests of so many unpacked bytes, some 40,000 entries, or of one more, are decoded at once."""

_PATH, _LENGTH, _CONTENT, _LOWEST, _HIGHEST = (500,), (501,), (517,), (507, 0, 510), (507, 0, 511)
OF_LISTS = frozenset({_PATH, _LENGTH, _CONTENT, _LOWEST, _HIGHEST})
_INT_BYTES = 4

T = TypeVar("T")
_ByPartition = Mapping[int, tuple[T, ...]]


@dataclass(frozen=True, slots=True)
class Listed:
    """A manifest as a list names it."""

    path: str
    stated: Stated
    of_masks: bool
    lowest: int
    highest: int
    """Partitions of its entries; `MISSING` if it is not known."""
    file: ManifestFile | None = None
    """The same for PyIceberg, which reads one without a checksum."""

    def may_hold(self, partitions: frozenset[int]) -> bool:
        """Whether an entry of one of these partitions can be in the manifest."""
        if MISSING in (self.lowest, self.highest):
            return True
        return any(self.lowest <= partition <= self.highest for partition in partitions)


@dataclass(frozen=True, slots=True)
class _Kind(Generic[T]):
    """What the entries of a manifest are."""

    wanted: frozenset[Name]
    inside: Callable[[Columns], Iterator[T]]
    by_pyiceberg: Callable[[DataFile], T]
    decoded: Recent[str, _ByPartition[T]]
    """The decoded content of a manifest, by the checksum of its bytes."""


def _size(named: _ByPartition[T]) -> int:
    return max(1, sum(map(len, named.values())))


def _segment_of(file: DataFile) -> Segment:
    from lithify.store.iceberg.manifests.segment_entries import segment_of

    return segment_of(file)


SEGMENTS: _Kind[Segment] = _Kind(OF_SEGMENTS, segments_in, _segment_of, Recent(ENTRIES_KEPT, _size))
_MASKS: _Kind[MaskEntry] = _Kind(OF_MASKS, masks_in, mask_of, Recent(ENTRIES_KEPT, _size))


def read_segments(
    access: FileAccess, manifest_list: ManifestList, partitions: Sequence[int] | None
) -> tuple[Segment, ...]:
    """The segments that a manifest list names, by partition and offset; of some partitions only, if asked.

    Raises `DamagedError`, which names the file.
    """
    wanted = None if partitions is None else frozenset(partitions)
    listed = [m for m in _listed(access, manifest_list) if wanted is None or m.may_hold(wanted)]
    segments = _of(wanted, _named(access, (m for m in listed if not m.of_masks), SEGMENTS))
    masks = _of(wanted, _named(access, (m for m in listed if m.of_masks), _MASKS))
    if masks:
        segments = masked(segments, masks)
    return tuple(sorted(segments, key=lambda s: (s.partition, s.base_offset)))


def _of(wanted: frozenset[int] | None, named: Iterable[_ByPartition[T]]) -> list[T]:
    return [
        entry
        for by_partition in named
        for partition in (by_partition if wanted is None else wanted & by_partition.keys())
        for entry in by_partition[partition]
    ]


def _listed(access: FileAccess, manifest_list: ManifestList) -> list[Listed]:
    path, stated = manifest_list.path, manifest_list.stated
    with damage_named(path):
        content = access.read(path)
        if stated is None:
            return _listed_early(content)
        check_written(path, content, stated)
        file = AvroFile.of(content)
        if MANIFESTS not in file.header:
            return _listed_early(content)
        columns, checksums = columns_of([file], OF_LISTS), file.header[MANIFESTS].split()
        lengths = columns.there(_LENGTH).tolist()
        return [
            Listed(path, Stated(length, checksum), content > 0, lowest, highest)
            for path, length, checksum, content, lowest, highest in zip(
                columns.texts(_PATH),
                lengths,
                checksums,
                columns.there(_CONTENT).tolist(),
                columns.bound(_LOWEST, _INT_BYTES).tolist(),
                columns.bound(_HIGHEST, _INT_BYTES).tolist(),
                strict=True,
            )
        ]


def _listed_early(content: bytes) -> list[Listed]:
    """The manifests of a list of before format 3, which has no checksums."""
    from lithify.store.iceberg.manifests.avro import decoded_list

    return [
        Listed(file.manifest_path, Stated(file.manifest_length, None), file.content.value > 0, MISSING, MISSING, file)
        for file in decoded_list(content, known=False)[1]
    ]


def _named(access: FileAccess, manifests: Iterable[Listed], kind: _Kind[T]) -> Iterator[_ByPartition[T]]:
    """What the live entries of manifests say, in no certain order."""
    fresh: dict[str, list[tuple[Listed, AvroFile]]] = defaultdict(list)
    unpacked_bytes = 0
    for manifest in manifests:
        with damage_named(manifest.path):
            content = access.read(manifest.path)
            check_written(manifest.path, content, manifest.stated)
            if manifest.stated.checksum is None:
                yield _read_early(manifest, content, kind)
                continue
            known = kind.decoded.get(manifest.stated.checksum)
            if known is not None:
                yield known
                continue
            file = AvroFile.of(content)
        fresh[file.header["avro.schema"]].append((manifest, file))
        unpacked_bytes += file.unpacked_bytes
        if unpacked_bytes >= DECODED_BYTES:
            yield from (named for files in fresh.values() for named in _decoded(files, kind))
            fresh.clear()
            unpacked_bytes = 0
    yield from (named for files in fresh.values() for named in _decoded(files, kind))


def _decoded(files: Sequence[tuple[Listed, AvroFile]], kind: _Kind[T]) -> Iterator[_ByPartition[T]]:
    """What manifests with one schema say. Raises `DamagedError` of one that cannot be read."""
    try:
        columns = columns_of([file for _, file in files], kind.wanted)
        entries = zip(
            kind.inside(columns), columns.there(STATUS).tolist(), columns.there(PARTITION).tolist(), strict=True
        )
        found = [_live(file.rows, entries) for _, file in files]
    except Exception:
        if len(files) == 1:
            with damage_named(files[0][0].path):
                raise
        yield from (named for one in files for named in _decoded([one], kind))
        return
    for (manifest, _), named in zip(files, found, strict=True):
        assert manifest.stated.checksum is not None  # else PyIceberg reads it
        kind.decoded.put(manifest.stated.checksum, named)
        yield named


def _live(rows: int, entries: Iterator[tuple[T, int, int]]) -> _ByPartition[T]:
    """The next entries, without entries of files that the manifest's commit removed."""
    named: dict[int, list[T]] = defaultdict(list)
    for _ in range(rows):
        entry, status, partition = next(entries)
        if status != DELETED:
            named[partition].append(entry)
    return {partition: tuple(some) for partition, some in named.items()}


def _read_early(manifest: Listed, content: bytes, kind: _Kind[T]) -> _ByPartition[T]:
    from lithify.store.iceberg.manifests.avro import decoded_entries

    assert manifest.file is not None  # as no checksum is stated
    named: dict[int, list[T]] = defaultdict(list)
    for entry in decoded_entries(content, manifest.file, known=False):
        named[entry.data_file.partition[0]].append(kind.by_pyiceberg(entry.data_file))
    return {partition: tuple(some) for partition, some in named.items()}
