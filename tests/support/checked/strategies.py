"""What the long random test draws: records that meet, settings that bite, bad luck, and others at work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from hypothesis import strategies as st

from lithify.model.record import Record
from lithify.model.settings.table import Strategy
from support.faults.ports import Kind

MOST_PARTITIONS = 3
ORDER_HEADER = "v"

_RARE_KEYS = [b"e", b"f", b"g", b"h", b"i", b"j", b"k", None]
KEYS = st.sampled_from([*[b"a"] * 8, *[b"b"] * 6, *[b"c"] * 4, *[b"aa", b"d", b""] * 2, *_RARE_KEYS])
"""Few, so that records meet; and rarely none, since that refuses a whole batch in most topics."""
VALUES = st.sampled_from([None, None, b"", b"1", b"22", b"x" * 40, b"x" * 600, b"x" * 600])
ORDERS = st.sampled_from([None, None, -1, 0, 1, 2])
GROUPS = st.sampled_from(["g", "g", "h"])
PARTITIONS = st.integers(0, MOST_PARTITIONS - 1)
SHARES = st.floats(0, 1)
TIMES_MS = st.sampled_from([-60, -45, -30, -30, -15, -15, 0, 0, 1, 15, 30])
"""Times go in steps of 15 ms, and so do settings and the clock: what is just old enough is met often."""

CLOCK_MOVES_MS = st.sampled_from([15, 15, 30, 30, 1, 100, -15, -40])
GRACE_MS = 60_000
DAYS_MS = 3 * 86_400_000
PAUSES_MS = st.sampled_from([0, 0, 0, 15, 30, -15, GRACE_MS + 1, GRACE_MS + 1, DAYS_MS])
"""How long a verb is paused: no time, moments, beyond the grace of a sweep, or days."""
LONG_MS = st.sampled_from([GRACE_MS + 1, DAYS_MS])
LOGS = st.sampled_from([None, None, None, (0,), (1,)])
BATCHES = st.sampled_from([1, 1, 1, 0, -1])
"""How far the batches of a query go on: 0 sends one again, -1 is of a query that was set back."""
GIVEN_MS = st.sampled_from([None, None, None, 0, 30, 200, -15])
LOOKS = st.sampled_from(
    [
        *["places", "versions", "table", "open a reader", "open a follower", "open a taker"],
        *["read on", "follow", "take"] * 2,
    ]
)


@st.composite
def drawn_record(draw: st.DrawFn) -> Record:
    """Timestamps are relative to when the topic was made."""
    order = draw(ORDERS)
    headers: tuple[tuple[str, bytes | None], ...] = ()
    if order is not None:
        headers = ((ORDER_HEADER, order.to_bytes(8, "big", signed=True)),)
    return Record(draw(KEYS), draw(VALUES), draw(TIMES_MS), headers, draw(PARTITIONS))


RECORDS = st.lists(drawn_record(), min_size=1, max_size=6) | st.lists(drawn_record(), min_size=8, max_size=14)
"""Of many records few lose, and a mask hides them."""

SETTINGS: dict[str, Sequence[object]] = {
    "cleanup.policy": ["compact", "delete", "compact,delete"],
    "compaction.mode": ["in-place", "side-by-side"],
    "compaction.strategy": get_args(Strategy),
    "null.key": ["reject", "drop", "retain"],
    "empty.value": ["value", "tombstone"],
    "delete.retention.ms": [0, 15, 15, 30],
    "tombstone.hold.groups": ["", "", "g", "g,h"],
    "tombstone.hold.max.ms": [-1, 0, 30, 60],
    "backlog.trim.groups": ["", "", "h"],
    "min.compaction.lag.ms": [0, 15],
    "min.compaction.lag.bytes": [0, 0, 60],
    "retention.ms": [-1, 30, 60],
    "retention.bytes": [-1, -1, 150, 500],
    "segment.bytes": [1024, 40 * 1024],
    "segment.max.dead.ratio": [0, 0.3, 1],
    "key.index.enable": ["true", "false"],
    "message.timestamp.type": ["CreateTime", "CreateTime", "LogAppendTime"],
    "versions.retention.ms": [0, 15, 100],
    "versions.kept": [1, 2, 20],
    "sweep.grace.ms": [GRACE_MS, GRACE_MS, 2 * GRACE_MS],
}
"""In tables every file is larger than the smaller `segment.bytes`: none merge, so that masks stay."""

SIZES = ("min.compaction.lag.bytes", "retention.bytes")


def _setting_of(names: Sequence[str]) -> st.SearchStrategy[tuple[str, object]]:
    return st.sampled_from(names).flatmap(lambda name: st.tuples(st.just(name), st.sampled_from(SETTINGS[name])))


SETTING = _setting_of(sorted(SETTINGS))
KIND = _setting_of(
    ["cleanup.policy", "cleanup.policy", "cleanup.policy", "compaction.mode", "compaction.strategy", "empty.value"]
)
"""Settings that change what a log is: altered more often than the others."""

IDS = st.sampled_from(["none", "none", "pulsar"])
"""Fixed at the creation."""
CONFIG = st.fixed_dictionaries(
    {**{name: st.sampled_from(values) for name, values in SETTINGS.items()}, "message.ids": IDS}
)

_ROUND = st.tuples(st.just("compact"), LOGS, GIVEN_MS)
_UNDO = st.tuples(st.just("undo"))
_SWEEP = st.tuples(st.just("sweep"))
OTHERS = st.one_of(
    *[_ROUND, _UNDO, _SWEEP] * 2,
    st.tuples(st.just("append"), RECORDS),
    st.tuples(st.just("append_a_batch"), RECORDS, BATCHES),
    st.tuples(st.just("retain"), GIVEN_MS),
    st.tuples(st.just("delete_records"), PARTITIONS, SHARES),
    st.tuples(st.just("truncate"), PARTITIONS, SHARES, st.booleans()),
    st.tuples(st.just("alter"), SETTING | KIND),
    st.tuples(st.just("uncompact"), st.booleans()),
    st.tuples(st.just("expire"), GIVEN_MS),
    st.tuples(st.just("group_reads"), GROUPS, PARTITIONS, SHARES),
)
"""What others do while a verb is paused: a rule of the machine, and what it is given."""

NOTHING = st.none()
STRUCK = st.tuples(st.just("struck"), SHARES, st.sampled_from(Kind))
PAUSED = st.tuples(st.just("paused"), SHARES, PAUSES_MS, st.lists(OTHERS, min_size=1, max_size=2))
TROUBLES = st.integers(0, 9).flatmap(lambda n: NOTHING if n < 6 else STRUCK if n < 7 else PAUSED)
"""What happens to a verb on its way, at a share of its port calls."""
TROUBLED = st.integers(0, 9).flatmap(lambda n: NOTHING if n < 3 else STRUCK if n < 4 else PAUSED)
"""For rounds, which take the longest."""

Trouble = tuple[object, ...] | None
