"""Generated batches: whole columns are judged as `lifecycle.admission` judges record by record."""

from __future__ import annotations

from collections import defaultdict
from itertools import cycle, product

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lithify.columnar.arrivals.incoming import receive, with_offsets
from lithify.columnar.arrivals.partitioner import partition_of
from lithify.columnar.segment.convert import to_records, to_table
from lithify.errors import InvalidRecordError
from lithify.model.record import TIMESTAMP_TYPES, Record
from lithify.model.settings.topic_settings import settings_of
from lithify.model.staged import Destination
from lithify.model.topic.log import LogState
from lithify.model.topic.state import TopicState
from lithify.rules.lifecycle.admission import refusal
from support.builders import a_topic
from support.generated.logs import a_record

pytestmark = pytest.mark.long

NOW = 10_000
PARTITIONS = 3

SMALL = st.one_of(st.none(), st.binary(max_size=6))
HEADERS = st.lists(st.tuples(st.text(max_size=3), SMALL), max_size=2).map(tuple)
EDGES_IN_TIME = (None, -1, 0, NOW + 99, NOW + 100, NOW + 101, 2**63 - 1)
AT_THE_EDGES = st.sampled_from(EDGES_IN_TIME)

SOUND = a_record(
    key=st.binary(max_size=4),
    value=st.one_of(st.none(), st.binary(max_size=4)),
    timestamp=st.integers(0, NOW),
    partition=st.one_of(st.none(), st.integers(0, PARTITIONS - 1)),
    timestamp_type=st.sampled_from(TIMESTAMP_TYPES),
)
"""Taken by every topic here, unless its offset is to be kept."""

ODD = st.one_of(
    a_record(key=SMALL, value=SMALL, timestamp=AT_THE_EDGES, headers=HEADERS),
    a_record(key=st.just(b"k"), value=st.none(), timestamp=AT_THE_EDGES),
    a_record(key=st.just(b"k"), value=st.binary(min_size=6, max_size=12)),
    a_record(key=st.just(b"k"), value=st.none(), partition=st.sampled_from([-1, 2, 3])),
)
"""At the edge of what a topic takes, or beyond."""

CHOICES: dict[str, tuple[object, ...]] = {
    "null.key": ("reject", "drop", "retain"),
    "message.timestamp.type": TIMESTAMP_TYPES,
    "message.timestamp.after.max.ms": (100, 2**63 - 1),
    "max.message.bytes": (8, 12, 100),
}
CONFIGS = st.fixed_dictionaries({name: st.sampled_from(values) for name, values in CHOICES.items()})


@st.composite
def batch(draw: st.DrawFn) -> tuple[list[Record], bool]:
    """Mostly sound records, and whether they keep their offsets."""
    records = draw(st.lists(SOUND, max_size=20))
    for odd in draw(st.lists(ODD, max_size=2)):
        records.insert(draw(st.integers(0, len(records))), odd)
    if not draw(st.booleans()):
        return records, False
    step = draw(st.integers(1, 3))
    records = [r._replace(partition=r.partition or 0, offset=n * step) for n, r in enumerate(records)]
    for strays in draw(st.lists(st.sampled_from([{"partition": None}, {"offset": None}, {"offset": 7}]), max_size=1)):
        place = draw(st.integers(0, max(0, len(records) - 1)))
        records[place : place + 1] = [r._replace(**strays) for r in records[place : place + 1]]
    return records, True


def a_topic_of(config: dict[str, object]) -> TopicState:
    return a_topic(*map(LogState, range(PARTITIONS)), settings=settings_of(config))


def first_refused(records: list[Record], topic: TopicState, *, keep_offsets: bool) -> int | None:
    """The first record that the rules refuse, found record by record."""
    ends: dict[int | None, int] = defaultdict(lambda: -1)
    for index, candidate in enumerate(records):
        if refusal(candidate, topic.settings, now_ms=NOW, keep_offsets=keep_offsets) is not None:
            return index
        if candidate.partition is not None and candidate.partition not in topic.partitions:
            return index
        if not keep_offsets:
            continue
        if candidate.partition is None or candidate.offset is None or candidate.offset <= ends[candidate.partition]:
            return index
        ends[candidate.partition] = candidate.offset
    return None


def expected(records: list[Record], topic: TopicState, *, keep_offsets: bool) -> dict[int, list[Record]]:
    """What becomes of records that are taken, one at a time."""
    parts: dict[int, list[Record]] = defaultdict(list)
    by_log = topic.settings.message_timestamp_type == "LogAppendTime" and not keep_offsets
    next_keyless = cycle(range(PARTITIONS))
    for given_record in records:
        place = given_record.partition
        if place is None:
            key = given_record.key
            place = next(next_keyless) if key is None else partition_of(key, PARTITIONS)
        time = NOW if by_log or given_record.timestamp is None else given_record.timestamp
        kind = given_record.timestamp_type if keep_offsets else TIMESTAMP_TYPES[by_log]
        offset = given_record.offset if keep_offsets else len(parts[place])
        parts[place].append(
            Record(given_record.key, given_record.value, time, given_record.headers, place, offset, kind)
        )
    return dict(parts)


@settings(deadline=None, max_examples=150)
@given(batch(), CONFIGS, st.integers(1, 9))
def test_columns_are_judged_as_records_are(
    arriving: tuple[list[Record], bool], config: dict[str, object], piece: int
) -> None:
    records, keep = arriving
    topic = a_topic_of(config)
    # Both ways in, and the table in pieces, as files and other libraries hand it over.
    table = to_table(records)
    pieces = pa.Table.from_batches(table.to_batches(max_chunksize=piece), schema=table.schema)
    refused = first_refused(records, topic, keep_offsets=keep)
    for given_batch in (records, pieces):
        try:
            parts = receive(given_batch, Destination.of(topic), now_ms=NOW, keep_offsets=keep)
        except InvalidRecordError as error:
            assert error.index == refused
            continue
        assert refused is None
        found = {p: list(to_records(part if keep else with_offsets(part, 0))) for p, part in parts.items()}
        assert found == expected(records, topic, keep_offsets=keep)


SIZES = [
    Record(b"k", b"v" * value, headers=headers)
    for value in (0, 3, 4, 6, 7, 8, 10, 11, 12, 98, 99, 100)
    for headers in ((), (("h", None),), (("hé", b"x"),), (("", b""), ("h", b"xx")))
]
TIMES = [Record(b"k", None, time, timestamp_type=kind) for time in EDGES_IN_TIME for kind in TIMESTAMP_TYPES]
KEYLESS = [Record(None, None), Record(None, b"", NOW + 101), Record(b"", None)]


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("config", [dict(zip(CHOICES, c, strict=True)) for c in product(*CHOICES.values())], ids=str)
def test_every_edge_is_judged_alike(config: dict[str, object], keep: bool) -> None:
    topic = a_topic_of(config)
    for edge in (*SIZES, *TIMES, *KEYLESS):
        record = edge._replace(partition=1, offset=5)
        if refusal(record, topic.settings, now_ms=NOW, keep_offsets=keep) is None:
            assert receive([record], Destination.of(topic), now_ms=NOW, keep_offsets=keep)[1].num_rows == 1
        else:
            with pytest.raises(InvalidRecordError):
                receive([record], Destination.of(topic), now_ms=NOW, keep_offsets=keep)
