"""Every port call of everything that only reads fails, in turn: it says so, or it says the truth (C7, C8).

Never does a reader get less than there is, nor a report that leaves something out unsaid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lithify.api.topic import Topic
from lithify.errors import LithifyError
from lithify.model.record import Record
from lithify.model.scan import Everywhere, Listed, Matching, ScanSettings
from lithify.model.start_position import AtTime
from lithify.ports.store import Warehouse
from lithify.reading.pieces import Reading
from lithify.service.change.alter import plan_uncompact
from lithify.service.change.cut import plan_delete_records, plan_truncate
from lithify.service.change.sweep import sweep
from lithify.service.change.undo import plan_undo
from lithify.service.documents import reports_of
from lithify.service.look.overview import StatusWatch
from lithify.service.look.quarantine import failing_logs
from lithify.service.look.status import topic_status
from lithify.service.look.versions import kept_versions
from lithify.service.proof.verify import verify
from lithify.service.read.fetch import LogReader, TopicReader, open_log, open_topic, table_batches
from lithify.service.read.scan import offsets_at, plan_tasks, subscribed, why_missing
from lithify.service.round.compact import RunRequest, compact, plan_compact
from lithify.service.write.append import append
from support.engines.inspector import OracleInspector
from support.engines.oracle import OracleEngine
from support.faults.injection import CrashError, FaultyPort, Injector, Kind, faulty
from support.faults.struck import strikes
from support.faults.topics import IN_PLACE, NAME, SIDE_BY_SIDE, memory_warehouse, prepared, records

COMPACTED = Reading(compacted=True)


def verified(warehouse: Warehouse) -> object:
    """What `verify` says; the calls of its inspector can be struck as well."""
    injector = getattr(warehouse.store, "_injector", None)
    files = getattr(warehouse.files, "_real", warehouse.files)
    inspector = OracleInspector(files)
    return verify(warehouse, inspector if injector is None else FaultyPort(inspector, injector), NAME)


def followed(warehouse: Warehouse) -> object:
    """A reader of the oldest kept version that goes on with the newest."""
    oldest = warehouse.store.versions(NAME)[-1].version
    reader = open_log(warehouse, warehouse.store.load_version(NAME, oldest), 0, 20, Reading(follow=True))
    said = reader.has_message_available(), reader.last_message_id()
    return said, tuple(r for batch in reader.poll() for r in batch.records())


def sought(warehouse: Warehouse) -> object:
    """What readers give that are sent back to a time, in batches, and where they say that the end is."""
    state = warehouse.store.load(NAME)
    said: list[object] = []
    for reader in (open_log(warehouse, state, 0, "latest"), open_topic(warehouse, state, "latest", COMPACTED)):
        said += [reader.has_message_available(), reader.last_message_id()]
        reader.seek(at_ms=1_035)
        said += [reader.has_message_available(), *(list(rows) for rows in reader.batches())]
    return said


def resumed(warehouse: Warehouse) -> object:
    """What readers give that go on from the places of others (C49)."""
    state = warehouse.store.load(NAME)
    of_log, of_topic = open_log(warehouse, state, 0, 20).cursor(), open_topic(warehouse, state, AtTime(1_035)).cursors()
    return of_log, of_topic, *open_log(warehouse, state, 0, of_log), *open_topic(warehouse, state, of_topic)


def scanned(warehouse: Warehouse) -> object:
    """What a job of Spark plans to read, and its error for a file that is gone."""
    states = subscribed(warehouse, Listed((NAME,)))
    said: list[object] = []
    for settings in (ScanSettings(), ScanSettings(compacted=True, min_tasks=9)):
        start = offsets_at(warehouse, states, Everywhere(AtTime(1_035)), settings)
        end = offsets_at(warehouse, states, Everywhere("latest"), settings)
        tasks = plan_tasks(warehouse, states, start, end, settings)
        said += [*tasks, str(why_missing(warehouse, tasks[0], "gone")), subscribed(warehouse, Matching(".*"))]
        assert why_missing(warehouse, tasks[0], tasks[0].pieces[0].segment.path) is None
    return said


READS: dict[str, Callable[[Warehouse], object]] = {
    "a log": lambda w: tuple(open_log(w, w.store.load(NAME), 0)),
    "compacted": lambda w: tuple(open_log(w, w.store.load(NAME), 0, "earliest", COMPACTED)),
    "from a time": lambda w: tuple(open_log(w, w.store.load(NAME), 1, AtTime(1_035))),
    "all logs": lambda w: tuple(open_topic(w, w.store.load(NAME))),
    "sought": sought,
    "following": followed,
    "resumed": resumed,
    "scanned": scanned,
    "table": lambda w: [r for batch in table_batches(w, w.store.load(NAME)) for r in batch.records()],
    "status": lambda w: topic_status(w, w.store.load(NAME)),
    "status of all": lambda w: StatusWatch(w).overview(),
    "versions": lambda w: kept_versions(w, NAME),
    "history": lambda w: list(reports_of(w.store, w.store.load(NAME))),
    "quarantine": failing_logs,
    "verify": verified,
    "plan of a round": lambda w: plan_compact(w, 2, NAME, RunRequest()),
    "plan of delete-records": lambda w: plan_delete_records(w, NAME, 0, 12),
    "plan of truncate": lambda w: plan_truncate(w, NAME, 0, 25),
    "plan of uncompact": lambda w: plan_uncompact(w, NAME),
    "plan of undo": lambda w: plan_undo(w, NAME),
    "plan of a sweep": lambda w: sweep(w, NAME, delete=False),
}

KEPT_DELETES: dict[str, object] = {"delete.retention.ms": 10**12}  # else followers miss some (C49)
MODES = {"in place": IN_PLACE, "side by side": SIDE_BY_SIDE}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", READS)
def test_what_reads_says_the_truth_or_fails(name: str, mode: str, tmp_path: Path) -> None:
    """C8: struck anywhere it says what was struck, in one line, and changes nothing."""
    read, config = READS[name], MODES[mode]
    if name == "plan of uncompact" and mode == "in place":
        config = SIDE_BY_SIDE  # in place it is refused (C35), whatever else happens
    if name == "following":
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
