"""What a topic's table must be like before Lithify writes to it: as Lithify created it, except where noted.

    columns          Lithify's, each with its id, name and type     additional columns: ignored
    partition spec   Lithify's is the default one                   sort order: ignored, segments have their own
    format version   2                                              newer ones have fields that Lithify does not write
    properties       none that moves files elsewhere, names a class to open them, or has commits retried

Reading does not need this: readers use only manifests and Parquet files that Lithify wrote.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata

from lithify.errors import WarehouseError
from lithify.model.names import TopicName
from lithify.store.iceberg.layout import ICEBERG_FORMAT, NO_RETRIES
from lithify.store.iceberg.state.topic_codec import settings_in
from lithify.store.iceberg.table_columns import PARTITION_SPEC, schema_of

ELSEWHERE = (
    "write.py-location-provider.impl",
    "write.location-impl",
    "write.metadata.path",
    "write.data.path",
    "write.folder-storage.path",
)
"""Table properties that send files to other places than the topic's folder."""


def check_writable(name: TopicName, metadata: TableMetadata) -> None:
    """Raises `WarehouseError`, with the remedy, for a table that is not as Lithify creates it."""
    for what, hint in _changes(name, metadata):
        raise WarehouseError(f"{name}: {what}", hint=f"{hint}; nothing was changed")


def _changes(name: TopicName, metadata: TableMetadata) -> Iterator[tuple[str, str]]:
    """What was changed, and how to undo it."""
    back = f"restore it with `lithify repair {name}`"
    if metadata.format_version != ICEBERG_FORMAT:
        yield (
            f"the table was upgraded to Iceberg's format version {metadata.format_version}, but Lithify writes "
            f"version {ICEBERG_FORMAT}",
            back,
        )
    setting, value = NO_RETRIES
    if metadata.properties.get(setting) != value:
        yield (
            f"the table property {setting} is no longer {value}, so that retries would lose data",
            f"set {setting}={value} on the table, or {back}",
        )
    for moved in moving(metadata.properties):
        yield (
            f"the table property {moved} would put files outside the topic's folder",
            f"unset it, or {back}",
        )
    for column in changed_columns(metadata.schema(), schema_of(settings_in(metadata.properties))):
        yield f"the table's column {column} is no longer as Lithify created it", back
    if metadata.spec().fields != PARTITION_SPEC.fields:
        yield "the table's partition spec is no longer as Lithify created it", back


def moving(properties: Mapping[str, str]) -> tuple[str, ...]:
    """The table's properties that send files elsewhere."""
    return tuple(name for name in ELSEWHERE if name in properties)


def changed_columns(schema: Schema, own: Schema) -> tuple[str, ...]:
    """Columns of `own` that are gone, renamed, of another type, or required where they were not."""
    return tuple(
        ours.name
        for ours in own.fields
        if (theirs := next((field for field in schema.fields if field.field_id == ours.field_id), None)) is None
        or (theirs.name, theirs.field_type) != (ours.name, ours.field_type)
        or (theirs.required and not ours.required)
    )
