"""Generated batches: whole columns are judged as `compaction.admission` judges record by record."""

from __future__ import annotations

from collections import defaultdict
from itertools import cycle

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from lithify.columnar.convert import to_records, to_table
from lithify.columnar.incoming import receive, with_offsets
from lithify.columnar.partitioner import partition_of
from lithify.compaction.admission import refusal
from lithify.errors import InvalidRecordError
from lithify.model.log import LogState, TopicState
from lithify.model.names import TopicName
from lithify.model.record import TIMESTAMP_TYPES, Record
from lithify.model.settings import settings_of

NOW = 10_000
PARTITIONS = 3

SMALL = st.one_of(st.none(), st.binary(max_size=6))
HEADERS = st.lists(st.tuples(st.text(max_size=3), SMALL), max_size=2).map(tuple)
TIMESTAMPS = st.one_of(st.none(), st.integers(0, NOW), st.sampled_from([-1, NOW + 100, NOW + 101, 2**63 - 1]))
CONFIGS = st.fixed_dictionaries(
    {
        "null.key": st.sampled_from(["reject", "drop", "retain"]),
        "message.timestamp.type": st.sampled_from(TIMESTAMP_TYPES),
        "message.timestamp.after.max.ms": st.sampled_from([100, 2**63 - 1]),
        "max.message.bytes": st.sampled_from([8, 12, 100]),
    }
)


@st.composite
def record(draw: st.DrawFn) -> Record:
    rarely_wrong = st.integers(0, 19)
    return Record(
        key=draw(SMALL) if draw(rarely_wrong) == 0 else draw(st.binary(max_size=6)),
        value=draw(SMALL),
        timestamp=draw(TIMESTAMPS) if draw(rarely_wrong) == 0 else draw(st.integers(0, NOW)),
        headers=draw(HEADERS),
        partition=draw(st.sampled_from([None, -1, 3])) if draw(rarely_wrong) == 0 else draw(st.integers(0, 2)),
        offset=draw(st.sampled_from([None, -1])) if draw(rarely_wrong) == 0 else draw(st.integers(0, 30)),
        timestamp_type=draw(st.sampled_from(TIMESTAMP_TYPES)),
    )


@st.composite
def batch(draw: st.DrawFn) -> tuple[list[Record], bool]:
    """Records, and whether they keep their offsets; those that do mostly ascend."""
    records = draw(st.lists(record(), max_size=30))
    keep = draw(st.booleans())
    if keep and draw(st.booleans()):
        records.sort(key=lambda r: (r.partition or 0, -1 if r.offset is None else r.offset))
    return records, keep


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


@settings(deadline=None, max_examples=300)
@given(batch(), CONFIGS, st.integers(1, 9))
def test_columns_are_judged_as_records_are(
    arriving: tuple[list[Record], bool], config: dict[str, object], piece: int
) -> None:
    records, keep = arriving
    topic = TopicState(
        TopicName("default", "t"), "t", "i", 1, "", settings_of(config), tuple(map(LogState, range(PARTITIONS))), 0
    )
    # Both ways in, and the table in pieces, as files and other libraries hand it over.
    table = to_table(records)
    pieces = pa.Table.from_batches(table.to_batches(max_chunksize=piece), schema=table.schema)
    refused = first_refused(records, topic, keep_offsets=keep)
    for given_batch in (records, pieces):
        try:
            parts = receive(given_batch, topic, now_ms=NOW, keep_offsets=keep)
        except InvalidRecordError as error:
            assert error.index == refused
            continue
        assert refused is None
        found = {p: list(to_records(part if keep else with_offsets(part, 0))) for p, part in parts.items()}
        assert found == expected(records, topic, keep_offsets=keep)
