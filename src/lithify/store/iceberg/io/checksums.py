"""Checksums that a commit stores of every file of a topic, so that a replaced file is detected (C48).

    metadata.json ─ properties ─ lithify.checksum   of all properties of ours, and of the table's identity
                 │            ├─ lithify.table      whose metadata it is
                 │            └─ lithify.refs       of each branch and tag of ours: its snapshot, and thereby
                 └─ snapshot ─── lithify.list       of the manifest list
    manifest list ─ header ───── lithify.manifests  of each manifest that it names, in its order
    segments                     by what their manifest entries say; their pages have checksums

They cover no branches, tags and properties of other programs, and nothing that a catalog service may write in its
own way. Commits in a format before 3 have none and are read without; the first commit adds them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lithify.columnar.files.sealed import CHECKSUM_DIGITS, checksum_of, checksum_of_json, parsed_object
from lithify.errors import DamagedError
from lithify.store.iceberg.io.file_cache import Recent
from lithify.store.iceberg.layout import MAIN_BRANCH

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.snapshots import Snapshot

PREFIX = "lithify."
CHECKSUM = "lithify.checksum"
REFS = "lithify.refs"
TABLE = "lithify.table"
"""Namespace and name of the table, so that its metadata in the place of another one's is detected."""
LIST = "lithify.list"
"""In a snapshot's summary: bytes and checksum of its manifest list."""
MANIFESTS = "lithify.manifests"
"""In the header of a manifest list: checksums of its manifests."""

TAG = re.compile(r"lithify-\d+(-view)?")
"""Tags of retained versions, and of their views."""

FIRST_FORMAT = 3
"""Of the format in which a table without checksums is damaged."""

_TOTALS = "total-"
"""Totals in summaries continue the ones of the snapshot before."""

_CHECKED_CHARACTERS = 16 * 2**20
_CHECKED: Recent[str, tuple[Mapping[str, str], str]] = Recent(
    _CHECKED_CHARACTERS, lambda known: sum(map(len, known[0].values()))
)
"""By the identity of a topic, the properties whose checksum was computed last, and that."""

RESTORE = "restore it from a backup or a replica, or see what `lithify repair` can restore; nothing was changed"


@dataclass(frozen=True, slots=True)
class Stated:
    """Size and checksum of a file, as stored in the file that names it."""

    size_bytes: int
    checksum: str | None
    """None if only the size is stored."""

    @staticmethod
    def of(content: bytes) -> Stated:
        return Stated(len(content), checksum_of(content))

    @staticmethod
    def parse(text: str) -> Stated:
        """The inverse of `str`. Raises `ValueError`."""
        size, _, checksum = text.partition(" ")
        if len(checksum) != CHECKSUM_DIGITS:
            raise ValueError(f"{text!r} is not a size and checksum")
        return Stated(int(size), checksum)

    def __str__(self) -> str:
        return f"{self.size_bytes} {self.checksum}"


@dataclass(frozen=True, slots=True)
class ManifestList:
    """A manifest list as its snapshot names it; `stated` is None in one of before format 3."""

    path: str
    stated: Stated | None

    @staticmethod
    def of(snapshot: Snapshot) -> ManifestList:
        """Raises `DamagedError`."""
        return ManifestList.named(snapshot.manifest_list, _summary(snapshot))

    @staticmethod
    def named(path: str, summary: Mapping[str, str]) -> ManifestList:
        """Raises `DamagedError`."""
        text = summary.get(LIST)
        try:
            return ManifestList(path, None if text is None else Stated.parse(text))
        except ValueError as error:
            raise DamagedError(
                f"{path}: the snapshot's data about the file is damaged: {error}", hint=RESTORE
            ) from error


def ref_checksum(snapshot: Snapshot) -> str:
    """The checksum of what one of our branches or tags points at."""
    return ref_checksum_of(snapshot.snapshot_id, snapshot.sequence_number, snapshot.manifest_list, _summary(snapshot))


def ref_checksum_of(
    snapshot_id: int, sequence_number: int | None, manifest_list: str, summary: Mapping[str, str]
) -> str:
    ours = {name: value for name, value in summary.items() if name.startswith((PREFIX, _TOTALS))}
    return checksum_of_json([snapshot_id, sequence_number, manifest_list, ours])


def refs_there(metadata: TableMetadata, names: Iterable[str]) -> dict[str, str]:
    """What `lithify.refs` would say of branches and tags as they are."""
    there = {name: metadata.snapshot_by_name(name) for name in names}
    return {name: ref_checksum(snapshot) for name, snapshot in there.items() if snapshot is not None}


def sealing(table: Table, properties: Mapping[str, str], refs: Mapping[str, str]) -> dict[str, str]:
    """The properties with the checksum of Lithify's properties, the table's name, and `refs`."""
    stated = {TABLE: ".".join(table.name()), REFS: json.dumps(refs, sort_keys=True, separators=(",", ":"))}
    return stated | {CHECKSUM: _properties_checksum(table.metadata.table_uuid, {**properties, **stated})}


def stated_refs(properties: Mapping[str, str]) -> dict[str, str] | None:
    """By name, the checksums of Lithify's branches and tags by the last commit; None before format 3."""
    text = properties.get(REFS)
    return None if text is None else parsed_object(f"the table property {REFS}", text.encode())


@dataclass(frozen=True, slots=True)
class TableFacts:
    """The part of a table's metadata that the state of a topic is read from."""

    file: str
    """Where the metadata file is, for messages."""
    properties: Mapping[str, str]
    version: int | None
    """Sequence number of main's snapshot."""
    main: str
    """Checksum of main's snapshot."""
    identity: str
    location: str


def check(where: str, table: str, facts: TableFacts, *, needed: bool) -> None:
    """Raises `DamagedError` if properties or main's snapshot of `table` are not as a commit left them.

    With `needed` there must be something to compare with.
    """
    properties = facts.properties
    stated, refs = properties.get(CHECKSUM), stated_refs(properties)
    if stated is None and refs is None and not needed:
        return
    if stated != _properties_checksum(facts.identity, properties):
        raise _changed(where, "the table's properties are not as the last commit left them")
    if properties.get(TABLE) != table:
        its = properties.get(TABLE)
        raise DamagedError(
            f"{where}: the metadata belongs to the table {its}",
            hint=f"something other than Lithify renamed it: run `lithify repair` for that topic to name it {its} again",
        )
    if refs is None or refs.get(MAIN_BRANCH) != facts.main:
        raise _changed(where, "the snapshot of main is not as the last commit left it")


def stands(metadata: TableMetadata, name: str) -> bool:
    """Whether a branch or tag of ours is as the last commit left it."""
    refs, snapshot = stated_refs(metadata.properties), metadata.snapshot_by_name(name)
    if refs is None:
        return snapshot is not None
    return snapshot is not None and refs.get(name) == ref_checksum(snapshot)


def check_refs(where: str, metadata: TableMetadata) -> None:
    """Raises `DamagedError` if a branch or tag of Lithify's is missing or changed."""
    for name in stated_refs(metadata.properties) or ():
        if not stands(metadata, name):
            raise not_as_left(where, name)


def check_branches(where: str, metadata: TableMetadata) -> None:
    """The same of branches alone, which the newest version is at."""
    for name in stated_refs(metadata.properties) or ():
        if not stands(metadata, name) and not TAG.fullmatch(name):
            raise not_as_left(where, name)


def not_as_left(where: str, ref: str) -> DamagedError:
    what = f"the branch or tag {ref} is not as the last commit left it"
    if not TAG.fullmatch(ref):
        return _changed(where, what)
    return DamagedError(
        f"{where}: {what}",
        hint="something other than Lithify removed or moved it: run `lithify repair`, which sets it back if nothing "
        "was committed since; otherwise the retained version cannot be read until it expires, but the newest version "
        "is whole",
    )


def _properties_checksum(identity: object, properties: Mapping[str, str]) -> str:
    ours = {name: value for name, value in properties.items() if name.startswith(PREFIX) and name != CHECKSUM}
    known = _CHECKED.get(str(identity))
    if known is not None and known[0] == ours:  # a commit asks of the same ones a few times
        return known[1]
    checksum = checksum_of_json([str(identity), ours])
    _CHECKED.put(str(identity), (ours, checksum))
    return checksum


def _summary(snapshot: Snapshot) -> Mapping[str, str]:
    return {} if snapshot.summary is None else snapshot.summary.additional_properties


def _changed(where: str, what: str) -> DamagedError:
    return DamagedError(
        f"{where}: {what}",
        hint="run `lithify repair` to restore what the last commit left; nothing was changed",
    )
