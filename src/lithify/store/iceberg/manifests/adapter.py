"""The commit of segments through private names of PyIceberg, whose version is pinned; `avro` uses private readers.

`SegmentProducer` makes the snapshot of one commit: it reads every manifest that may name a removed
segment once, and keeps manifests few by merging small ones.

    manifests of a branch [1][1][1] ... [1]   [16 files]   [270 files]
    merged by size class   └──── 16 of one class become one of the next ────┘

so an entry is rewritten only a few times, for any number of segments.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from pyiceberg.catalog import Catalog
from pyiceberg.io import InputFile, OutputFile
from pyiceberg.manifest import ManifestEntry, ManifestEntryStatus, ManifestFile, write_manifest_list
from pyiceberg.table import Table, Transaction
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRefType
from pyiceberg.table.snapshots import Operation, Snapshot, Summary
from pyiceberg.table.update import AddSnapshotUpdate, SetSnapshotRefUpdate, TableUpdate
from pyiceberg.table.update.snapshot import _new_manifest_list_file_name, _SnapshotProducer
from pyiceberg.typedef import EMPTY_DICT

from lithify.model.segment import Segment
from lithify.model.topic.edit import TopicEdit
from lithify.store.errors import check_removed
from lithify.store.iceberg.io.checksums import LIST, MANIFESTS, ManifestList, Stated
from lithify.store.iceberg.manifests.segment_entries import (
    Manifest,
    checksum_on_trust,
    data_file,
    may_hold,
    read_entries,
    read_manifests,
)
from lithify.store.iceberg.state.topic_codec import RUN

MANIFESTS_PER_CLASS = 16
"""So many manifests of one size class are merged; a class has 16 times the entries of the one before."""


class UnstagedTransaction(Transaction):
    """A transaction in which nothing is ever staged, for a producer that needs one.

    PyIceberg's own copies the whole metadata each of the dozen times that a producer reads it.
    """

    @property
    def table_metadata(self) -> TableMetadata:
        return self._table.metadata


class WholeOutput(OutputFile):
    """Writes to `output` in one piece when it is closed, and calls `note` with its path and these bytes (C48)."""

    def __init__(self, output: OutputFile, note: Callable[[str, bytes], None]) -> None:
        super().__init__(output.location)
        self._output = output
        self._note = note

    def __len__(self) -> int:
        return len(self._output)

    def exists(self) -> bool:
        return self._output.exists()

    def to_input_file(self) -> InputFile:
        return self._output.to_input_file()

    def create(self, overwrite: bool = False) -> Any:
        return _Buffer(self, overwrite)

    def put(self, content: bytes, overwrite: bool) -> None:
        with self._output.create(overwrite=overwrite) as stream:
            stream.write(content)
        self._note(self.location, content)


class _Buffer:
    """Not an `io` stream: Python closes a discarded one, which would write this file."""

    def __init__(self, output: WholeOutput, overwrite: bool) -> None:
        self._output = output
        self._overwrite = overwrite
        self._pieces: list[bytes] = []
        self._size = 0
        self._closed = False

    def write(self, piece: bytes) -> int:
        self._pieces.append(bytes(piece))
        self._size += len(piece)
        return len(piece)

    def tell(self) -> int:
        return self._size

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._output.put(b"".join(self._pieces), self._overwrite)


@dataclass(frozen=True, slots=True)
class Exchange:
    """The segments that an edit removes from the snapshot `head` of a branch and adds to it; None is an empty one."""

    branch: str
    head: int | None
    add: tuple[Segment, ...]
    remove: tuple[Segment, ...]


class SegmentProducer(_SnapshotProducer["SegmentProducer"]):
    """The snapshot that an edit adds to a branch, on the newest one of `table`.

    On another branch than main it has no parent: only then may it have the sequence number of
    main's snapshot of the same commit, which is the version of the topic.
    """

    def __init__(self, table: Table, edit: TopicEdit, exchange: Exchange) -> None:
        operation = Operation.OVERWRITE if exchange.remove else Operation.APPEND
        super().__init__(
            operation,
            UnstagedTransaction(table),
            table.io,
            snapshot_properties={RUN: edit.run_id},
            branch=exchange.branch,
        )
        self._parent_snapshot_id = exchange.head if exchange.branch == MAIN_BRANCH else None
        self._edit = edit
        self._exchange = exchange
        self._kept: list[Manifest] = []
        self._stated: dict[str, Stated] = {}
        for segment in exchange.add:
            self.append_data_file(data_file(segment))
        for segment in exchange.remove:
            self.delete_data_file(data_file(segment))

    def staged(self) -> tuple[Snapshot, tuple[TableUpdate, ...]]:
        """Writes manifests and a manifest list; returns the snapshot, and what is to be committed."""
        metadata = self._transaction.table_metadata
        manifests = self._manifests()
        summary = self._summary(self.snapshot_properties)
        path = self._write_list(metadata, manifests)
        summary[LIST] = str(self._stated[path])
        place = {"snapshot-id": self._snapshot_id, "parent-snapshot-id": self._parent_snapshot_id}
        snapshot = Snapshot.model_validate(
            {
                **place,
                "manifest-list": path,
                "sequence-number": metadata.next_sequence_number(),
                "summary": summary,
                "schema-id": metadata.current_schema_id,
            }
        )
        on_branch = SetSnapshotRefUpdate.model_validate(
            {**place, "ref-name": self._exchange.branch, "type": SnapshotRefType.BRANCH}
        )
        return snapshot, (AddSnapshotUpdate(snapshot=snapshot), on_branch)

    def new_manifest_output(self) -> OutputFile:
        return WholeOutput(super().new_manifest_output(), self._note)

    def _note(self, path: str, content: bytes) -> None:
        self._stated[path] = Stated.of(content)

    def _write_list(self, metadata: TableMetadata, manifests: list[ManifestFile]) -> str:
        """Writes the manifest list, which has the checksums of its manifests; returns its path."""
        name = _new_manifest_list_file_name(self._snapshot_id, 0, self.commit_uuid)
        path = self._transaction._table.location_provider().new_metadata_location(name)
        writing = write_manifest_list(
            format_version=metadata.format_version,
            output_file=WholeOutput(self._io.new_output(path), self._note),
            snapshot_id=self._snapshot_id,
            parent_snapshot_id=self._parent_snapshot_id,
            sequence_number=metadata.next_sequence_number(),
            avro_compression=self._compression,
        )
        checksums = {manifest.path: manifest.checksum for manifest in self._kept}
        checksums |= {written: stated.checksum for written, stated in self._stated.items()}
        writing._meta[MANIFESTS] = " ".join(str(checksums[manifest.manifest_path]) for manifest in manifests)
        with writing as writer:
            writer.add_manifests(manifests)
        return path

    def _summary(self, snapshot_properties: dict[str, str] = EMPTY_DICT) -> Summary:
        """Its totals continue those of the branch, also without a parent."""
        parent = self._parent_snapshot_id
        self._parent_snapshot_id = self._exchange.head
        try:
            return super()._summary(snapshot_properties)
        finally:
            self._parent_snapshot_id = parent

    def _deleted_entries(self) -> list[ManifestEntry]:
        """The base class calls this before `_existing_manifests`; both come from one reading."""
        removed = {segment.path for segment in self._exchange.remove}
        partitions = frozenset(segment.partition for segment in self._exchange.remove)
        deleted: list[ManifestEntry] = []
        for manifest in self._live_manifests():
            if not removed or not may_hold(manifest.file, partitions):
                self._kept.append(manifest)
                continue
            entries = read_entries(self._io, manifest)
            gone = [entry for entry in entries if entry.data_file.file_path in removed]
            deleted += gone
            if not gone:
                self._kept.append(manifest)
            elif len(gone) < len(entries):
                self._kept.append(self._written(e for e in entries if e.data_file.file_path not in removed))
        paths = {entry.data_file.file_path for entry in deleted}
        check_removed(self._edit, self._exchange.remove, (s for s in self._exchange.remove if s.path in paths))
        return [self._marked(entry, ManifestEntryStatus.DELETED) for entry in deleted]

    def _existing_manifests(self) -> list[ManifestFile]:
        return [manifest.file for manifest in self._kept]

    def _process_manifests(self, manifests: list[ManifestFile]) -> list[ManifestFile]:
        """Merges manifests of earlier commits, class by class, while one is full."""
        earlier = {manifest.path for manifest in self._kept}
        classes: dict[int, list[Manifest]] = defaultdict(list)
        for manifest in self._kept:
            classes[_size_class(manifest.file)].append(manifest)
        level = 0
        while level <= max(classes, default=-1):
            full = classes[level]
            if len(full) >= MANIFESTS_PER_CLASS:
                merged = self._written(entry for manifest in full for entry in read_entries(self._io, manifest))
                classes[level] = []
                classes[max(level + 1, _size_class(merged.file))].append(merged)
            level += 1
        new = (manifest for manifest in manifests if manifest.manifest_path not in earlier)
        return [*new, *(manifest.file for level in sorted(classes) for manifest in classes[level])]

    def _live_manifests(self) -> list[Manifest]:
        """Manifests of the snapshot before it that still name a segment, with their checksums."""
        head = self._exchange.head
        snapshot = None if head is None else self._transaction.table_metadata.snapshot_by_id(head)
        if snapshot is None:
            return []
        manifests = read_manifests(self._io, ManifestList.of(snapshot))
        live = (m for m in manifests if m.file.has_added_files() or m.file.has_existing_files())
        # Commits in a format before 3 stored no checksums.
        return [m if m.checksum else Manifest(m.file, checksum_on_trust(self._io, m)) for m in live]

    def _written(self, entries: Iterable[ManifestEntry]) -> Manifest:
        """A manifest of entries of earlier commits."""
        entries = list(entries)  # read before the writer is opened, which hides what fails within it
        with self.new_manifest_writer(self.spec(0)) as writer:
            for entry in entries:
                writer.add_entry(self._marked(entry, ManifestEntryStatus.EXISTING))
        file = writer.to_manifest_file()
        return Manifest(file, self._stated[file.manifest_path].checksum)

    def _marked(self, entry: ManifestEntry, status: ManifestEntryStatus) -> ManifestEntry:
        deleted = status is ManifestEntryStatus.DELETED
        return ManifestEntry.from_args(
            status=status,
            snapshot_id=self.snapshot_id if deleted else entry.snapshot_id,
            sequence_number=entry.sequence_number,
            file_sequence_number=entry.file_sequence_number,
            data_file=entry.data_file,
        )


def first_snapshot(creation: Transaction, run_id: str, segments: tuple[Segment, ...] = ()) -> tuple[Table, Snapshot]:
    """The first snapshot of main, staged with the creation of a table; also the table as it is staged."""
    staged = Table(
        creation._table.name(),
        creation.table_metadata,
        creation._table.metadata_location,
        creation._table.io,
        creation._table.catalog,
    )
    exchange = Exchange(MAIN_BRANCH, None, segments, ())
    snapshot, updates = SegmentProducer(staged, TopicEdit(run_id, 0, {}), exchange).staged()
    creation._apply(updates)
    return staged, snapshot


def delete_old_metadata(catalog: Catalog, table: Table, committed: TableMetadata) -> None:
    """Deletes `metadata.json` files that have left the table's log of them, as a PyIceberg commit does."""
    catalog._delete_old_metadata(table.io, table.metadata, committed)


def _size_class(manifest: ManifestFile) -> int:
    files = (manifest.added_files_count or 0) + (manifest.existing_files_count or 0)
    level = 0
    while files >= MANIFESTS_PER_CLASS:
        files //= MANIFESTS_PER_CLASS
        level += 1
    return level
