"""The names of a segment's columns, and their numbers in tables and Parquet files; `schema` has their types."""

from __future__ import annotations

PARTITION = "partition"
OFFSET = "offset"
TIMESTAMP = "timestamp"
TIMESTAMP_TYPE = "timestamp_type"
KEY = "key"
VALUE = "value"
VALUE_SIZE = "value_size"
HEADERS = "headers"
LEDGER_ID = "ledger_id"
ENTRY_ID = "entry_id"
BATCH_INDEX = "batch_index"
EVENT_TIME = "event_time"
PASSED_THROUGH = "passed_through"
METADATA = "metadata"

ENVELOPE_COLUMNS = (LEDGER_ID, ENTRY_ID, BATCH_INDEX, EVENT_TIME, PASSED_THROUGH, METADATA)
"""What records of topics with Pulsar's ids have besides: the fields of `Envelope`."""

FIELD_IDS = {
    PARTITION: 1,
    OFFSET: 2,
    TIMESTAMP: 3,
    TIMESTAMP_TYPE: 4,
    KEY: 5,
    VALUE: 6,
    VALUE_SIZE: 7,
    HEADERS: 8,
    "headers.element": 9,
    "headers.element.key": 10,
    "headers.element.value": 11,
}
ENVELOPE_FIELD_IDS = {
    **FIELD_IDS,
    LEDGER_ID: 9,
    ENTRY_ID: 10,
    BATCH_INDEX: 11,
    EVENT_TIME: 12,
    PASSED_THROUGH: 13,
    METADATA: 14,
    "headers.element": 15,
    "headers.element.key": 16,
    "headers.element.value": 17,
}
"""Catalogs number the columns of a new table themselves, those within others last."""


SCAN_COLUMNS = (OFFSET, KEY, VALUE_SIZE)
"""The columns that the key pass reads (C38)."""
