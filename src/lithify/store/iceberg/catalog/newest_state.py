"""The newest state of a topic from its metadata, with little work per topic for checks of many.

    path ─► metadata.json ─► properties, current snapshot ─► state       no query, no model of the whole
      └── it is missing, damaged, or of another format ─► the usual way, which says why

A table's metadata lists every kept snapshot, and creating objects of them all takes most of the time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lithify.columnar.files.access import FileAccess
from lithify.columnar.files.sealed import parsed_object
from lithify.errors import DamagedError
from lithify.model.names import TopicName
from lithify.model.topic.state import TopicState
from lithify.store.iceberg.io.checksums import (
    RESTORE,
    ManifestList,
    TableFacts,
    not_as_left,
    ref_checksum,
    ref_checksum_of,
    stands,
    stated_refs,
)
from lithify.store.iceberg.io.file_cache import Recent
from lithify.store.iceberg.layout import ICEBERG_FORMAT, MAIN_BRANCH, VIEW_BRANCH
from lithify.store.iceberg.state import topic_codec

if TYPE_CHECKING:
    from pyiceberg.table.metadata import TableMetadata


@dataclass(frozen=True, slots=True)
class Newest:
    """The newest version of a topic as its metadata file has it."""

    state: TopicState
    """It has its manifest lists with it."""
    properties: Mapping[str, str]
    """Of the table."""


@dataclass(frozen=True, slots=True)
class Lists:
    """The manifest lists of a version: of the log, and of the compacted views if there are any."""

    log: ManifestList
    view: ManifestList | None
    """None as well if the branch is not as the last commit left it."""


def named_lists(metadata: TableMetadata, where: str, log: str, view: str) -> Lists | None:
    """What a branch or tag of a version references, and the one of its views; None without the first.

    Raises `DamagedError` if the first is not as the last commit left it.
    """
    snapshot, of_view = metadata.snapshot_by_name(log), metadata.snapshot_by_name(view)
    if log in (stated_refs(metadata.properties) or ()) and not stands(metadata, log):
        raise not_as_left(where, log)
    if snapshot is None:
        return None
    return Lists(
        ManifestList.of(snapshot), ManifestList.of(of_view) if of_view is not None and stands(metadata, view) else None
    )


def topic_state(name: TopicName, metadata: TableMetadata, file: str) -> TopicState:
    """The newest state of a topic, from its table's metadata alone. Raises what `state_of` does."""
    snapshot = metadata.current_snapshot()
    if snapshot != metadata.snapshot_by_name(MAIN_BRANCH):
        snapshot = None
    if snapshot is not None and metadata.next_sequence_number() <= (snapshot.sequence_number or 0):
        raise DamagedError(
            f"{name}: {file}: the last sequence number is lower than the sequence number of main", hint=RESTORE
        )
    version, main = (None, "") if snapshot is None else (snapshot.sequence_number, ref_checksum(snapshot))
    return topic_codec.state_of(
        name,
        TableFacts(file, metadata.properties, version, main, str(metadata.table_uuid), metadata.location),
    )


READ_BYTES = 8 * 2**20
_READ: Recent[tuple[TopicName, str], tuple[bytes, Newest]] = Recent(READ_BYTES, lambda read: len(read[0]))
"""Metadata files that were read last, and what they say: appends and following readers read the newest again and
again."""


def read_newest(access: FileAccess, name: TopicName, where: str) -> Newest | None:
    """What a metadata file says; None if it is missing, of another format, or cannot be read in this way."""
    try:
        content = access.read(where)
    except Exception:  # the usual way reports it
        return None
    known = _READ.get((name, where))
    if known is not None and known[0] == content:
        return known[1]
    newest = _newest(name, where, content)
    if newest is not None:
        _READ.put((name, where), (content, newest))
    return newest


def _newest(name: TopicName, where: str, content: bytes) -> Newest | None:
    try:
        metadata = parsed_object(where, content)
        if metadata["format-version"] != ICEBERG_FORMAT:
            return None  # what it says may mean something else
        snapshots = {snapshot["snapshot-id"]: snapshot for snapshot in metadata["snapshots"]}
        refs, properties = metadata["refs"], metadata["properties"]
        main, version = snapshots[refs[MAIN_BRANCH]["snapshot-id"]], metadata["last-sequence-number"]
        if metadata["current-snapshot-id"] != main["snapshot-id"] or not version >= main["sequence-number"]:
            return None
        checksum, identity = _checksum(main), metadata["table-uuid"]
        facts = TableFacts(where, properties, main["sequence-number"], checksum, identity, metadata["location"])
        state = topic_codec.state_of(name, facts)
        view = snapshots[refs[VIEW_BRANCH]["snapshot-id"]] if VIEW_BRANCH in refs else None
        checksums = stated_refs(properties)
        if view is not None and checksums is not None and checksums.get(VIEW_BRANCH) != _checksum(view):
            view = None
        lists = Lists(_list(main), None if view is None else _list(view))
        return Newest(replace(state, stored_as=lists), properties)
    except Exception:  # damaged bytes fail in any way here; the usual way reports them
        return None


def _checksum(snapshot: Mapping[str, Any]) -> str:
    return ref_checksum_of(
        snapshot["snapshot-id"], snapshot["sequence-number"], snapshot["manifest-list"], snapshot["summary"]
    )


def _list(snapshot: Mapping[str, Any]) -> ManifestList:
    return ManifestList.named(snapshot["manifest-list"], snapshot["summary"])
