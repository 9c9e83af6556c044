"""Hypothesis strategies for logs: few keys, so that records meet, and every odd kind of record."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, get_args

from hypothesis import strategies as st

from lithify.model.message import Envelope, MessageId
from lithify.model.record import Record
from lithify.model.settings.table import Strategy, order_of_strategy
from lithify.rules.compaction.survivor_rules import SurvivorRules
from support.chunks import chunk_metadata

ALL_KEYS = (b"a", b"b", b"c", b"aa", b"", b"\x00", b"\xff\xff", None)
KEYS = st.sampled_from(ALL_KEYS)
KEY_POOLS = st.sampled_from(
    [ALL_KEYS, (b"a", b"aa"), (b"b", b"c"), (b"b",), (b"x", b"y", b"z"), (b"\xff\xff",), (None,)]
)
"""Appends of few keys that lie together, so that rounds can pass over segments of others."""

VALUES = st.sampled_from([None, None, b"", b"1", b"22", b"\xff" * 40])
ORDERS = tuple(number.to_bytes(8, "big", signed=True) for number in (-(2**63), -1, 0, 1, 255, 256, 2**63 - 1))
HEADERS = st.one_of(
    st.sampled_from([(), (), (("h", b"1"),), (("h", None), ("h", b"")), (("h", ORDERS[3]), ("h", b"1234567"))]),
    st.sampled_from(ORDERS).map(lambda order: (("h", b"x"), ("g", ORDERS[6]), ("h", order))),
)
"""None, other headers, and orders in the last header `h`, or before it, or not quite."""
STRATEGIES = st.sampled_from(get_args(Strategy))


def a_record(*parts: st.SearchStrategy[Any], **named: st.SearchStrategy[Any]) -> st.SearchStrategy[Record]:
    """Of these fields; the others have their defaults."""

    def made(*given: Any, **named: Any) -> Record:  # for a named tuple itself, `builds` makes up what is left out
        return Record(*given, **named)

    return st.builds(made, *parts, **named)


def some_records(*, most: int = 8) -> st.SearchStrategy[list[Record]]:
    """Records of one append, without offsets, as producers give them."""
    return KEY_POOLS.flatmap(
        lambda keys: st.lists(
            a_record(st.sampled_from(keys), VALUES, st.integers(0, 50), HEADERS), min_size=1, max_size=most
        )
    )


def with_whole_entries(records: Sequence[Record], keys: Sequence[bytes | None] = ALL_KEYS) -> list[Record]:
    """Every second record without a key as an entry that is passed through whole, most of them chunks of these keys."""
    odd = [r.key is None and (r.timestamp or 0) % 2 == 1 for r in records]
    return [r._replace(envelope=_whole_entry(r, keys)) if whole else r for r, whole in zip(records, odd, strict=True)]


def _whole_entry(record: Record, keys: Sequence[bytes | None]) -> Envelope:
    number = (record.timestamp or 0) // 2
    metadata = chunk_metadata(keys[number % len(keys)]) if number % 9 else None
    return Envelope(MessageId(0, 0), metadata=metadata, passed_through=True)


@st.composite
def records_of_a_log(draw: st.DrawFn, most: int = 30) -> list[Record]:
    """All records of one log: ascending offsets with gaps."""
    records = draw(st.lists(a_record(KEYS, VALUES, st.integers(0, 50), HEADERS, st.just(0)), max_size=most))
    steps = draw(st.lists(st.sampled_from([1, 1, 1, 2, 5]), min_size=len(records), max_size=len(records)))
    offsets = accumulate(steps, initial=draw(st.integers(-1, 2)))
    next(offsets)
    return [Record(r.key, r.value, r.timestamp, r.headers, 0, o) for r, o in zip(records, offsets, strict=True)]


def rules_for(records: Sequence[Record]) -> st.SearchStrategy[SurvivorRules]:
    """Rules of a round over these records, with S <= H."""
    end = 1 + (records[-1].offset or 0) if records else 0
    bounds = st.lists(st.integers(0, end), min_size=2, max_size=2).map(sorted)
    return st.builds(
        lambda bounds, keyless, empty, expire, strategy, before_ms: SurvivorRules(
            *bounds,
            keep_keyless=keyless,
            empty_is_tombstone=empty,
            tombstones_expire_below=min(expire, bounds[1]),
            order=order_of_strategy(strategy, "h"),
            values_expire_before_ms=before_ms,
        ),
        bounds,
        st.booleans(),
        st.booleans(),
        st.integers(0, end),
        STRATEGIES,
        st.none() | st.integers(0, 50),
    )
