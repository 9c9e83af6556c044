"""The columns of a topic's Iceberg table, by the topic's kind, and the properties that it is created with.

Apart from the names of files (`layout`), because these types come with most of PyIceberg.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.sorting import SortField, SortOrder
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
)

from lithify.columnar.segment.column_names import (
    BATCH_INDEX,
    ENTRY_ID,
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
    TIMESTAMP,
    TIMESTAMP_TYPE,
    VALUE,
    VALUE_SIZE,
)
from lithify.model.settings.topic_settings import TopicSettings
from lithify.store.iceberg.layout import ICEBERG_FORMAT, METADATA_FILES_KEPT, NO_RETRIES

TABLE_PROPERTIES = {
    "format-version": str(ICEBERG_FORMAT),
    NO_RETRIES[0]: NO_RETRIES[1],
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": str(METADATA_FILES_KEPT),
    "write.metadata.metrics.default": "truncate(16)",
    f"write.metadata.metrics.column.{VALUE}": "counts",
    f"write.metadata.metrics.column.{HEADERS}": "none",
}


def _columns(ids: Mapping[str, int]) -> tuple[NestedField, ...]:
    header = StructType(
        NestedField(ids["headers.element.key"], "key", StringType(), required=True),
        NestedField(ids["headers.element.value"], "value", BinaryType(), required=False),
    )
    headers = ListType(ids["headers.element"], header, element_required=True)
    return (
        NestedField(ids[PARTITION], PARTITION, IntegerType(), required=True, doc="Number of the log"),
        NestedField(ids[OFFSET], OFFSET, LongType(), required=True, doc="Permanent within the log"),
        NestedField(ids[TIMESTAMP], TIMESTAMP, LongType(), required=True, doc="Epoch milliseconds"),
        NestedField(
            ids[TIMESTAMP_TYPE], TIMESTAMP_TYPE, IntegerType(), required=True, doc="0 CreateTime, 1 LogAppendTime"
        ),
        NestedField(ids[KEY], KEY, BinaryType(), required=False),
        NestedField(ids[VALUE], VALUE, BinaryType(), required=False, doc="Null deletes the key"),
        NestedField(ids[VALUE_SIZE], VALUE_SIZE, IntegerType(), required=False, doc="Bytes; null for a null value"),
        NestedField(ids[HEADERS], HEADERS, headers, required=False),
    )


def _envelope_columns(ids: Mapping[str, int]) -> tuple[NestedField, ...]:
    whole = "True: a whole entry of Pulsar, which no round drops"
    return (
        NestedField(ids[LEDGER_ID], LEDGER_ID, LongType(), required=True, doc="Pulsar's id of the message: ledger"),
        NestedField(ids[ENTRY_ID], ENTRY_ID, LongType(), required=True, doc="Entry in the ledger"),
        NestedField(ids[BATCH_INDEX], BATCH_INDEX, IntegerType(), required=True, doc="In the entry; -1: no batch"),
        NestedField(ids[EVENT_TIME], EVENT_TIME, LongType(), required=False, doc="Epoch milliseconds"),
        NestedField(ids[PASSED_THROUGH], PASSED_THROUGH, BooleanType(), required=False, doc=whole),
        NestedField(ids[METADATA], METADATA, BinaryType(), required=False, doc="The rest of Pulsar's MessageMetadata"),
    )


SCHEMA = Schema(*_columns(FIELD_IDS))
ENVELOPE_SCHEMA = Schema(*_columns(ENVELOPE_FIELD_IDS), *_envelope_columns(ENVELOPE_FIELD_IDS))


def schema_of(settings: TopicSettings) -> Schema:
    """The columns of a topic's table, by its kind."""
    return ENVELOPE_SCHEMA if settings.message_ids == "pulsar" else SCHEMA


PARTITION_SPEC = PartitionSpec(PartitionField(FIELD_IDS[PARTITION], 1000, IdentityTransform(), PARTITION))
SORT_ORDER = SortOrder(SortField(FIELD_IDS[OFFSET], IdentityTransform()))
