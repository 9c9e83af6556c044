"""Every port call of everything that only reads fails, in turn: it says so, or it says the truth (C7, C8).

Never does a reader get less than there is, nor a report that leaves something out unsaid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from faults.reads import READS
from lithify.api.topic import Topic
from lithify.errors import LithifyError
from lithify.model.record import Record
from lithify.service.read.fetch import LogReader, TopicReader
from lithify.service.round.compact import RunRequest, compact
from lithify.service.write.append import append
from lithify.testing.oracle_engine import OracleEngine
from support.faults.ports import CrashError, Injector, Kind, faulty
from support.faults.struck import strikes
from support.faults.topics import IN_PLACE, NAME, SIDE_BY_SIDE, memory_warehouse, prepared, records

KEPT_DELETES: dict[str, object] = {"delete.retention.ms": 10**12}  # else followers miss some (C49)
MODES = {"in place": IN_PLACE, "side by side": SIDE_BY_SIDE}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", READS)
def test_what_reads_says_the_truth_or_fails(name: str, mode: str, tmp_path: Path) -> None:
    """C8: struck anywhere it says what was struck, in one line, and changes nothing."""
    read, config = READS[name], MODES[mode]
    if name == "plan of uncompact" and mode == "in place":
        config = SIDE_BY_SIDE  # in place it is refused (C35), whatever else happens
    if name in ("following", "consumed", "hydrated"):
        config = config | KEPT_DELETES
    warehouse = prepared(memory_warehouse, tmp_path, config)
    wanted, state = read(warehouse), warehouse.store.load(NAME)
    assert wanted != ()
    for injector in strikes(Kind.FAILS):
        try:
            said = read(faulty(warehouse, injector))
        except LithifyError as error:
            assert injector.struck
            assert "injected" in str(error)
            assert "\n" not in str(error)
        else:
            assert said == wanted or "injected" in str(said), injector
        assert warehouse.store.load(NAME) == state
        assert read(warehouse) == wanted


def polled(reader: LogReader | TopicReader) -> Iterator[Record]:
    return (record for batch in reader.poll() for record in batch.records())


def one_by_one(reader: LogReader | TopicReader) -> Iterator[Record]:
    while reader.has_message_available():
        record = reader.read_next()
        assert record is not None
        yield record


@pytest.mark.parametrize("compacted", [False, True])
@pytest.mark.parametrize("take", [polled, one_by_one])
@pytest.mark.parametrize("partition", [0, None])
def test_a_follower_goes_on_where_it_failed(
    compacted: bool, take: Callable[..., Iterator[Record]], partition: int | None, tmp_path: Path
) -> None:
    """C7: once the warehouse is well again, it gets every record that it would have got."""
    for injector in strikes(Kind.FAILS):
        warehouse = prepared(memory_warehouse, tmp_path, SIDE_BY_SIDE | KEPT_DELETES)
        state = warehouse.store.load(NAME)
        injector.at += 1_000  # not while it is opened
        topic = Topic(faulty(warehouse, injector), NAME)
        follower = topic.reader(partition, follow=True, compacted=compacted)
        list(take(follower))
        append(warehouse, NAME, records(range(60, 80), keys=9))
        compact(warehouse, OracleEngine(warehouse.files), NAME, RunRequest((1,)))
        append(warehouse, NAME, records(range(80, 90), keys=9))
        injector.calls.clear()
        injector.at -= 1_000
        got: list[Record] = []
        try:
            got.extend(take(follower))
        except LithifyError:
            assert injector.struck
        if injector.struck:
            got.extend(take(follower))
        left = list(Topic(warehouse, NAME).reader(compacted=compacted))
        ends = [log.log_end_offset for log in state.logs]
        new = [r for r in left if r.offset is not None and r.offset >= ends[r.partition or 0]]
        assert got == [r for r in new if partition is None or r.partition == partition]
        assert len(got) > 5


def test_a_file_is_not_opened_anew_for_each_record(tmp_path: Path) -> None:
    """However records are asked for one by one."""
    injector = Injector(10_000, Kind.FAILS)
    reader = Topic(faulty(prepared(memory_warehouse, tmp_path, IN_PLACE), injector), NAME).reader()
    got = 0
    while reader.has_message_available():
        got += sum(record is not None for record in (next(iter(reader)), reader.read_next()))
    assert got > 20
    assert injector.calls.count("read") < 10


def test_a_crash_of_a_reader_leaves_everything_as_it_is(tmp_path: Path) -> None:
    """C7: reading writes nothing, whenever it ends."""
    warehouse = prepared(memory_warehouse, tmp_path, SIDE_BY_SIDE)
    before = warehouse.store.load(NAME), set(warehouse.store.stored_files(warehouse.store.load(NAME)))
    for injector in strikes(Kind.CRASHES_AFTER):
        try:
            for read in READS.values():
                read(faulty(warehouse, injector))
        except CrashError:
            pass
        assert before == (warehouse.store.load(NAME), set(warehouse.store.stored_files(before[0])))
