"""Which files of a topic's folder the metadata names, and since when it does not: for `sweep` (C6, C45).

Commits replace metadata files, manifest lists and manifests without a record of it. So sweeps keep one: each
stores when it looked, and for every such file that was named then, the last time that it was.

    looks         t1        t2        t3        now
    a.avro        named     named     -                    unnamed since t3, and a version named it
    b.avro             written  -     -                    unnamed since t2, perhaps never named

The stored time is never earlier than the true one, so files only remain longer. Looks are stored as long as they
are needed, with a minimum time between them, and names until their files are deleted, so that the document remains
small.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyiceberg.io import FileIO
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot

from lithify.columnar.files.access import FileAccess
from lithify.errors.defects import readable
from lithify.model.stored_file import Closing, FileKind, NamedFiles, StoredFile
from lithify.model.topic.state import TopicState
from lithify.ports.documents import DocumentKind
from lithify.store.iceberg.commit.kept_versions import closings
from lithify.store.iceberg.io.checksums import ManifestList, check_refs
from lithify.store.iceberg.io.documents import read_document, read_document_if_there
from lithify.store.iceberg.io.folders import stored_files, within
from lithify.store.iceberg.layout import (
    document_file,
    superseded_file,
    version_file,
    versions_folder,
)
from lithify.store.iceberg.manifests.segment_entries import read_entries, read_manifests
from lithify.store.iceberg.reaching import reaching
from lithify.store.iceberg.state.topic_codec import closed_versions, report_ids

LOOKS_PER_RETENTION = 8
"""Looks stored within `versions.retention.ms`: files remain longer by at most one of that many parts."""


@dataclass(frozen=True, slots=True)
class Looks:
    """Times of looks in epoch ms, ascending, and by name of a metadata file the last of them that saw it named."""

    times_ms: tuple[int, ...] = ()
    named_ms: Mapping[str, int] = field(default_factory=dict)

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Looks:
        return Looks(tuple(int(ms) for ms in data["looked"]), {str(k): int(v) for k, v in data["named"].items()})

    def to_json(self) -> dict[str, Any]:
        return {"looked": list(self.times_ms), "named": dict(self.named_ms)}

    def and_now(self, named: Collection[str], stored: Collection[str], retention_ms: int, now_ms: int) -> Looks | None:
        """With a listing at `now_ms`, by which these are named and stored; None if the last one is recent enough."""
        before = [ms for ms in self.times_ms if ms <= now_ms]  # after a clock went back, its later times are dropped
        if before == list(self.times_ms) and before and now_ms - before[-1] < retention_ms // LOOKS_PER_RETENTION:
            return None
        past = [ms for ms in before if ms <= now_ms - retention_ms]
        times = (*past[-1:], *(ms for ms in before if ms > now_ms - retention_ms), now_ms)
        known = {name: ms for name, ms in self.named_ms.items() if name in stored and ms <= now_ms}
        return Looks(times, {**known, **dict.fromkeys(named, now_ms)})

    def closing(self, name: str, there_ms: int, now_ms: int) -> Closing:
        """Since when an unnamed file that certainly exists since `there_ms` is unnamed."""
        named_ms = self.named_ms.get(name)
        since = max(there_ms, -1 if named_ms is None else named_ms + 1)
        looked = (ms for ms in self.times_ms if since <= ms <= now_ms)
        return Closing(next(looked, now_ms), was_named=named_ms is not None)


def named_files(table: Table, location: str) -> NamedFiles:
    """Every file that the metadata of a table names, with metadata files and Lithify's documents.

    All snapshots count: the newest version's and the retained versions'. Records of expired versions
    are deleted with the files that they list. A file below `location` is spelled from
    there, as in `stored_files`. Raises `DamagedError`.
    """
    of_copies = (DocumentKind.SOURCE, DocumentKind.PROMOTION, DocumentKind.SOURCE_ENDS)
    kinds = (DocumentKind.RATES, DocumentKind.FAILURES, *of_copies)
    earlier = (entry.metadata_file for entry in table.metadata.metadata_log)
    others = (*(document_file(location, kind) for kind in kinds), superseded_file(location), *earlier)
    return NamedFiles(_spelled(location, _needed(table, location)), _spelled(location, others))


def _needed(table: Table, location: str) -> Iterator[str]:
    metadata = table.metadata
    check_refs(table.metadata_location, metadata)
    yield table.metadata_location
    yield from (document_file(location, DocumentKind.REPORT, report) for report in report_ids(metadata.properties))
    yield from (version_file(location, closed.record) for closed in closed_versions(metadata.properties))
    seen: set[str] = set()
    for snapshot in metadata.snapshots:
        yield snapshot.manifest_list
        for manifest in read_manifests(table.io, ManifestList.of(snapshot)):
            if manifest.path in seen:
                continue
            seen.add(manifest.path)
            yield manifest.path
            yield from (entry.data_file.file_path for entry in read_entries(table.io, manifest))


def data_files(io: FileIO, snapshots: Iterable[Snapshot]) -> Iterator[str]:
    """The segments and masks that these name. Raises `DamagedError`."""
    for snapshot in snapshots:
        for manifest in read_manifests(io, ManifestList.of(snapshot)):
            yield from (entry.data_file.file_path for entry in read_entries(io, manifest))


def all_closings(
    state: TopicState, stored: Sequence[StoredFile], access: FileAccess, now_ms: int
) -> dict[str, Closing]:
    """By path of a file, since when no version names it. Raises `DamagedError` or `WarehouseError`."""
    looks = read_looks(state.location, access)
    grace_ms = state.settings.sweep_grace_ms
    of_attempts = {
        file.path: looks.closing(_name(file.path), file.modified_ms + grace_ms, now_ms)
        for file in stored
        if file.kind is FileKind.ATTEMPT
    }
    landed_ms = {file.path: file.modified_ms + grace_ms for file in stored}
    closed_ms = closings(stored_records(state.location, access).items(), landed_ms, now_ms)
    # A record lists its own file as well: its commit may not have landed yet.
    folder = f"{versions_folder(state.location)}/"
    of_files = {path: Closing(ms, was_named=not path.startswith(folder)) for path, ms in closed_ms.items()}
    return of_attempts | {path: of_files[given] for given, path in _spellings(state.location, closed_ms)}


def looks_with(
    state: TopicState, stored: Sequence[StoredFile], named: NamedFiles, access: FileAccess, now_ms: int
) -> Looks | None:
    """The looks of sweeps with one more; None if the last one is recent enough."""
    metadata = {_name(file.path): file.path in named.needed for file in stored if file.kind is FileKind.ATTEMPT}
    still = {name for name, is_named in metadata.items() if is_named}
    looks = read_looks(state.location, access)
    return looks.and_now(still, metadata.keys(), state.settings.versions_retention_ms, now_ms)


def read_looks(location: str, access: FileAccess) -> Looks:
    """Raises `DamagedError` or `WarehouseError`."""
    path = superseded_file(location)
    with reaching(path):
        document = read_document_if_there(access, path)
        with readable(path):
            return Looks() if document is None else Looks.from_json(document)


def stored_records(location: str, access: FileAccess) -> dict[str, Mapping[str, Any]]:
    """The records of versions that were closed, or were to be, by path. Raises `DamagedError`."""
    folder = versions_folder(location)
    with reaching(location):
        paths = [file.path for file in stored_files(folder, access.properties) if file.path.endswith(".json")]
    return {path: read_document(access, path) for path in paths}


def _spelled(location: str, paths: Iterable[str]) -> frozenset[str]:
    return frozenset(path for _, path in _spellings(location, paths))


def _spellings(location: str, paths: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Each path, and the same as `stored_files` spells it."""
    for path in paths:
        relative = within(location, path)
        yield path, path if relative is None else f"{location}/{relative}"


def _name(path: str) -> str:
    return path.rpartition("/")[2]
