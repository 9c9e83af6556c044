"""Whose a folder is: other programs rename tables, and a table under another name is not another topic.

catalog: default.renamed ─► <folder>/metadata/00002-….json     lithify.original-name: orders
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from pyiceberg.table.metadata import TableMetadata

from lithify.errors import LithifyError
from lithify.model.names import TopicName, parse_topic
from lithify.store.iceberg.catalog.newest_state import topic_state
from lithify.store.iceberg.catalog.tables import TopicTables
from lithify.store.iceberg.state import lineage, topic_codec

ReadMetadata = Callable[[str], TableMetadata]
"""Reads a metadata file; raises anything where it is damaged."""


def owner(location: str, paths: Sequence[str], read: ReadMetadata) -> TopicName | None:
    """The topic of the newest metadata in a folder that is as a commit left it, whatever the catalog calls it."""
    for path, _ in lineage.metadata_paths(location, paths):
        with suppress(Exception):  # damaged, or changed
            metadata = read(path)
            name = _stated(metadata)
            topic_state(name, metadata, path)
            return name
    return None


def name_of(location: str, paths: Sequence[str], read: ReadMetadata) -> TopicName | None:
    """The topic of a folder: its owner, else by its newest readable metadata, else by the folder's own name."""
    known = owner(location, paths, read)
    if known is not None:
        return known
    for path, _ in lineage.metadata_paths(location, paths):
        with suppress(Exception):  # damaged
            return _stated(read(path))
    stream, _, folder = location.rpartition("/")
    topic, dash, _ = folder.rpartition("-")
    with suppress(LithifyError):
        return parse_topic(f"{stream.rpartition('/')[2]}/{topic}").name if dash else None
    return None


def other_entries(tables: TopicTables, location: str, name: TopicName) -> Iterator[tuple[TopicName, str]]:
    """Entries of the catalog under other names whose metadata is in the folder of `name`."""
    for other, listed in tables.metadata_files():
        file = listed or ""
        if listed is None:  # the catalog tells only when it is asked for the table
            with suppress(LithifyError):
                file = tables.load(other).metadata_location
        if other != name and file.startswith(f"{location}/"):
            yield other, file


def _stated(metadata: TableMetadata) -> TopicName:
    return parse_topic(metadata.properties[topic_codec.ORIGINAL_NAME]).name
