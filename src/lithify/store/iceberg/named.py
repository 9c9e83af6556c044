"""Which files of a topic's folder something still names: what `sweep` must leave alone (C6)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pyiceberg.table import Table

from lithify.columnar.access import FileAccess
from lithify.store.iceberg.checksums import ManifestList, check_refs
from lithify.store.iceberg.codec import closed_versions, report_ids
from lithify.store.iceberg.documents import read_document
from lithify.store.iceberg.folders import stored_files
from lithify.store.iceberg.layout import (
    failures_file,
    rates_file,
    report_file,
    source_file,
    version_file,
    versions_folder,
)
from lithify.store.iceberg.manifests import read_entries, read_manifests
from lithify.store.iceberg.trouble import reaching


def named_files(table: Table) -> Iterator[str]:
    """Every file that the metadata of a table names, its own and those of our documents included.

    All snapshots that there are count: the newest version's and those of kept ones. Records of versions
    that are not kept go with the files that they tell about. Raises `DamagedError`.
    """
    metadata = table.metadata
    check_refs(table.metadata_location, metadata)
    yield table.metadata_location
    yield from (entry.metadata_file for entry in metadata.metadata_log)
    yield from (report_file(metadata.location, report_id) for report_id in report_ids(metadata.properties))
    yield from (version_file(metadata.location, closed.record) for closed in closed_versions(metadata.properties))
    yield rates_file(metadata.location)
    yield failures_file(metadata.location)
    yield source_file(metadata.location)
    seen: set[str] = set()
    for snapshot in metadata.snapshots:
        yield snapshot.manifest_list
        for manifest in read_manifests(table.io, ManifestList.of(snapshot)):
            if manifest.path in seen:
                continue
            seen.add(manifest.path)
            yield manifest.path
            yield from (entry.data_file.file_path for entry in read_entries(table.io, manifest))


def stored_records(location: str, access: FileAccess) -> dict[str, Mapping[str, Any]]:
    """The records of versions that were closed, or were to be, by path. Raises `DamagedError`."""
    folder = versions_folder(location)
    with reaching(location):
        paths = [file.path for file in stored_files(folder, access.properties) if file.path.endswith(".json")]
    return {path: read_document(access, path) for path in paths}
