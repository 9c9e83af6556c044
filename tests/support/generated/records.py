"""Hypothesis strategies for records that are hard to compact: whatever keys and values may be."""

from __future__ import annotations

from hypothesis import strategies as st

from lithify.model.record import Record
from support.generated.logs import a_record

HARD_KEYS = (
    None,
    b"",
    b"\x00",
    b"a",
    b"a\x00",
    b"ab",
    b"\xff",
    b"\xff\xff",
    b"\xff" * 17,
    b"sixteen-bytes-k1",
    b"sixteen-bytes-k1\x00",
    b"a key that is longer than what is kept inline, 1",
    b"a key that is longer than what is kept inline, 2",
)
"""Null, empty, prefixes of one another, no upper bound, cut by bounds, alike up to their ends."""

values = st.one_of(st.none(), st.just(b""), st.binary(min_size=1, max_size=20), st.just(b"x" * 300))
headers = st.one_of(
    st.just(()),
    st.lists(
        st.tuples(st.sampled_from(["", "h", "ü"]), st.one_of(st.none(), st.binary(max_size=3))), min_size=1, max_size=3
    ).map(tuple),
)


ORDER_HEADER = "v"
order_headers = st.lists(
    st.tuples(
        st.sampled_from([ORDER_HEADER, ORDER_HEADER, "V", "vv"]),
        st.one_of(
            st.none(),
            st.sampled_from([b"", b"\x00" * 7, b"\x00" * 9]),
            st.sampled_from([-(2**63), -1, 0, 1, 2, 2**63 - 1]).map(lambda n: n.to_bytes(8, "big", signed=True)),
        ),
    ),
    max_size=3,
).map(tuple)
"""Headers that hold an order, or almost: of another length, null, under another name, several (C10)."""


def records(keys: tuple[bytes | None, ...] = HARD_KEYS) -> st.SearchStrategy[Record]:
    """A record without an offset; with a key out of a few, so that keys meet."""
    return a_record(
        key=st.sampled_from(keys),
        value=values,
        timestamp=st.integers(0, 2000),
        headers=st.one_of(headers, order_headers, order_headers),
        timestamp_type=st.sampled_from(["CreateTime", "LogAppendTime"]),
    )
