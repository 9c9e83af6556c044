"""Finds commits in a topic's folder that its catalog does not have, before files are deleted (C45).

    the catalog    00007 ─► 00008
    the folder     00007    00008    00009 ─► 00010    two commits that the catalog does not have
                                     00009             one may also be of a commit that lost a race

A catalog that was restored from an earlier state, or is used beside the original, names fewer files than are needed.
A commit that failed has left one metadata file at most, and no commit follows on it. So only metadata that follows
on metadata which the catalog has never named tells of other commits.

The catalog names its last `METADATA_FILES_KEPT` metadata files, and the oldest of them those before it, as far as they
are there: as all are where writers may not delete. It may have named any that is older, and a program that was killed
after its commit may have left it there. Such metadata tells of other commits if it also names a segment that the
catalog does not name, and that no record of a closed version lists.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from pydantic import ValidationError
from pyiceberg.io import load_file_io
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata, TableMetadataUtil

from lithify.columnar.files.access import FileAccess
from lithify.columnar.files.sealed import parsed_object
from lithify.errors import DamagedError
from lithify.model.stored_file import OtherCommit
from lithify.store.iceberg.commit.referenced import data_files, named_files, stored_records
from lithify.store.iceberg.layout import VIEW_BRANCH
from lithify.store.iceberg.reaching import reaching
from lithify.store.iceberg.state.lineage import claimed_version, metadata_paths, replaced

Named = Callable[[], Collection[str]]
"""All files that the catalog's metadata names: read only where they are asked for."""

Content = Mapping[str, Any]
"""Of a metadata file."""


def other_commit_of(table: Table, location: str, listed: Sequence[str], access: FileAccess) -> OtherCommit | None:
    """The same for a table that was loaded after its folder was listed. Raises `WarehouseError`."""
    known = [table.metadata_location, *(entry.metadata_file for entry in table.metadata.metadata_log)]
    look = _Look.at(location, str(table.metadata.table_uuid), listed, known, access)
    return look.newest(lambda: named_files(table, location).all)


def other_commit(
    location: str, identity: str, listed: Sequence[str], named: Collection[str], access: FileAccess
) -> OtherCommit | None:
    """The newest of them in a list of a topic's folder; `named` are the files that its metadata named after that.

    Reads metadata files that may be left of commits that lost races. Raises `WarehouseError`.
    """
    return _Look.at(location, identity, listed, named, access).newest(lambda: named)


@dataclass(frozen=True, slots=True)
class _Look:
    """One listing of the folder of the topic with this identity."""

    location: str
    identity: str
    access: FileAccess
    left: Mapping[str, tuple[str, int]]
    """By name, metadata files that the catalog has not named, as far as known: paths and numbers, the newest first."""
    oldest: int | None
    """The lowest number of those that it has named; None if none is there."""
    stored: frozenset[str]
    """The names of all files."""

    @classmethod
    def at(
        cls, location: str, identity: str, listed: Sequence[str], named: Collection[str], access: FileAccess
    ) -> Self:
        known = {_name(path) for path in named}
        numbered = metadata_paths(location, listed)
        with reaching(location):
            known = _named_before(numbered, known, access)
        left = {_name(path): (path, number) for path, number in numbered if _name(path) not in known}
        oldest = min((number for path, number in numbered if _name(path) in known), default=None)
        return cls(location, identity, access, left, oldest, frozenset(map(_name, listed)))

    def newest(self, named: Named) -> OtherCommit | None:
        if self.oldest is None:
            return None
        with reaching(self.location):
            for path, number, content in self._candidates():
                properties = content.get("properties", {})
                if self.identity in replaced(properties) or (
                    self._follows(content) and (number > self.oldest or self._has_others(content, named))
                ):
                    return OtherCommit(path, claimed_version(properties), frozenset(at for at, _ in self.left.values()))
        return None

    def _candidates(self) -> Iterator[tuple[str, int, Content]]:
        """Commits that may follow on another, and commits that a repair may have begun with; the newest first."""
        numbers = {number for _, number in self.left.values()}
        for path, number in self.left.values():
            if number == 0 or number - 1 in numbers:
                content = _read(path, self.access)
                if content is not None:
                    yield path, number, content

    def _follows(self, content: Content) -> bool:
        """Whether it is a commit of Lithify on one of them; commits of other programs leave the version as it is."""
        earlier = content.get("metadata-log")
        if content.get("table-uuid") != self.identity or not earlier:
            return False
        before = self.left.get(_name(earlier[-1]["metadata-file"]))
        read = None if before is None else _read(before[0], self.access)
        if read is None:
            return False
        version, was = claimed_version(content.get("properties", {})), claimed_version(read.get("properties", {}))
        return version is not None and was is not None and version > was

    def _has_others(self, content: Content, named: Named) -> bool:
        """Whether it names a segment that is there, and that no version of the catalog has named."""
        try:
            metadata: TableMetadata = TableMetadataUtil.parse_obj(dict(content))
            io = load_file_io(dict(self.access.properties), self.location)
            branches = (metadata.current_snapshot(), metadata.snapshot_by_name(VIEW_BRANCH))
            segments = {_name(path) for path in data_files(io, [s for s in branches if s is not None])} & self.stored
            if not segments:
                return False
            closed = stored_records(self.location, self.access).values()
            return not segments <= {
                *map(_name, named()),
                *(_name(path) for record in closed for path in record.get("no_longer_named", ())),
            }
        except (DamagedError, FileNotFoundError, ValidationError):
            return False  # it needs more than is there


def _named_before(numbered: Sequence[tuple[str, int]], named: Collection[str], access: FileAccess) -> set[str]:
    """The names of the catalog's metadata files, also of earlier ones, as those that are there tell."""
    names, last = {*named}, ""
    for path, _ in numbered:
        if last and _name(path) not in names:
            content = _read(last, access) or {}
            names |= {_name(earlier["metadata-file"]) for earlier in content.get("metadata-log", ())}
            last = ""
        if _name(path) in names:
            last = path
    return names


def _read(path: str, access: FileAccess) -> Content | None:
    """None for a file that was cut off, or deleted meanwhile."""
    try:
        return parsed_object(path, access.read(path))
    except (DamagedError, FileNotFoundError):
        return None


def _name(path: str) -> str:
    return path.rpartition("/")[2]
