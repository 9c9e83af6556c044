"""The rules that decide about one record of a round, as numbers that travel to Spark tasks.

`verdict` is the contract for a single record, given whether it wins its key. The oracle
(`survivors.py`) and every fast path must agree with it.

Which of two records of a key wins is decided by their order (C10, C11):

    strategy    offset       timestamp              header
    order       none         the timestamp          the last header of the name, if it is 8 bytes long

A record wins against those with a lower order; one without an order loses to any that has one;
among equal orders the highest offset wins.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from lithify.model.record import Header, Record
from lithify.model.settings.table import ByColumn, ByHeader, Order
from lithify.model.settings.topic_settings import TopicSettings
from lithify.model.topic.log import LogState

ORDER_BYTES = 8
"""An order in a header is a signed big-endian integer of this number of bytes."""

NO_ORDER = -(2**63) - 1
"""Sorts below every order that a header can have."""


class Cause(StrEnum):
    """Why a record below the horizon is dropped. Each loser is counted under the first that applies."""

    BELOW_START = "below_start"
    NO_KEY = "no_key"
    SUPERSEDED = "superseded"
    EXPIRED_TOMBSTONE = "expired_tombstone"
    PAST_RETENTION = "past_retention"


@dataclass(frozen=True, slots=True)
class SurvivorRules:
    """The rules of one round over one log, [log_start, horizon).

    Records with a timestamp below `values_expire_before_ms` are past retention, unless they are
    tombstones (C24); with None, no record is. Without an `order` the offset alone decides which record wins (C10).
    """

    log_start: int
    horizon: int
    keep_keyless: bool
    empty_is_tombstone: bool
    tombstones_expire_below: int
    order: Order | None = None
    values_expire_before_ms: int | None = None
    keep_passed_through: bool = True
    """Whole entries of Pulsar remain, whatever `keep_keyless` says (C53); no table has them."""

    @property
    def is_ordered(self) -> bool:
        """Whether an order decides before the offset does, so that a later record may lose (C10)."""
        return self.order is not None

    def verdict(self, fate: Fate) -> Cause | None:
        """Why a record is dropped, or None if it remains. Its offset is below the horizon."""
        if fate.offset < self.log_start:
            return Cause.BELOW_START  # C26
        if not fate.has_key and not (self.keep_passed_through if fate.passed_through else self.keep_keyless):
            return Cause.NO_KEY  # C16, C53
        if fate.has_key and not fate.wins:
            return Cause.SUPERSEDED  # C9, C10
        if fate.has_key and fate.tombstone:
            expired = fate.offset < self.tombstones_expire_below and not fate.held  # C20
            return Cause.EXPIRED_TOMBSTONE if expired else None  # C18
        if self.values_expire_before_ms is not None and fate.timestamp_ms < self.values_expire_before_ms:
            return Cause.PAST_RETENTION  # C24
        return None


def table_rules(state: LogState, settings: TopicSettings) -> SurvivorRules:
    """The rules that leave the latest value of every live key of a log, or of its view and the backlog from D on."""
    return SurvivorRules(
        log_start=state.compacted_start,
        horizon=state.log_end_offset,
        keep_keyless=False,
        empty_is_tombstone=settings.empty_is_tombstone,
        tombstones_expire_below=state.log_end_offset,
        order=settings.order,
        keep_passed_through=False,
    )


@dataclass(frozen=True, slots=True)
class Fate:
    """The facts of one record that the rules need.

    `held`: it beats a record at or above the horizon (C20), or a chunk of its key remains below (C53).
    """

    offset: int
    timestamp_ms: int
    has_key: bool
    wins: bool
    tombstone: bool
    held: bool = False
    passed_through: bool = False
    """It has no key, and is a whole entry of Pulsar (C53)."""


def order_of(record: Record, rules: SurvivorRules) -> int:
    """The number by which a record competes; if the offset alone decides, all have the same.

    `columnar/keypass/orders.py` and `spark/proof/verdicts.py` say the same of columns.
    """
    match rules.order:
        case None:
            return 0
        case ByColumn(name):
            number: int | None = getattr(record, name)
            assert number is not None  # every stored record has one
            return number
        case ByHeader(name):
            return header_order(record.headers, name)


def header_order(headers: tuple[Header, ...], name: str) -> int:
    """The integer in the last header of that name, or `NO_ORDER` if there is no such integer."""
    last = next((value for header, value in reversed(headers) if header == name), None)
    if last is None or len(last) != ORDER_BYTES:
        return NO_ORDER
    return int.from_bytes(last, "big", signed=True)
