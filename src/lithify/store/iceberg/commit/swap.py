"""The commit of an edit: one compare-and-swap of the table's metadata (C6).

    stage   manifests, manifest list ─┐   files that no version names yet
    record  the version it closes ────┤   (lithify/versions), likewise
                                      ▼
    swap    assert: this table, main at the snapshot of the edit's version
            then:   snapshot on main, snapshot of the views on `compacted`, tags of the
                    closed version, tags and snapshots of expired versions (by
                    their number, or age), state in properties

A crash before the swap leaves only unnamed files. After it everything is committed, as it
is one swap of the catalog. Of two committers on one version the second finds main moved; its
record has a name of its own, so it cannot replace the first one's.

The swap is sent with `Catalog.commit_table`, not by committing a transaction: that retries with
stale properties and deletes manifests where it believes that the commit failed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from pyiceberg.catalog import Catalog
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRefType
from pyiceberg.table.snapshots import Snapshot
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

from lithify.columnar.files.access import FileAccess
from lithify.model.segment import Segment, sizes_of
from lithify.model.topic.edit import TopicEdit, Verb
from lithify.model.topic.state import TopicState
from lithify.ports.store import CommitUnknownError, StaleVersionError
from lithify.rules.lifecycle.expiring import unexpired, without_restored
from lithify.store.errors import check_removed
from lithify.store.iceberg.commit.kept_versions import closing_record, stated_refs_after, tag, view_gone, view_tag
from lithify.store.iceberg.error_mapping import moved_on, never_landed, warehouse_error
from lithify.store.iceberg.io import checksums
from lithify.store.iceberg.io.checksums import ManifestList
from lithify.store.iceberg.io.documents import write_document
from lithify.store.iceberg.layout import VIEW_BRANCH, version_file, version_record
from lithify.store.iceberg.manifests.adapter import SegmentProducer, delete_old_metadata
from lithify.store.iceberg.manifests.exchange import Exchange
from lithify.store.iceberg.manifests.reading import read_segments
from lithify.store.iceberg.reaching import writing
from lithify.store.iceberg.state import topic_codec


@dataclass(frozen=True, slots=True)
class Swap:
    """One staged commit: it has no effect until it is sent."""

    updates: tuple[TableUpdate, ...]
    requirements: tuple[TableRequirement, ...]


def stage(table: Table, state: TopicState, edit: TopicEdit, access: FileAccess) -> Swap:
    """Writes everything that the commit of `edit` on `state` needs, and returns what to swap.

    `table` is at `state`. Raises `WarehouseError` if nothing can be written, `DamagedError`
    where a manifest cannot be read, `ValueError` for an edit that does not fit.
    """
    metadata = table.metadata
    main = metadata.refs[MAIN_BRANCH].snapshot_id
    with writing(str(state.name)):
        exchange = Exchange(MAIN_BRANCH, main, edit.add, edit.remove)
        snapshot, adding = SegmentProducer(table, edit, exchange).staged()
        view_updates, view = _staged_view(table, state, edit)
        versions = topic_codec.closed_versions(metadata.properties)
        dated = tuple(replace(closed, closed_ms=edit.closing_time(closed.closed_ms)) for closed in versions)
        kept = unexpired(dated, edit.expire_closed_before_ms)
        sizes = topic_codec.no_longer_named_bytes(metadata.properties)
        if edit.closes:
            record = version_record(state.version, snapshot.snapshot_id)
            gone = _no_longer_named(table, edit)
            write_document(access, version_file(state.location, record), closing_record(state, edit, list(gone)))
            sizes = {**without_restored(sizes, _restored_bytes(table, edit)), state.version: sum(gone.values())}
            settings = edit.settings or state.settings
            closed = topic_codec.Closed(state.version, edit.closed_at_ms, edit.run_id, record, edit.verb.value)
            kept = (closed, *kept)[: settings.versions_kept]
    before = {name: ref.snapshot_id for name, ref in metadata.refs.items()}
    tags = _tags(versions, kept, before)
    moved = {MAIN_BRANCH: snapshot, **view}
    heads = {name: None if at is None else at.snapshot_id for name, at in moved.items()}
    after = {**before, **heads, **tags}
    properties = topic_codec.edited(metadata.properties, metadata.next_sequence_number(), edit, kept)
    properties |= topic_codec.sized(metadata.properties, sizes, kept)
    properties |= topic_codec.located(metadata.properties, metadata.location)
    refs = stated_refs_after(metadata, [c.version for c in versions], [c.version for c in kept], moved, tags)
    properties |= checksums.sealing(table, {**metadata.properties, **properties}, refs)
    return Swap(
        updates=(
            *adding,  # main comes first: of several assertions on refs PyIceberg keeps the first
            *view_updates,
            *_tag_updates(tags),
            *_expired(metadata, {at for at in after.values() if at is not None}),
            SetPropertiesUpdate(updates=properties),
        ),
        requirements=(
            AssertTableUUID(uuid=metadata.table_uuid),
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
    with suppress(Exception):  # the commit has landed; `sweep` deletes what is left
        delete_old_metadata(catalog, table, committed)
    return committed


Versions = tuple[topic_codec.Closed, ...]


def _staged_view(
    table: Table, state: TopicState, edit: TopicEdit
) -> tuple[tuple[TableUpdate, ...], Mapping[str, Snapshot | None]]:
    """The commit's update of the branch of the views, and its new snapshot if it moves: None if it is dropped.

    The branch exists while any log has a view. Main's assertion guards it: only Lithify's commits, which
    move main as well, move it. A lost branch is never recreated: an empty
    view would say that all keys are deleted (C8).
    """
    before, after = state.logs, ({log.partition: log for log in state.logs} | dict(edit.logs)).values()
    branch = table.metadata.refs.get(VIEW_BRANCH)
    head = None if branch is None else branch.snapshot_id
    if all(log.view is None for log in after):
        check_removed(edit, edit.view_remove, _beside(table, VIEW_BRANCH, edit.view_remove))
        gone = RemoveSnapshotRefUpdate.model_validate({"ref-name": VIEW_BRANCH})
        return ((gone,) if branch is not None else ()), {VIEW_BRANCH: None}
    had = any(log.view is not None for log in before)
    if had and not edit.view_add and not edit.view_remove:
        return (), {}
    if had and not checksums.stands(table.metadata, VIEW_BRANCH):
        raise view_gone(state)
    exchange = Exchange(VIEW_BRANCH, head if had else None, edit.view_add, edit.view_remove)
    snapshot, updates = SegmentProducer(table, edit, exchange).staged()
    return updates, {VIEW_BRANCH: snapshot}


def _no_longer_named(table: Table, edit: TopicEdit) -> dict[str, int]:
    """By path, the sizes of files that the commit removes from the log or the view and the other one does not name."""
    removed, view_removed = sizes_of(edit.remove), sizes_of(edit.view_remove)
    still = {*sizes_of((*edit.add, *edit.view_add))}
    # A file removed from one branch can be in the other one, which is read only for that.
    still |= sizes_of(_beside(table, VIEW_BRANCH, edit.remove)).keys() - view_removed.keys()
    still |= sizes_of(_beside(table, MAIN_BRANCH, edit.view_remove)).keys() - removed.keys()
    return {path: size for path, size in sorted((removed | view_removed).items()) if path not in still}


def _restored_bytes(table: Table, edit: TopicEdit) -> int:
    """The size of the files that only earlier versions named, and that an `undo` names again; no other verb does."""
    if edit.verb is not Verb.UNDO:
        return 0
    added = (*edit.add, *edit.view_add)
    named = sizes_of((*_beside(table, MAIN_BRANCH, added), *_beside(table, VIEW_BRANCH, added)))
    return sum(size for path, size in sizes_of(added).items() if path not in named)


def _beside(table: Table, branch: str, segments: tuple[Segment, ...]) -> tuple[Segment, ...]:
    """The segments that a branch has of the logs of these."""
    snapshot = table.metadata.snapshot_by_name(branch)
    if snapshot is None or not segments:
        return ()
    partitions = sorted({segment.partition for segment in segments})
    return read_segments(FileAccess(table.io.properties), ManifestList.of(snapshot), partitions)


def _tags(before: Versions, kept: Versions, refs: Mapping[str, int]) -> dict[str, int | None]:
    """The tags on the version that this commit closes, and None for each tag of an expired version."""
    there = {closed.version for closed in before}
    left = {closed.version for closed in kept}
    tags: dict[str, int | None] = {}
    for version in sorted(left - there):
        tags[tag(version)] = refs[MAIN_BRANCH]
        if VIEW_BRANCH in refs:
            tags[view_tag(version)] = refs[VIEW_BRANCH]
    for version in sorted(there - left):
        tags |= {name: None for name in (tag(version), view_tag(version)) if name in refs}
    return tags


def _tag_updates(tags: Mapping[str, int | None]) -> Iterator[TableUpdate]:
    for name, snapshot in tags.items():
        if snapshot is None:
            yield RemoveSnapshotRefUpdate.model_validate({"ref-name": name})
        else:
            yield SetSnapshotRefUpdate.model_validate(
                {"ref-name": name, "type": SnapshotRefType.TAG, "snapshot-id": snapshot}
            )


def _expired(metadata: TableMetadata, named: Collection[int]) -> list[TableUpdate]:
    """Snapshots that no branch or tag names any more: every commit copies all that there are."""
    # One update for each: catalogs before Iceberg 1.9 accept no more.
    return [
        RemoveSnapshotsUpdate.model_validate({"snapshot-ids": [snapshot.snapshot_id]})
        for snapshot in metadata.snapshots
        if snapshot.snapshot_id not in named
    ]
