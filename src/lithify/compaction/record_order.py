"""The order of a key's records: which of two wins (C10, C11).

    strategy    offset       timestamp              header
    order       none         the timestamp          the last header of the name, if it is 8 bytes long

A record wins against those with a lower order; one without an order loses to any that has one;
among equal orders the highest offset wins.
"""

from __future__ import annotations

from lithify.compaction.rules import SurvivorRules
from lithify.model.record import Header, Record

ORDER_BYTES = 8
"""An order in a header is a signed big-endian integer of so many bytes."""

NO_ORDER = -(2**63) - 1
"""Sorts below every order that a header can have."""


def order_of(record: Record, rules: SurvivorRules) -> int:
    """The order by which a record competes; with strategy `offset` all have the same."""
    match rules.strategy:
        case "offset":
            return 0
        case "timestamp":
            assert record.timestamp is not None  # every stored record has one
            return record.timestamp
        case "header":
            return header_order(record.headers, rules.order_header)


def header_order(headers: tuple[Header, ...], name: str) -> int:
    """The integer in the last header of that name, or `NO_ORDER` if there is no such integer."""
    last = next((value for header, value in reversed(headers) if header == name), None)
    if last is None or len(last) != ORDER_BYTES:
        return NO_ORDER
    return int.from_bytes(last, "big", signed=True)
