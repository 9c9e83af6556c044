"""Segments: what goes in comes out to the byte, and the metadata tells what is in them (C1, C2, C8)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import get_args

import pytest

from lithify.columnar.arrivals.partitioner import partition_of
from lithify.errors import DamagedError, InvalidInputError, InvalidRecordError, LithifyError
from lithify.model.record import Record
from lithify.model.segment import Segment
from lithify.model.settings.table import Strategy
from lithify.model.settings.topic_settings import settings_of
from lithify.rules.compaction.survivor_rules import SurvivorRules, table_rules
from support.store.builders import NOW_MS, ORDERS, Place, some_records

ODD_RECORDS = [
    Record(b"", b"", 0, (), 0),
    Record(b"\xff" * 40, None, NOW_MS, (("h", None), ("h", b""), ("", b"\x00\xff")), 0),
    Record(b"\x00", b"\x00" * 70, 5, (("ünïcödé ∅", b"x"),), 0),
    Record(b"k" * 300, b"v", 2**53, (), 0),
    Record("schlüssel".encode(), b"\xff\xfe", NOW_MS, (), 0),
]


class FileRules:
    """Rules on the data files of topics."""

    def test_odd_records_come_back_to_the_byte(self, place: Place) -> None:
        state = place.create(message_timestamp_after_max_ms=2**60)

        after = place.append(state, ODD_RECORDS)

        assert place.records(after) == [r._replace(offset=n) for n, r in enumerate(ODD_RECORDS)]

    def test_segments_come_back_as_they_were_written(self, place: Place) -> None:
        state = place.create(partitions=3, null_key="retain", message_timestamp_after_max_ms=2**60)
        written: list[Segment] = []
        for n, records in enumerate(
            [
                some_records("a", "b", "c"),
                ODD_RECORDS,
                [Record(None, b"keyless", 1, (), 0), Record(None, None, 2, (), 0)],
                [Record(b"only tombstones", None, 3, (), 0)],
                [Record(b"\xff" * 16, b"", 4, (), 0), Record(b"\xff" * 17, b"", 4, (), 0)],
            ]
        ):
            run = f"run{n}"
            arriving = place.files.receive(
                state, [r._replace(partition=n % 3) for r in records], now_ms=NOW_MS, keep_offsets=False
            )
            for partition, arrivals in arriving.items():
                written += place.files.write(state, arrivals, state.log(partition).log_end_offset, run.upper())
            state = place.append(state, [r._replace(partition=n % 3) for r in records], run_id=run)

        segments = place.store.segments(state)

        assert _facts(segments) == _facts(written)
        assert [(s.partition, s.base_offset) for s in segments] == sorted((s.partition, s.base_offset) for s in written)
        for partition in range(3):
            assert place.store.segments(state, [partition]) == tuple(s for s in segments if s.partition == partition)
        assert place.store.segments(state, [0, 2]) == tuple(s for s in segments if s.partition != 1)
        assert place.store.segments(state, []) == ()
        for segment in segments:
            self.check_facts(segment, place.records_of([segment]))

    def test_batches_that_are_received_together_are_joined_in_their_order(self, place: Place) -> None:
        state = place.create(partitions=2, null_key="retain", max_message_bytes=10)
        batches = [
            [Record(b"a", b"1", 1, (), 0), Record(b"b", b"2", 2, (), 1)],
            [Record(b"a", b"x" * 11, 3, (), 0)],
            [],
            [Record(None, b"3", 4), Record(b"c", b"4", 5, (("h", b"x"),), 0)],
            [Record(None, b"5", 6), Record(b"d", b"6", 7, (), 5)],
            [Record(None, b"7", 8)],
        ]

        received = place.files.receive_each(state, batches, now_ms=NOW_MS)

        refused = {n: str(one) for n, one in enumerate(received) if isinstance(one, LithifyError)}
        assert list(refused) == [1, 4]
        assert "index 0" in refused[1] and "index 1" in refused[4]
        taken = [one for one in received if not isinstance(one, LithifyError)]
        assert [{p: arrivals.records for p, arrivals in one.items()} for one in taken] == [
            {0: 1, 1: 1},
            {},
            {0: 2},
            {1: 1},
        ]
        assert [one[0].last_timestamp_ms for one in taken if 0 in one] == [1, 5]
        written: list[Segment] = []
        for partition in (0, 1):
            joined = place.files.joined([one[partition] for one in taken if partition in one])
            written += place.files.write(state, joined, 0, f"run{partition}")
        assert [r.value for r in place.records_of(written)] == [b"1", b"3", b"4", b"2", b"7"]

    def check_facts(self, segment: Segment, records: list[Record]) -> None:
        """The facts hold for the records; bounds of keys may be wider than they have to be."""
        keys = [r.key for r in records if r.key is not None]
        sizes = [len(r.value) for r in records if r.value is not None]
        timestamps = [r.timestamp for r in records if r.timestamp is not None]
        assert segment.records == len(records)
        assert (segment.base_offset, segment.end_offset) == (records[0].offset, (records[-1].offset or 0) + 1)
        assert (segment.min_timestamp_ms, segment.max_timestamp_ms) == (min(timestamps), max(timestamps))
        assert segment.null_keys == len(records) - len(keys)
        assert segment.null_values == len(records) - len(sizes)
        assert segment.min_value_size == min(sizes, default=None)
        assert 0 < segment.scan_bytes <= segment.size_bytes
        assert (segment.min_key is None) == (not keys)
        for key in keys:
            assert segment.min_key is not None
            assert segment.min_key <= key
            assert segment.max_key is None or key <= segment.max_key

    def test_reading_starts_at_any_offset(self, place: Place) -> None:
        state = place.append(place.create(), some_records(*"abcdef"))
        (segment,) = place.store.segments(state)

        for start in range(8):
            batches = list(place.files.read(segment, start))
            assert [r.offset for batch in batches for r in batch.records()] == list(range(start, 6))
            assert all(len(batch) > 0 for batch in batches)

    def test_pieces_have_the_same_records(self, place: Place) -> None:
        state = place.append(place.create(), some_records(*"abcdef"))
        (segment,) = place.store.segments(state)

        for start in range(8):
            pieces = [*place.files.read_pieces(segment, start, ("offset", "value"), 1)]
            assert [offset for piece in pieces for offset in piece["offset"].to_pylist()] == list(range(start, 6))
            assert all(piece.column_names == ["offset", "value"] and piece.num_rows for piece in pieces)
        pieces = place.files.read_pieces(segment, 0, ("offset",), 1)
        next(pieces)
        pieces.close()

    def test_a_batch_tells_where_it_ends_and_where_a_time_is(self, place: Place) -> None:
        records = [Record(b"k", b"v", t, partition=0) for t in (10, 30, 20, 40)]
        state = place.append(place.create(), records)
        (batch,) = place.files.read(place.store.segments(state)[0], 1)

        assert batch.end_offset == 4
        assert [batch.offset_at(t) for t in (0, 30, 31, 40, 41)] == [1, 1, 3, 3, None]
        assert batch.to_arrow().column("offset").to_pylist() == [1, 2, 3]
        assert batch.to_arrow().column("value_size").to_pylist() == [1, 1, 1]

    def test_gaps_between_given_offsets_stay(self, place: Place) -> None:
        state = place.create()
        given = [Record(b"k", b"v", 5, partition=0, offset=o, timestamp_type="LogAppendTime") for o in (7, 8, 100)]

        segments = place.rewrite(state, given, "run")

        assert [(s.base_offset, s.end_offset, s.records) for s in segments] == [(7, 101, 3)]
        assert place.records_of(segments) == given
        assert [r.offset for b in place.files.read(segments[0], 9) for r in b.records()] == [100]

    def test_a_batch_goes_to_partitions_as_kafka_sends_it(self, place: Place) -> None:
        state = place.create(partitions=5, null_key="retain")
        keys = [b"", b"\xff", *(f"key-{n}".encode() for n in range(60))]
        records = [Record(key, b"v") for key in keys] + [Record(None, b"v")] * 10

        arriving = place.files.receive(state, records, now_ms=NOW_MS, keep_offsets=False)
        after = place.append(state, records)

        assert sum(arrivals.records for arrivals in arriving.values()) == 72
        found = {r.key: p for p in range(5) for r in place.records(after, p) if r.key is not None}
        assert found == {key: partition_of(key, 5) for key in keys}
        keyless = [sum(r.key is None for r in place.records(after, p)) for p in range(5)]
        assert keyless == [2] * 5

    def test_a_batch_of_an_arrow_table_is_the_same_as_of_records(self, place: Place) -> None:
        state = place.create()
        after = place.append(state, some_records("a", "b", "c"))
        (batch,) = place.files.read(place.store.segments(after)[0], 0)
        table = batch.to_arrow().select(["key", "value", "timestamp", "partition"])

        ((partition, arrivals),) = place.files.receive(state, table, now_ms=NOW_MS, keep_offsets=False).items()
        segments = place.files.write(state, arrivals, 10, "again")

        assert (partition, arrivals.records, arrivals.first_offset) == (0, 3, None)
        assert [r._replace(offset=(r.offset or 0) - 10) for r in place.records_of(segments)] == place.records(after)

    def test_one_refused_record_refuses_the_batch(self, place: Place) -> None:
        state = place.create(partitions=2, max_message_bytes=100)
        good = Record(b"k", b"v", NOW_MS, partition=0, offset=5)
        for keep_offsets, bad, words in [
            (False, Record(None, b"v"), "null.key=reject"),
            (False, Record(b"k", b"v" * 100), "max.message.bytes=100"),
            (False, Record(b"k", b"v", NOW_MS + 2**40), "further ahead"),
            (False, Record(b"k", b"v", partition=2), "no partition 2"),
            (True, Record(b"k", b"v", partition=0, offset=5), "does not ascend"),
            (True, Record(b"k", b"v", partition=0, offset=4), "does not ascend"),
            (True, Record(b"k", b"v", partition=0, offset=2**63 - 1), "is above 9223372036854775806, the largest"),
            (True, Record(b"k", b"v", partition=0), "no offset"),
            (True, Record(b"k", b"v", offset=9), "no partition"),
        ]:
            with pytest.raises(InvalidRecordError, match=f"index 1 .*{words}"):
                place.files.receive(state, [good, bad], now_ms=NOW_MS, keep_offsets=keep_offsets)

    def test_input_without_keys_and_values_is_refused(self, place: Place) -> None:
        state = place.append(place.create(), some_records("a"))
        (batch,) = place.files.read(place.store.segments(state)[0], 0)

        with pytest.raises(InvalidInputError, match="key"):
            place.files.receive(state, batch.to_arrow().select(["value"]), now_ms=NOW_MS, keep_offsets=False)

    def test_the_log_may_give_the_time(self, place: Place) -> None:
        state = place.create(message_timestamp_type="LogAppendTime")

        after = place.append(state, [Record(b"k", b"v", 5, partition=0)])

        assert [(r.timestamp, r.timestamp_type) for r in place.records(after)] == [(NOW_MS, "LogAppendTime")]
        assert after.log(0).last_record is not None
        assert after.log(0).last_record.timestamp_ms == NOW_MS

    def test_a_batch_above_the_segment_size_becomes_several_segments(self, place: Place) -> None:
        state = place.create(segment_bytes=1024)
        value = bytes(range(256)) * 4000  # a megabyte; a segment ends where a row group does
        records = [Record(b"%d" % n, value, NOW_MS, partition=0) for n in range(70)]

        after = place.append(state, records)

        segments = place.store.segments(after)
        assert len(segments) > 1
        assert [r.offset for r in place.records(after)] == list(range(70))
        assert all(earlier.end_offset <= later.base_offset for earlier, later in pairwise(segments))

    def test_latest_is_the_last_value_of_every_live_key(self, place: Place) -> None:
        state = place.create(null_key="retain")
        state = place.append(state, [*some_records("a", "b", "c", ""), Record(None, b"v", 0, partition=0)])
        state = place.append(state, [*some_records("b", "d", value="new"), Record(b"c", None, 0, partition=0)])
        state = place.append(state, [Record(b"d", b"", 0, partition=0), Record(b"x", None, 0, partition=0)])
        segments = place.store.segments(state, [0])

        def latest(empty_value: str, log_start: int = 0) -> list[tuple[int | None, bytes | None, bytes | None]]:
            settings = settings_of({"empty.value": empty_value})
            log = replace(state.log(0), log_start_offset=log_start)
            return [(r.offset, r.key, r.value) for r in _latest(place, segments, table_rules(log, settings))]

        live = [(0, b"a", b"v"), (3, b"", b"v"), (5, b"b", b"new")]
        assert latest("value") == [*live, (8, b"d", b"")]
        assert latest("tombstone") == live
        assert latest("value", log_start=3) == [*live[1:], (8, b"d", b"")]
        assert list(place.files.latest((), table_rules(state.log(0), state.settings))) == []

    @pytest.mark.parametrize("strategy", get_args(Strategy))
    def test_latest_keeps_to_the_strategy_of_the_topic(self, place: Place, strategy: str) -> None:
        state = place.create(compaction_strategy=strategy, compaction_strategy_header="v")

        def order(number: int) -> tuple[tuple[str, bytes | None], ...]:
            return (("v", number.to_bytes(8, "big", signed=True)),)

        batches = [
            [Record(b"a", b"0", 50, order(-1), 0), Record(b"b", b"1", 20, order(9), 0)],
            [Record(b"a", b"2", 40, order(3), 0), Record(b"b", None, 30, order(2), 0)],
            [Record(b"a", b"3", 10, (), 0), Record(b"c", b"5", 10, (), 0), Record(b"c", b"6", 10, (), 0)],
        ]
        for batch in batches:
            state = place.append(state, batch)
        found = _latest(place, place.store.segments(state), table_rules(state.log(0), state.settings))

        expected = {"offset": [b"3", b"6"], "timestamp": [b"0", b"6"], "header": [b"1", b"2", b"6"]}
        assert [r.value for r in found] == expected[strategy]

    def test_a_segment_is_cut_to_what_lies_below_an_offset(self, place: Place) -> None:
        """C26: `truncate` rewrites the segment that it cuts in two."""
        state = place.create(message_timestamp_after_max_ms=2**60)
        given = [r._replace(offset=n * 10) for n, r in enumerate(ODD_RECORDS)]
        (segment,) = place.rewrite(state, given, "run")

        for end, left in ((0, 0), (1, 1), (20, 2), (21, 3), (40, 4), (41, 5), (2**62, 5)):
            cut = place.files.cut(state, segment, end, f"cut{end}")
            assert place.records_of(cut) == given[:left]
            assert sum(s.records for s in cut) == left
            for piece in cut:
                assert piece.path != segment.path
                self.check_facts(piece, given[:left])
        assert place.records_of([segment]) == given

    def test_cutting_the_log_and_its_view_in_one_run_makes_two_files(self, place: Place) -> None:
        state = place.create()
        (segment,) = place.rewrite(state, [r._replace(offset=n) for n, r in enumerate(some_records("a", "b"))], "r")
        (view,) = place.rewrite(state, [r._replace(offset=0) for r in some_records("a", value="view")], "v")

        cut = [s for source in (segment, view) for s in place.files.cut(state, source, 1, "run")]

        assert [[r.value for r in place.records_of([s])] for s in cut] == [[b"v"], [b"view"]]

    def test_latest_spans_offsets_that_lie_far_apart(self, place: Place) -> None:
        state = place.create()
        offsets = (3, 2**31, 2**32 + 1, 2**45, 2**62)
        given = [Record(b"%d" % (o % 4), b"v", 5, partition=0, offset=o) for o in offsets]

        segments = place.rewrite(state, given, "run")
        log = replace(state.log(0), log_end_offset=2**62 + 1)
        latest = _latest(place, segments, table_rules(log, state.settings))

        assert [(r.offset, r.key) for r in latest] == [
            (3, b"3"),
            (2**32 + 1, b"1"),
            (2**62, b"0"),
        ]

    def test_a_file_that_is_gone_is_named(self, place: Place) -> None:
        state = place.append(place.append(place.create(), some_records("a")), some_records("b"))
        lost, there = place.store.segments(state)
        place.lose(lost)

        assert place.files.missing([lost.path, there.path]) == (lost.path,)
        assert place.files.missing([]) == ()
        with pytest.raises(DamagedError) as error:
            list(place.files.read(lost, 0))
        assert lost.path in str(error.value)
        with pytest.raises(DamagedError) as error:
            list(place.files.read_pieces(lost, 0, ("offset",), 1))
        assert lost.path in str(error.value)
        with pytest.raises(DamagedError) as error:
            list(place.files.latest([lost, there], table_rules(state.log(0), state.settings)))
        assert lost.path in str(error.value)
        assert [r.key for r in place.records_of([there])] == [b"b"]

    def test_a_file_that_holds_other_records_is_named(self, place: Place) -> None:
        state = place.append(place.create(), some_records("a", "b"))
        (segment,) = place.store.segments(state)

        with pytest.raises(DamagedError) as error:
            list(place.files.read(replace(segment, records=3), 0))

        assert segment.path in str(error.value)
        assert place.store.load(ORDERS) == state


def _latest(place: Place, segments: Sequence[Segment], rules: SurvivorRules) -> list[Record]:
    """What `latest` leaves, which is what it finds of every key alone."""
    left = [r for batch in place.files.latest(segments, rules) for r in batch.records()]
    for key in {r.key for r in place.records_of(segments) if r.key is not None} | {b"never"}:
        alone = [r for batch in place.files.latest(segments, rules, key) for r in batch.records()]
        assert alone == [r for r in left if r.key == key]
    return left


def _facts(segments: Iterable[Segment]) -> list[Segment]:
    """What is known of segments, whatever the names of their files."""
    return sorted((replace(s, path="") for s in segments), key=lambda s: (s.partition, s.base_offset))
