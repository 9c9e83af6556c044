"""The Arrow schemas of segments (docs/reference/format.md has the same tables), one for each kind of topic.

    ordinary                   partition offset timestamp timestamp_type key value value_size headers
    with Pulsar's ids (C52)    the same, and ledger_id entry_id batch_index event_time passed_through metadata

`message.ids`, which never changes, defines of which kind a topic is (`schema_of`). The field ids are the Iceberg
schema's; they are written into the Parquet files, so that engines need no name mapping.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from lithify.columnar.segment.column_names import (
    BATCH_INDEX,
    ENTRY_ID,
    ENVELOPE_COLUMNS,
    ENVELOPE_FIELD_IDS,
    EVENT_TIME,
    FIELD_IDS,
    HEADERS,
    KEY,
    LEDGER_ID,
    METADATA,
    OFFSET,
    PARTITION,
    PASSED_THROUGH,
    SCAN_COLUMNS,
    TIMESTAMP,
    TIMESTAMP_TYPE,
    VALUE,
    VALUE_SIZE,
)
from lithify.model.settings.topic_settings import TopicSettings

__all__ = [
    "BATCH_INDEX",
    "ENTRY_ID",
    "ENVELOPE_COLUMNS",
    "ENVELOPE_FIELD_IDS",
    "ENVELOPE_SCHEMA",
    "EVENT_TIME",
    "FIELD_IDS",
    "HEADERS",
    "HEADERS_TYPE",
    "HEADER_TYPE",
    "KEY",
    "LEDGER_ID",
    "METADATA",
    "OFFSET",
    "PARTITION",
    "PASSED_THROUGH",
    "SCAN_COLUMNS",
    "SEGMENT_SCHEMA",
    "TIMESTAMP",
    "TIMESTAMP_TYPE",
    "VALUE",
    "VALUE_SIZE",
    "schema_in",
    "schema_of",
]


def _field(name: str, kind: pa.DataType, field_id: int | None = None, *, nullable: bool = True) -> pa.Field:
    own = ENVELOPE_FIELD_IDS[name] if field_id is None else field_id
    return pa.field(name, kind, nullable, metadata={"PARQUET:field_id": str(own)})


def _headers_type(ids: Mapping[str, int]) -> pa.DataType:
    header = pa.struct(
        [
            _field("key", pa.string(), ids["headers.element.key"], nullable=False),
            _field("value", pa.binary(), ids["headers.element.value"]),
        ]
    )
    return pa.list_(_field("element", header, ids["headers.element"], nullable=False))


HEADERS_TYPE = _headers_type(FIELD_IDS)
HEADER_TYPE = HEADERS_TYPE.value_type

SEGMENT_SCHEMA = pa.schema(
    [
        _field(PARTITION, pa.int32(), nullable=False),
        _field(OFFSET, pa.int64(), nullable=False),
        _field(TIMESTAMP, pa.int64(), nullable=False),
        _field(TIMESTAMP_TYPE, pa.int32(), nullable=False),
        _field(KEY, pa.binary()),
        _field(VALUE, pa.binary()),
        _field(VALUE_SIZE, pa.int32()),
        _field(HEADERS, HEADERS_TYPE),
    ]
)
"""`headers` is null for a record that has none, never an empty list. `timestamp_type` is Kafka's:
0 CreateTime, 1 LogAppendTime."""

ENVELOPE_SCHEMA = pa.schema(
    [
        *(field for field in SEGMENT_SCHEMA if field.name != HEADERS),
        _field(HEADERS, _headers_type(ENVELOPE_FIELD_IDS)),
        _field(LEDGER_ID, pa.int64(), nullable=False),
        _field(ENTRY_ID, pa.int64(), nullable=False),
        _field(BATCH_INDEX, pa.int32(), nullable=False),
        _field(EVENT_TIME, pa.int64()),
        _field(PASSED_THROUGH, pa.bool_()),
        _field(METADATA, pa.binary()),
    ]
)
"""`batch_index` is -1 for an entry that is not a batch. `passed_through` is true or null, so that its null count in a
manifest shows how many such records there are (C53)."""


def schema_of(settings: TopicSettings) -> pa.Schema:
    """The columns of a topic's segments."""
    return ENVELOPE_SCHEMA if settings.message_ids == "pulsar" else SEGMENT_SCHEMA


def schema_in(names: list[str]) -> pa.Schema:
    """The schema of the kind that columns of these names are of."""
    return ENVELOPE_SCHEMA if LEDGER_ID in names else SEGMENT_SCHEMA
