"""The commit of segments through private names of PyIceberg, whose version is pinned; `avro` uses private readers.

`SegmentProducer` makes the snapshot of one commit: it reads every manifest that may name a removed
segment once, and keeps manifests few by merging small ones.

    manifests of a branch [1][1][1] ... [1]   [16 files]   [270 files]
    merged by size class   └──── 16 of one class become one of the next ────┘

so an entry is rewritten only a few times, for any number of segments. Manifests of `LARGEST_CLASS` are not changed: a
commit then rewrites few entries, and no manifest becomes too large to be read whole. Masks have manifests of their
own, which are merged in the same way.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from pyiceberg.catalog import Catalog
from pyiceberg.io import OutputFile
from pyiceberg.manifest import (
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    ManifestWriter,
    write_manifest_list,
)
from pyiceberg.partitioning import PartitionSpec
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
from lithify.store.iceberg.manifests.exchange import Exchange
from lithify.store.iceberg.manifests.mask_entries import mask_of
from lithify.store.iceberg.manifests.segment_entries import (
    Manifest,
    checksum_on_trust,
    may_hold,
    read_entries,
    read_manifests,
)
from lithify.store.iceberg.manifests.whole_output import WholeOutput
from lithify.store.iceberg.manifests.writers import MaskWriter, SegmentWriter
from lithify.store.iceberg.state.topic_codec import RUN

MANIFESTS_PER_CLASS = 16
"""So many manifests of one size class are merged; a class has 16 times the entries of the one before."""


LARGEST_CLASS = 3
"""Of manifests that were merged: they have 4,096 entries or more, and fewer than 65,536."""


class UnstagedTransaction(Transaction):
    """A transaction in which nothing is ever staged, for a producer that needs one.

    PyIceberg's own copies the whole metadata each of the dozen times that a producer reads it.
    """

    @property
    def table_metadata(self) -> TableMetadata:
        return self._table.metadata


class SegmentProducer(_SnapshotProducer["SegmentProducer"]):
    """The snapshot that an edit adds to a branch, on the newest one of `table`.

    On another branch than main it has no parent: only then may it have the sequence number of
    main's snapshot of the same commit, which is the version of the topic.
    """

    def __init__(self, table: Table, edit: TopicEdit, exchange: Exchange) -> None:
        self._masks = exchange.added(ManifestContent.DELETES)
        self._removed = {content: exchange.removed(content) for content in ManifestContent}
        operation = Operation.OVERWRITE if exchange.remove or self._masks else Operation.APPEND
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
        self._masks_gone: list[ManifestEntry] = []
        self._stated: dict[str, Stated] = {}
        for file in exchange.added(ManifestContent.DATA):
            self.append_data_file(file)
        for file in self._removed[ManifestContent.DATA]:
            self.delete_data_file(file)

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
        """Its totals continue the branch's, even without a parent, and count masks, which have been written."""
        parent = self._parent_snapshot_id
        self._parent_snapshot_id = self._exchange.head
        self._added_data_files += self._masks
        self._deleted_data_files.update(self._removed[ManifestContent.DELETES])
        try:
            return super()._summary(snapshot_properties)
        finally:
            self._parent_snapshot_id = parent

    def _deleted_entries(self) -> list[ManifestEntry]:
        """The base class calls this before `_existing_manifests`; both come from one reading."""
        deleted: list[ManifestEntry] = []
        named = set[str]()
        masks = dict[str, str]()
        for manifest in self._live_manifests():
            if not self._exchange.remove or not may_hold(manifest.file, self._exchange.partitions):
                self._kept.append(manifest)
                continue
            entries = read_entries(self._io, manifest)
            if manifest.file.content == ManifestContent.DELETES:
                known = map(mask_of, (entry.data_file for entry in entries))
                masks |= {entry.segment: entry.mask.path for entry in known}
                self._masks_gone += self._taken(manifest, entries)
            else:
                named |= {entry.data_file.file_path for entry in entries}
                deleted += self._taken(manifest, entries)
        there = (s for s in self._exchange.remove if s.path in named and masks.get(s.path, s.path) == s.id)
        check_removed(self._edit, self._exchange.remove, there)
        return [self._marked(entry, ManifestEntryStatus.DELETED) for entry in deleted]

    def _taken(self, manifest: Manifest, entries: Sequence[ManifestEntry]) -> list[ManifestEntry]:
        """The entries of a manifest that are to be removed; the others are kept, in this manifest or in a new one."""
        content = manifest.file.content
        removed = {file.file_path for file in self._removed[content]}
        gone = [entry for entry in entries if entry.data_file.file_path in removed]
        if not gone:
            self._kept.append(manifest)
        elif len(gone) < len(entries):
            self._kept.append(self._written(content, (e for e in entries if e.data_file.file_path not in removed)))
        return gone

    def _existing_manifests(self) -> list[ManifestFile]:
        return [manifest.file for manifest in self._kept]

    def _process_manifests(self, manifests: list[ManifestFile]) -> list[ManifestFile]:
        """Writes the masks, and merges manifests of earlier commits."""
        earlier = {manifest.path for manifest in self._kept}
        new = [manifest for manifest in manifests if manifest.manifest_path not in earlier]
        if self._masks or self._masks_gone:
            new.append(self._masks_written())
        merged = (manifest for content in ManifestContent for manifest in self._merged(content))
        return [*new, *(manifest.file for manifest in merged)]

    def _merged(self, content: ManifestContent) -> list[Manifest]:
        """The kept manifests with this content, merged class by class while one is full."""
        classes: dict[int, list[Manifest]] = defaultdict(list)
        for manifest in self._kept:
            if manifest.file.content == content:
                classes[_size_class(manifest.file)].append(manifest)
        level = 0
        while level < LARGEST_CLASS:
            full = classes[level]
            if len(full) >= MANIFESTS_PER_CLASS:
                entries = (entry for manifest in full for entry in read_entries(self._io, manifest))
                merged = self._written(content, entries)
                classes[level] = []
                classes[max(level + 1, _size_class(merged.file))].append(merged)
            level += 1
        return [manifest for level in sorted(classes) for manifest in classes[level]]

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

    def _written(self, content: ManifestContent, entries: Iterable[ManifestEntry]) -> Manifest:
        """A manifest of entries of earlier commits."""
        entries = list(entries)  # read before the writer is opened, which hides what fails within it
        with self._writer(content) as writer:
            for entry in entries:
                writer.add_entry(self._marked(entry, ManifestEntryStatus.EXISTING))
        file = writer.to_manifest_file()
        return Manifest(file, self._stated[file.manifest_path].checksum)

    def _masks_written(self) -> ManifestFile:
        """The manifest of the masks that are added and removed with this commit."""
        with self._writer(ManifestContent.DELETES) as writer:
            for file in self._masks:
                writer.add(ManifestEntry.from_args(sequence_number=None, data_file=file))
            for entry in self._masks_gone:
                writer.add_entry(self._marked(entry, ManifestEntryStatus.DELETED))
        return writer.to_manifest_file()

    def new_manifest_writer(self, spec: PartitionSpec) -> ManifestWriter:
        return self._writer(ManifestContent.DATA)

    def _writer(self, content: ManifestContent) -> ManifestWriter:
        kind = SegmentWriter if content == ManifestContent.DATA else MaskWriter
        return kind(self.spec(0), self.schema(), self.new_manifest_output(), self._snapshot_id, self._compression)

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
