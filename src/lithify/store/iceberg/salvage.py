"""What is left of topics in a warehouse, and their recreation: the port that `repair` uses.

    folder ─► metadata files, the newest first, until an intact one ─► what it names, what it does not
                  │ register: the catalog names it again                     │ rebuild: a new table in
                  ▼                                                          ▼ the same folder

It deletes only files left by an interrupted deletion: `sweep` deletes files that no version names.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from pyiceberg.io import load_file_io
from pyiceberg.serializers import FromInputFile
from pyiceberg.table.metadata import TableMetadata

from lithify.columnar.files.access import FileAccess
from lithify.columnar.rewrite import unite
from lithify.columnar.segment.facts import facts_of_file
from lithify.columnar.segment.writer import SegmentSpec
from lithify.errors import ConflictError, DamagedError, LithifyError, RefusedError, UnknownTopicError
from lithify.model.names import TopicName
from lithify.model.remains import Entry, MetadataFile, Remains
from lithify.model.segment import Segment, sizes_of
from lithify.model.topic.state import TopicState
from lithify.store.iceberg import layout
from lithify.store.iceberg.catalog.embedded import CatalogSource
from lithify.store.iceberg.catalog.folder_names import name_of, other_entries, owner
from lithify.store.iceberg.catalog.newest_state import topic_state
from lithify.store.iceberg.catalog.tables import TopicTables
from lithify.store.iceberg.commit.other_commits import other_commit_of
from lithify.store.iceberg.io.checksums import ManifestList, check_branches, check_refs
from lithify.store.iceberg.io.documents import read_document
from lithify.store.iceberg.io.file_cache import FILE_CACHE
from lithify.store.iceberg.io.folders import stored_files
from lithify.store.iceberg.manifests.reading import read_segments
from lithify.store.iceberg.reaching import reaching, writing
from lithify.store.iceberg.state import lineage
from lithify.store.iceberg.state.table_shape import check_writable
from lithify.store.iceberg.state.topic_codec import pinned_location
from lithify.store.iceberg.topic_folders import delete_leftovers, loose_masks

_DATA = re.compile(r"(?:data/)?partition=(\d+)/(\d{20})-[\w-]+\.parquet")
_FOLDER = re.compile(r"(.+?)/(?:metadata|data|lithify)/.*")


class IcebergSalvage:
    """`Salvage` over the catalog of a warehouse, even if the catalog itself is lost."""

    def __init__(self, source: CatalogSource) -> None:
        self._source = source
        self._tables = TopicTables(source)
        self._access = FileAccess(source.io_properties)

    def topics(self) -> tuple[TopicName, ...]:
        """Names of topics that the catalog lists, and of those with folders in the warehouse; no other name of one."""
        folders = {folder: name_of(folder, paths, self._metadata) for folder, paths in self._folders(None).items()}
        listed = () if self._source.lost else self._tables.topics()
        files = dict(self._tables.metadata_files()) if listed else {}
        own = (n for n in listed if folders.get((files.get(n) or "").rpartition("/metadata/")[0]) in (None, n))
        return tuple(sorted({*own, *(name for name in folders.values() if name is not None)}))

    def remains(self, name: TopicName, folder: str | None, metadata: str | None) -> Remains:
        """What is left of a topic, in `folder` if it is given; with `metadata` that file is taken for its newest.

        Raises `UnknownTopicError`, `RefusedError` for several folders, `LocationChangedError` outside of the warehouse.
        """
        FILE_CACHE.clear()
        entry, problem, last = self._entry(name, chosen=metadata is not None)
        if entry is Entry.WHOLE:
            return Remains(last, name, entry)
        if folder is not None or last:
            places = self._around(last) if folder is None else {(at := layout.as_named(folder)): self._listed(at)}
        else:
            places = {f: paths for f, paths in self._folders(name).items() if name_of(f, paths, self._metadata) == name}
            places = {f: paths for f, paths in places.items() if layout.deleted_file(f) not in paths} or places
        for location in places:
            self._tables.check_is_here(name, location)  # C47
        if not places or not any(places.values()):
            raise UnknownTopicError(
                f"{name}: neither the catalog nor a folder of the warehouse has such a topic",
                hint="give the folder of its files with --folder",
            )
        if len(places) > 1:
            raise RefusedError(
                f"{name}: it has {len(places)} folders: {', '.join(sorted(places))}",
                hint="select one with --folder; nothing was changed",
            )
        ((location, paths),) = places.items()
        its = owner(location, paths, self._metadata)
        if its is not None and its != name:
            raise RefusedError(
                f"{name}: its table belongs to the topic {its}, under another name",
                hint=f"run `lithify repair {its}` to name it {its} again; nothing was changed",
            )
        remains = self._with_versions(Remains(location, name, entry, problem), name, paths, last, metadata)
        return self._with_unnamed(remains, paths)

    def register(self, name: TopicName, metadata: str, was: str) -> None:
        """Makes the catalog name this metadata, in place of its entry under the name."""
        catalog = self._source.recovered()
        self._forget(name, was, metadata.rpartition("/metadata/")[0])
        with reaching(self._source.where):
            catalog.create_namespace_if_not_exists((name.stream,))
            catalog.register_table(layout.identifier(name), metadata)
        FILE_CACHE.clear()

    def unite(self, state: TopicState, segments: Sequence[Segment], run_id: str) -> tuple[Segment, ...]:
        """Raises `DamagedError` or `WarehouseError`."""
        with writing(str(state.name)):
            return unite(self._access, SegmentSpec.of(state, segments[0].partition, run_id), segments)

    def rebuild(self, state: TopicState, segments: Sequence[Segment], replaces: Sequence[str], was: str) -> None:
        """Recreates the topic in the folder where its files are, with these logs and segments, as one commit."""
        self._source.recovered()
        self._forget(state.name, was, state.location)
        self._tables.recreate(state, segments, replaces)
        FILE_CACHE.clear()

    def finish_deletion(self, location: str) -> None:
        """Deletes the files left by an interrupted deletion."""
        with writing(location):
            listed = tuple(stored_files(location, self._source.io_properties))
            delete_leftovers(location, listed, self._source.io_properties)

    def _forget(self, name: TopicName, was: str, location: str) -> None:
        """Other names of the topic first. Raises `ConflictError` if the catalog has changed meanwhile."""
        named = [*other_entries(self._tables, location, name), (name, was)]
        if not all(self._tables.forget(entry, file) for entry, file in named):
            raise ConflictError(
                f"{name}: another program repaired, deleted or changed it meanwhile", hint="check it again"
            )

    def _entry(self, name: TopicName, *, chosen: bool) -> tuple[Entry, str, str]:
        """What the catalog has under the name, what is wrong with it, and where its metadata is.

        If the metadata was `chosen`, an entry is wrong as well that lacks commits which the folder has.
        """
        if self._source.lost:
            return Entry.GONE, "the catalog is lost", ""
        last = dict(self._tables.metadata_files()).get(name) or ""
        try:
            table = self._tables.load(name)
            last = table.metadata_location
            state = topic_state(name, table.metadata, last)
            self._check_whole(name, table.metadata, last)
            listed = self._listed(state.location) if chosen else ()
            if listed and (other := other_commit_of(self._tables.load(name), state.location, listed, self._access)):
                return Entry.DAMAGED, other.problem(state.version), last
        except UnknownTopicError as error:
            if last:
                raise
            return Entry.GONE, error.message, ""
        except LithifyError as error:
            return Entry.DAMAGED, error.message.removeprefix(f"{name}: "), last
        return Entry.WHOLE, "", last

    def _around(self, last: str) -> dict[str, list[str]]:
        """The folder of a topic with its files, given its metadata, which other programs may have moved."""
        with suppress(Exception):  # damaged, and so may the name of the folder in it be
            pinned = pinned_location(self._metadata(last).properties)
            if pinned and (paths := self._listed(pinned)):
                return {pinned: paths}
        beside = last.rpartition("/metadata/")[0]
        return {beside: self._listed(beside)}

    def _listed(self, location: str) -> list[str]:
        with reaching(location):
            return [file.path for file in stored_files(location, self._source.io_properties)]

    def _folders(self, name: TopicName | None) -> Mapping[str, list[str]]:
        """The files of every folder that may be a topic's; of `name` only those that may be its."""
        root = self._source.root
        if root is None:
            return {}
        stream = root if name is None else layout.stream_folder(root, name)
        folders: dict[str, list[str]] = defaultdict(list)
        with reaching(root):
            for file in stored_files(stream, self._source.io_properties):
                if folder := _FOLDER.fullmatch(file.path):
                    folders[folder[1]].append(file.path)
        return {folder: paths for folder, paths in folders.items() if not layout.never_created(paths)}

    def _metadata(self, path: str) -> TableMetadata:
        return FromInputFile.table_metadata(load_file_io(dict(self._source.io_properties), path).new_input(path))

    def _with_versions(
        self, remains: Remains, name: TopicName, paths: Sequence[str], last: str, chosen: str | None
    ) -> Remains:
        there, location = frozenset(paths), remains.location
        records = dict(self._records(location, paths))
        remains = replace(
            remains,
            current=last,
            deleted=layout.deleted_file(location) in there,
            closed=lineage.no_longer_named(lineage.landed(records.values(), ())),
            last_closed=lineage.last_closed(records.values()),
        )
        readable, unreadable = lineage.read_all(self._metadata, location, lineage.chosen(location, paths, chosen))
        past = {identity for metadata in readable.values() for identity in lineage.replaced(metadata.properties)}
        files = [MetadataFile(path, number, problem=why) for (path, number), why in unreadable.items()]
        if last.startswith(f"{location}/") and last not in there and (gone := re.search(r"/(\d+)-[^/]*$", last)):
            files.append(MetadataFile(last, int(gone[1]), problem="the file is missing"))
        newest: MetadataFile | None = None
        for (path, number), metadata in readable.items():
            if str(metadata.table_uuid) in past or (newest is not None and number < newest.number):
                continue
            files.append(self._metadata_file(name, path, number, metadata))
            newest = newest or (files[-1] if files[-1].whole else None)
        files = [file for file in files if newest is None or file.number >= newest.number]
        files.sort(key=lambda file: (-file.number, file.path))
        identities = tuple(sorted({str(metadata.table_uuid) for metadata in readable.values()}))
        remains = replace(remains, files=tuple(files), identities=identities)
        if newest is not None:
            metadata = readable[newest.path, newest.number]
            named = self._segments(metadata, None)
            view = self._segments(metadata, layout.VIEW_BRANCH)
            assert newest.state is not None
            runs = lineage.known_runs(metadata, newest.state)
            missing = tuple(path for path in sizes_of(named + view) if path not in there)
            remains = replace(
                remains,
                named=lineage.as_left(named, there),
                view=lineage.as_left(view, there),
                missing=missing,
                missing_masks=frozenset(missing).intersection(s.id for s in named + view if s.mask is not None),
                closed=lineage.no_longer_named(lineage.landed(records.values(), runs)),
            )
        return remains

    def _metadata_file(self, name: TopicName, path: str, number: int, metadata: TableMetadata) -> MetadataFile:
        claims, foreign = lineage.claimed_version(metadata.properties), tuple(lineage.foreign_commits(metadata))
        state, problem, unkept = None, "", False
        try:
            state = topic_state(name, metadata, path)
            self._check_newest(name, metadata)
            unkept = True
            self._check_whole(name, metadata, path)
        except LithifyError as error:
            problem = error.message.removeprefix(f"{name}: ")
        return MetadataFile(path, number, state, problem, claims, foreign, unkept=unkept and bool(problem))

    def _check_whole(self, name: TopicName, metadata: TableMetadata, file: str) -> None:
        """Raises `WarehouseError` or `DamagedError`."""
        self._check_newest(name, metadata)
        check_refs(f"{name}: {file}", metadata)

    def _check_newest(self, name: TopicName, metadata: TableMetadata) -> None:
        """The same of the newest version alone: its shape, its branches, and the segments that they name."""
        check_writable(name, metadata)
        check_branches(str(name), metadata)
        for branch in (None, layout.VIEW_BRANCH):
            self._segments(metadata, branch)

    def _segments(self, metadata: TableMetadata, branch: str | None) -> tuple[Segment, ...]:
        snapshot = metadata.current_snapshot() if branch is None else metadata.snapshot_by_name(branch)
        if snapshot is None:
            return ()
        return read_segments(self._access, ManifestList.of(snapshot), None)

    def _records(self, location: str, paths: Sequence[str]) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Records of closed versions, those that can be read."""
        for path in paths:
            if path.startswith(f"{layout.versions_folder(location)}/") and path.endswith(".json"):
                with suppress(DamagedError):
                    yield path, read_document(self._access, path)

    def _with_unnamed(self, remains: Remains, paths: Sequence[str]) -> Remains:
        """With the segments that the newest version does not name: of those that may continue it, or of all."""
        best = remains.newest
        named = {segment.path for segment in remains.named + remains.view}
        unnamed: list[Segment] = []
        unreadable: list[str] = []
        for path in paths:
            match = _DATA.fullmatch(path[len(remains.location) + 1 :])
            if match is None or path in named:
                continue
            partition, base = int(match[1]), int(match[2])
            if best is not None and best.state is not None and base < _end(best.state, partition):
                continue
            try:
                unnamed.append(facts_of_file(self._access, path, partition))
            except Exception:  # as with metadata
                unreadable.append(path)
        remains = replace(remains, unnamed=tuple(unnamed), unreadable=tuple(unreadable))
        if best is not None:
            return remains
        masked, damaged = loose_masks(self._access, remains.location, paths, unnamed)
        certain = lineage.certain_masks(dict(self._records(remains.location, paths)).values(), masked)
        return replace(remains, masked=masked, certain=certain, unreadable=(*unreadable, *damaged))


def _end(state: TopicState, partition: int) -> int:
    return state.log(partition).log_end_offset if partition in state.partitions else 0
