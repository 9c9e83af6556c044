"""The only module that leans on private names of PyIceberg, whose version is pinned for it.

`SegmentProducer` makes the snapshot of one commit: it reads every manifest that may name a removed
segment once, and keeps manifests few by merging small ones.

    manifests of a branch [1][1][1] ... [1]   [16 files]   [270 files]
    merged by size class   └──── 16 of one class become one of the next ────┘

so an entry is written again a few times in its life, however many segments there are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from pyiceberg.catalog import Catalog
from pyiceberg.manifest import ManifestEntry, ManifestEntryStatus, ManifestFile
from pyiceberg.table import Table, Transaction
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.snapshots import Operation, Summary
from pyiceberg.table.update import TableRequirement, TableUpdate
from pyiceberg.table.update.snapshot import _SnapshotProducer
from pyiceberg.typedef import EMPTY_DICT

from lithify.model.log import TopicEdit
from lithify.model.segment import Segment
from lithify.store.errors import check_removed
from lithify.store.iceberg.manifests import data_file, may_hold, read_entries, read_manifests

MANIFESTS_PER_CLASS = 16
"""So many manifests with a like number of entries are merged; a class has 16 times the entries of the one before."""


class UnstagedTransaction(Transaction):
    """A transaction in which nothing is ever staged, for a producer that wants one.

    PyIceberg's own copies the whole metadata each of the dozen times that a producer looks at it.
    """

    @property
    def table_metadata(self) -> TableMetadata:
        return self._table.metadata


@dataclass(frozen=True, slots=True)
class Exchange:
    """What an edit takes from the snapshot `head` of a branch and adds to it; None is an empty one."""

    branch: str
    head: int | None
    add: tuple[Segment, ...]
    remove: tuple[Segment, ...]


class SegmentProducer(_SnapshotProducer["SegmentProducer"]):
    """The snapshot that an edit adds to a branch, on the newest one of `table`.

    On another branch than main it has no parent: only then may it have the sequence number of
    main's snapshot of the same commit, which is the version of the topic.
    """

    def __init__(self, table: Table, edit: TopicEdit, exchange: Exchange, summary: dict[str, str]) -> None:
        operation = Operation.OVERWRITE if exchange.remove else Operation.APPEND
        super().__init__(
            operation, UnstagedTransaction(table), table.io, snapshot_properties=summary, branch=exchange.branch
        )
        self._parent_snapshot_id = exchange.head if exchange.branch == MAIN_BRANCH else None
        self._edit = edit
        self._exchange = exchange
        self._kept: list[ManifestFile] = []
        for segment in exchange.add:
            self.append_data_file(data_file(segment))
        for segment in exchange.remove:
            self.delete_data_file(data_file(segment))

    def staged(self) -> tuple[tuple[TableUpdate, ...], tuple[TableRequirement, ...]]:
        """Writes manifests and a manifest list; returns what is to be committed and asserted."""
        return self._commit()

    def _summary(self, snapshot_properties: dict[str, str] = EMPTY_DICT) -> Summary:
        """Its totals go on from those of the branch, also without a parent."""
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
            if not removed or not may_hold(manifest, partitions):
                self._kept.append(manifest)
                continue
            entries = read_entries(self._io, manifest)
            gone = [entry for entry in entries if entry.data_file.file_path in removed]
            deleted += gone
            if not gone:
                self._kept.append(manifest)
            elif len(gone) < len(entries):
                self._kept.append(self._written(e for e in entries if e.data_file.file_path not in removed))
        found = {entry.data_file.file_path for entry in deleted}
        check_removed(self._edit, self._exchange.remove, (s for s in self._exchange.remove if s.path in found))
        return [self._marked(entry, ManifestEntryStatus.DELETED) for entry in deleted]

    def _existing_manifests(self) -> list[ManifestFile]:
        return self._kept

    def _process_manifests(self, manifests: list[ManifestFile]) -> list[ManifestFile]:
        """Merges manifests of earlier commits, class by class, while one is full."""
        ours = [m for m in manifests if m not in self._kept]
        classes: dict[int, list[ManifestFile]] = defaultdict(list)
        for manifest in self._kept:
            classes[_size_class(manifest)].append(manifest)
        level = 0
        while level <= max(classes, default=-1):
            full = classes[level]
            if len(full) >= MANIFESTS_PER_CLASS:
                merged = self._written(entry for manifest in full for entry in read_entries(self._io, manifest))
                classes[level] = []
                classes[max(level + 1, _size_class(merged))].append(merged)
            level += 1
        return [*ours, *(manifest for level in sorted(classes) for manifest in classes[level])]

    def _live_manifests(self) -> list[ManifestFile]:
        """Manifests of the snapshot it goes on from that still name a segment."""
        head = self._exchange.head
        snapshot = None if head is None else self._transaction.table_metadata.snapshot_by_id(head)
        if snapshot is None:
            return []
        manifests = read_manifests(self._io, snapshot.manifest_list)
        return [m for m in manifests if m.has_added_files() or m.has_existing_files()]

    def _written(self, entries: Iterable[ManifestEntry]) -> ManifestFile:
        """A manifest of entries of earlier commits."""
        with self.new_manifest_writer(self.spec(0)) as writer:
            for entry in entries:
                writer.add_entry(self._marked(entry, ManifestEntryStatus.EXISTING))
        return writer.to_manifest_file()

    def _marked(self, entry: ManifestEntry, status: ManifestEntryStatus) -> ManifestEntry:
        deleted = status is ManifestEntryStatus.DELETED
        return ManifestEntry.from_args(
            status=status,
            snapshot_id=self.snapshot_id if deleted else entry.snapshot_id,
            sequence_number=entry.sequence_number,
            file_sequence_number=entry.file_sequence_number,
            data_file=entry.data_file,
        )


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
