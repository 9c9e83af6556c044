"""Every port call of everything that only reads fails, in turn: it says so, or it says the truth (C7, C8).

Never does a reader get less than there is, nor a report that leaves something out unsaid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from faults.injection import CrashError, FaultyPort, Kind, faulty
from faults.test_every_call import NAME, PARTITIONS, memory_warehouse, records, strikes
from faults.test_every_cut import IN_PLACE, SIDE_BY_SIDE, prepared
from lithify.errors import LithifyError
from lithify.model.position import AtTime
from lithify.model.scan import Everywhere, Listed, Matching, ScanSettings
from lithify.ports import Batch, Warehouse
from lithify.service.alter import plan_uncompact
from lithify.service.append import append
from lithify.service.compact import RunRequest, compact, plan_run
from lithify.service.cut import plan_delete_records, plan_truncate
from lithify.service.fetch import Reading, open_log, open_topic, table_batches
from lithify.service.overview import Lookout
from lithify.service.quarantine import failing_logs
from lithify.service.scan import offsets_at, plan_tasks, subscribed, why_missing
from lithify.service.status import topic_status
from lithify.service.sweep import sweep
from lithify.service.undo import plan_undo
from lithify.service.verify import verify
from lithify.service.versions import kept_versions
from support.oracle_engine import OracleEngine
from support.oracle_inspector import OracleInspector

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
    return reader.has_message_available(), tuple(r for batch in reader.poll() for r in batch.records())


def sought(warehouse: Warehouse) -> object:
    """What readers give that are sent back to a time, in batches, and where they say that the end is."""
    state = warehouse.store.load(NAME)
    said: list[object] = []
    for reader in (open_log(warehouse, state, 0, "latest"), open_topic(warehouse, state, "latest", COMPACTED)):
        said += [reader.has_message_available(), reader.last_message_id()]
        reader.seek(at_ms=1_035)
        said += [reader.has_message_available(), *(list(rows) for rows in reader.batches())]
    return said


def scanned(warehouse: Warehouse) -> object:
    """What a job of Spark plans to read, and what it is told of a file that is gone."""
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
    "scanned": scanned,
    "table": lambda w: [r for batch in table_batches(w, w.store.load(NAME)) for r in batch.records()],
    "status": lambda w: topic_status(w, w.store.load(NAME)),
    "status of all": lambda w: Lookout(w).overview(),
    "versions": lambda w: kept_versions(w, NAME),
    "history": lambda w: list(w.store.reports(w.store.load(NAME))),
    "quarantine": failing_logs,
    "verify": verified,
    "plan of a round": lambda w: plan_run(w, w.store.load(NAME), RunRequest()),
    "plan of delete-records": lambda w: plan_delete_records(w, NAME, 0, 12),
    "plan of truncate": lambda w: plan_truncate(w, NAME, 0, 25),
    "plan of uncompact": lambda w: plan_uncompact(w, NAME),
    "plan of undo": lambda w: plan_undo(w, NAME),
    "plan of a sweep": lambda w: sweep(w, NAME, delete=False),
}

MODES = {"in place": IN_PLACE, "side by side": SIDE_BY_SIDE}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", READS)
def test_what_reads_says_the_truth_or_fails(name: str, mode: str, tmp_path: Path) -> None:
    """C8: struck anywhere it says what was struck, in one line, and changes nothing."""
    read, config = READS[name], MODES[mode]
    if name == "plan of uncompact" and mode == "in place":
        config = SIDE_BY_SIDE  # in place it is refused (C35), whatever else happens
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


@pytest.mark.parametrize("compacted", [False, True])
def test_a_follower_goes_on_where_it_failed(compacted: bool, tmp_path: Path) -> None:
    """C7: once the warehouse is well again, it gets every record that it would have got."""

    got: list[int | None] = []

    def take(polled: Iterable[Batch]) -> None:
        for batch in polled:
            got.extend(record.offset for record in batch.records())

    for injector in strikes(Kind.FAILS):
        warehouse = prepared(memory_warehouse, tmp_path, SIDE_BY_SIDE)
        state = warehouse.store.load(NAME)
        struck = faulty(warehouse, injector)
        injector.at += 1_000  # not while it is opened
        follower = open_log(struck, state, 0, "earliest", Reading(follow=True, compacted=compacted))
        take(follower.poll())
        append(warehouse, NAME, records(range(60, 80), keys=9))
        compact(warehouse, OracleEngine(warehouse.files), NAME, RunRequest((1,)))
        append(warehouse, NAME, records(range(80, 90), keys=9))
        injector.calls.clear()
        injector.at -= 1_000
        got.clear()
        try:
            take(follower.poll())
        except LithifyError:
            assert injector.struck
        if injector.struck:
            take(follower.poll())
        assert got == list(range(state.log(0).log_end_offset, warehouse.store.load(NAME).log(0).log_end_offset))
        assert len(got) == (90 - 60) // PARTITIONS


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
