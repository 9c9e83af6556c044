"""Converts filters that Spark pushes down to bounds on partition, offset and timestamp.

The bounds skip files and offsets. Spark evaluates every filter again, so one that is ignored or converted
only in part costs reads, but does not change results.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from lithify.columnar.segment.schema import OFFSET, PARTITION, TIMESTAMP
from lithify.model.scan import Filters


def bounds(pushed: Iterable[Filter]) -> Filters:
    """Bounds that all records that match the filters lie within."""
    filters = Filters()
    for one in pushed:
        filters = _narrowed(filters, one)
    return filters


def _narrowed(filters: Filters, pushed: Filter) -> Filters:
    match pushed:
        case EqualTo(attribute=(column,), value=value) | EqualNullSafe(attribute=(column,), value=value):
            return _within(filters, column, [value])
        case In(attribute=(column,), value=values):
            return _within(filters, column, [value for value in values if value is not None])
        case GreaterThan(attribute=(column,), value=value) | GreaterThanOrEqual(attribute=(column,), value=value):
            return _from(filters, column, value)
        case LessThan(attribute=(column,), value=value) | LessThanOrEqual(attribute=(column,), value=value):
            return _up_to(filters, column, value)
        case _:
            return filters


def _within(filters: Filters, column: str, values: list[Any]) -> Filters:
    if not values or any(value is None for value in values):
        return filters
    if column == PARTITION:
        chosen = frozenset(values)
        return replace(filters, partitions=chosen if filters.partitions is None else chosen & filters.partitions)
    if column in (OFFSET, TIMESTAMP):
        return _up_to(_from(filters, column, min(values)), column, max(values))
    return filters


def _from(filters: Filters, column: str, value: Any) -> Filters:
    """Excludes records below `value`, but never `value` itself."""
    if column == OFFSET:
        return replace(filters, min_offset=_max(filters.min_offset, value))
    if column == TIMESTAMP:
        return replace(filters, min_timestamp_ms=_max(filters.min_timestamp_ms, _epoch_ms(value)))
    return filters


def _up_to(filters: Filters, column: str, value: Any) -> Filters:
    if column == OFFSET:
        return replace(filters, end_offset=_min(filters.end_offset, value + 1))
    if column == TIMESTAMP:
        return replace(filters, max_timestamp_ms=_min(filters.max_timestamp_ms, _epoch_ms(value)))
    return filters


def _epoch_ms(time: datetime) -> int:
    """`time` in whole epoch ms, rounded down; without a zone, in the local one of this process."""
    aware = time.astimezone(UTC)
    since = aware - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1000 + since.microseconds // 1000


def _max(known: int | None, value: int) -> int:
    return value if known is None else max(known, value)


def _min(known: int | None, value: int) -> int:
    return value if known is None else min(known, value)
