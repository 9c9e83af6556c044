"""The commit of an edit: one compare-and-swap of the table's metadata (C6).

    stage   manifests, manifest list ─┐   files that nothing names yet
    record  what the commit closes ───┤   (lithify/versions), likewise
                                      ▼
    swap    assert: this table, main at the snapshot of the edit's version
            then:   snapshot on main, tag of the closed version, tags and snapshots
                    that are not kept any more, state in properties

A crash before the swap leaves unnamed files and nothing else. After it everything is there, as all
of it is one swap of the catalog. Of two committers on one version the second finds main moved; its
record has a name of its own, so it cannot stand in for that of the first.

The swap is sent with `Catalog.commit_table`, not by committing a transaction: that retries with
stale properties and deletes manifests where it believes that the commit failed.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from pyiceberg.catalog import Catalog
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRefType
from pyiceberg.table.update import (
    AssertRefSnapshotId,
    AssertTableUUID,
    RemoveSnapshotRefUpdate,
    RemoveSnapshotsUpdate,
    SetPropertiesUpdate,
    SetSnapshotRefUpdate,
    TableRequirement,
    TableUpdate,
)

from lithify.columnar.access import FileAccess
from lithify.model.log import TopicEdit, TopicState
from lithify.model.report import REPORTS_KEPT
from lithify.ports import CommitUnknownError, StaleVersionError
from lithify.store.iceberg import codec
from lithify.store.iceberg.adapter import SegmentProducer, delete_old_metadata
from lithify.store.iceberg.documents import write_document
from lithify.store.iceberg.layout import version_file, version_record
from lithify.store.iceberg.trouble import moved_on, never_landed, warehouse_error, writing
from lithify.store.iceberg.versions import closing_record, tag


@dataclass(frozen=True, slots=True)
class Swap:
    """One commit, staged: nothing of it counts until it is sent."""

    updates: tuple[TableUpdate, ...]
    requirements: tuple[TableRequirement, ...]


def stage(table: Table, state: TopicState, edit: TopicEdit, access: FileAccess) -> Swap:
    """Writes everything that the commit of `edit` on `state` needs, and says what to swap.

    `table` is at `state`. Raises `WarehouseError` where nothing can be written, `DamagedError`
    where a manifest cannot be read, `ValueError` for an edit that does not fit.
    """
    main = table.metadata.refs[MAIN_BRANCH].snapshot_id
    with writing(str(state.name)):
        producer = SegmentProducer(table, edit, {codec.RUN: edit.run_id})
        adding, _ = producer.staged()
        versions = codec.closed_versions(table.metadata.properties)
        kept = versions
        if edit.remove:
            record = version_record(state.version, producer.snapshot_id)
            write_document(access, version_file(state.location, record), closing_record(state, edit))
            settings = edit.settings or state.settings
            closed = codec.Closed(state.version, edit.time_ms, edit.run_id, record)
            kept = (closed, *versions)[: settings.versions_kept]
    return Swap(
        updates=(
            *adding,  # main comes first: of several assertions on refs PyIceberg keeps the first
            *_tags(versions, kept, main),
            *_expired(table.metadata, producer.snapshot_id, versions, kept, main),
            SetPropertiesUpdate(updates=_properties(table.metadata, edit, kept)),
        ),
        requirements=(
            AssertTableUUID(uuid=table.metadata.table_uuid),
            AssertRefSnapshotId.model_validate({"ref": MAIN_BRANCH, "snapshot-id": main}),
        ),
    )


def send(catalog: Catalog, table: Table, swap: Swap) -> TableMetadata:
    """The new metadata. Raises `StaleVersionError`, `CommitUnknownError` or `WarehouseError`."""
    name = ".".join(table.name())
    try:
        committed = catalog.commit_table(table, swap.requirements, swap.updates).metadata
    except Exception as error:
        if moved_on(error):
            raise StaleVersionError(f"{name}: {error}") from error
        if never_landed(error):
            raise warehouse_error(name, error) from error
        raise CommitUnknownError(f"{name}: {error}") from error
    with suppress(Exception):  # the commit has landed; what is not deleted now is left to `sweep`
        delete_old_metadata(catalog, table, committed)
    return committed


Versions = tuple[codec.Closed, ...]


def _tags(before: Versions, kept: Versions, main: int) -> list[TableUpdate]:
    """The tag on what this commit closes, and the removal of those beyond `versions.kept`."""
    there = {closed.version for closed in before}
    left = {closed.version for closed in kept}
    added: list[TableUpdate] = [
        SetSnapshotRefUpdate.model_validate(
            {"ref-name": tag(version), "type": SnapshotRefType.TAG, "snapshot-id": main}
        )
        for version in sorted(left - there)
    ]
    return [
        *added,
        *(RemoveSnapshotRefUpdate.model_validate({"ref-name": tag(version)}) for version in sorted(there - left)),
    ]


def _expired(
    metadata: TableMetadata, new_snapshot: int, before: Versions, kept: Versions, main: int
) -> list[TableUpdate]:
    """Snapshots that nothing names any more: every commit copies all that there are."""
    dropped = {tag(closed.version) for closed in set(before) - set(kept)}
    named = {ref.snapshot_id for name, ref in metadata.refs.items() if name != MAIN_BRANCH and name not in dropped} | {
        new_snapshot
    }
    if set(kept) - set(before):
        named.add(main)
    # One update for each: catalogs of before Iceberg 1.9 take no more.
    return [
        RemoveSnapshotsUpdate.model_validate({"snapshot-ids": [snapshot.snapshot_id]})
        for snapshot in metadata.snapshots
        if snapshot.snapshot_id not in named
    ]


def _properties(metadata: TableMetadata, edit: TopicEdit, kept: Versions) -> dict[str, str]:
    properties = codec.changed(metadata.next_sequence_number(), edit.settings, edit.logs.values())
    if edit.remove:
        properties |= codec.versions_changed(kept)
    if edit.report_id is not None:
        ids = (edit.report_id, *codec.report_ids(metadata.properties))
        properties |= codec.reports_changed(ids[:REPORTS_KEPT])
    return properties
