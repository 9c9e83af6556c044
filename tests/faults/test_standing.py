"""Three services are paused at once, days go by, and they continue one after the other (C6, C7, C45).

What pairs cannot show (`test_frozen`): that one of them undoes what keeps the second safe from the third.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from faults.cases import a_batch
from faults.history import (
    CONFIGS,
    GRACE_MS,
    RETENTION_MS,
    a_history,
    a_round,
    iceberg_warehouse,
    memory_warehouse,
)
from faults.standing import Standing
from lithify.errors import RunExpiredError, UnknownVersionError
from lithify.model.record import Record
from lithify.model.settings.topic_settings import settings_of
from lithify.model.topic.state import NewTopic
from lithify.ports.store import Warehouse
from lithify.reports.rounds.round import RoundReport
from lithify.rules.lifecycle.sweeping import RUNS_REMEMBERED
from lithify.service.change.cut import delete_records, truncate
from lithify.service.change.expire import expire_versions
from lithify.service.change.sweep import sweep
from lithify.service.change.undo import undo
from lithify.service.round.compact import RunRequest, compact
from lithify.service.write.append import append
from lithify.testing.fake_clock import FakeClock
from lithify.testing.memory_files import MemoryFiles
from lithify.testing.oracle_engine import OracleEngine
from support.faults.ports import LONG_MS, Verb
from support.faults.topics import NAME, PARTITIONS
from support.processes.system_calls import Stop
from support.topics.whole_logs import check_whole, contents

SAMPLE = 120
"""So many are tried of all triples of services and calls before which they are paused."""
MOST_CALLS = 40


def an_append(key: bytes) -> Verb:
    """One record to every partition, under a key that nothing else has."""
    return lambda w: append(w, NAME, [Record(key, b"v", w.clock.now_ms(), (), p) for p in range(PARTITIONS)])


VERBS: dict[str, Verb] = {
    "sweep": lambda w: sweep(w, NAME, delete=True, allow_unusual=True),
    "append": an_append(b"new"),
    "another": an_append(b"other"),
    "round": a_round,
    "undo": lambda w: undo(w, NAME),
    "expire": lambda w: expire_versions(w, NAME),
}
NEW_KEYS = {"append": b"new", "another": b"other"}


def advance(warehouse: Warehouse, by_ms: int) -> None:
    assert isinstance(warehouse.clock, FakeClock)
    warehouse.clock.advance(by_ms)


def check_nothing_lost(warehouse: Warehouse, done: Mapping[str, Standing], where: str = "") -> None:
    """What was acknowledged is there once, what was refused is not, and every file that is needed is there."""
    check_whole(warehouse, NAME)
    for log in contents(warehouse, NAME):
        keys = [record.key for record in log]
        for name, key in NEW_KEYS.items():
            assert keys.count(key) == (name in done and done[name].refused is None), where
    for kept in warehouse.store.versions(NAME):
        state = warehouse.store.load_version(NAME, kept.version)
        segments = warehouse.store.segments(state) + warehouse.store.view(state)
        assert warehouse.files.missing([segment.path for segment in segments]) == (), where


def leave_behind(warehouse: Warehouse) -> None:
    """What a run that dies leaves."""
    state, files = warehouse.store.load(NAME), warehouse.files
    dead = files.receive(state, [Record(b"x", b"v", 0, (), 0)], now_ms=0, keep_offsets=False)
    files.write(state, dead[0], state.log(0).log_end_offset, warehouse.clock.new_id())


def a_topic() -> Warehouse:
    """One record, and what a run that died has left."""
    warehouse = memory_warehouse(Path())
    settings = settings_of({"sweep.grace.ms": GRACE_MS})
    warehouse.store.create_topic(NewTopic(NAME, "orders", settings, PARTITIONS, warehouse.clock.now_ms()))
    an_append(b"a")(warehouse)
    leave_behind(warehouse)
    advance(warehouse, 2 * GRACE_MS)
    return warehouse


def calls(verb: Verb) -> range:
    """The port calls before which a verb can be paused."""
    alone = Standing(verb, a_topic(), MOST_CALLS)
    alone.go_on()
    assert not alone.reached
    return range(1, alone.calls + 1)


def test_two_sweeps_and_an_append_are_paused_anywhere() -> None:
    """C45: a sweep never drops a run from the abandoned ones while another sweep, which abandoned it, still deletes."""
    append_, sweep_ = VERBS["append"], VERBS["sweep"]
    refused = 0
    for first_at, append_at, last_at in itertools.product(calls(sweep_), calls(append_), calls(sweep_)):
        warehouse = a_topic()
        first = Standing(sweep_, warehouse, first_at)
        appending = Standing(append_, warehouse, append_at)
        advance(warehouse, 2 * GRACE_MS)
        last = Standing(sweep_, warehouse, last_at)
        for service in (first, appending, last):
            service.go_on()
        check_nothing_lost(warehouse, {"append": appending})
        refused += appending.refused is not None
    assert refused, "no sweep got at what the append had written"


def test_a_run_that_several_sweeps_have_passed_gets_an_error() -> None:
    """C45: it is no damage, and no other service deleted its files."""
    for at in calls(VERBS["append"]):
        warehouse = a_topic()
        appending = Standing(VERBS["append"], warehouse, at)
        for _ in range(3):
            leave_behind(warehouse)
            advance(warehouse, 2 * GRACE_MS)
            VERBS["sweep"](warehouse)
        appending.go_on()
        assert appending.refused is None or isinstance(appending.refused, RunExpiredError), appending.where


def test_abandoned_runs_are_remembered_for_a_while() -> None:
    """C45: not for ever, as every commit copies their ids."""
    warehouse = a_topic()
    for more in (RUNS_REMEMBERED + 20, 1):
        for _ in range(more):
            leave_behind(warehouse)
        advance(warehouse, 2 * GRACE_MS)
        VERBS["sweep"](warehouse)
    assert len(warehouse.store.load(NAME).abandoned) == RUNS_REMEMBERED


@pytest.mark.parametrize("config", CONFIGS)
def test_three_services_are_paused_and_continue_in_any_order(config: str) -> None:
    """C6, C7, C45: a sample, by chance but the same each time."""
    luck = random.Random(45)
    together = 0
    for _ in range(SAMPLE):
        warehouse = a_history(memory_warehouse, Path(), {**CONFIGS[config], "cleanup.policy": "compact"})
        names = luck.sample(sorted(VERBS), 3)
        pauses = luck.choices((0, 2 * GRACE_MS, LONG_MS), k=3)
        services: dict[str, Standing] = {}
        for name, pause_ms in zip(names, pauses, strict=True):
            services[name] = Standing(VERBS[name], warehouse, luck.randint(1, 16))
            advance(warehouse, pause_ms)
        order = luck.sample(names, 3)
        together += all(service.reached for service in services.values())
        for name in order:
            services[name].go_on()
        where = ", ".join(f"{name} {services[name].where}" for name in names)
        check_nothing_lost(warehouse, services, f"{where}; pauses {pauses}; went on: {order}")
    assert together > SAMPLE // 8


def test_a_sweep_that_was_suspended_leaves_versions_their_time(tmp_path: Path) -> None:
    """C7: what it saw days ago says nothing of a version that was the newest until just now."""
    for at in calls(VERBS["sweep"]):
        warehouse = iceberg_warehouse(tmp_path / str(at))
        settings = settings_of({"sweep.grace.ms": GRACE_MS, "versions.retention.ms": RETENTION_MS})
        warehouse.store.create_topic(NewTopic(NAME, "orders", settings, PARTITIONS, warehouse.clock.now_ms()))
        an_append(b"a")(warehouse)
        advance(warehouse, 2 * GRACE_MS)
        VERBS["sweep"](warehouse)
        advance(warehouse, RETENTION_MS // 2)
        suspended = Standing(VERBS["sweep"], warehouse, at)
        advance(warehouse, LONG_MS)
        opened = warehouse.store.load(NAME)
        an_append(b"b")(warehouse)
        suspended.go_on()
        advance(warehouse, 1_000)
        VERBS["sweep"](warehouse)
        assert len(warehouse.store.segments(opened)) == PARTITIONS, suspended.where


BEFORE_COMMIT = range(1, 11)
"""Port calls of the round below before it waits for its turn to commit, so that no other service waits for it."""
REPLACED: dict[str, Verb] = {
    "round": a_round,
    "undo": VERBS["undo"],
    "delete-records": lambda w: delete_records(w, NAME, 0, 2),
    "truncate": lambda w: truncate(w, NAME, 0, 0, below_compacted=True),
}


def a_round_to_freeze(make: Callable[[Path], Warehouse], folder: Path, at: int) -> tuple[Standing, list[RoundReport]]:
    """A round over segments of another one and of appends, and where its report comes."""
    warehouse = make(folder)
    settings = settings_of({"sweep.grace.ms": GRACE_MS, "versions.retention.ms": RETENTION_MS})
    warehouse.store.create_topic(NewTopic(NAME, "orders", settings, PARTITIONS, warehouse.clock.now_ms()))
    for verb in (an_append(b"a"), an_append(b"a"), a_round, an_append(b"a"), an_append(b"a")):
        verb(warehouse)
    reports: list[RoundReport] = []
    still = Standing(lambda w: reports.append(compact(w, OracleEngine(w.files), NAME, RunRequest())), warehouse, at)
    assert still.reached
    return still, reports


@pytest.mark.parametrize(
    ("other", "make", "places"),
    [*((other, memory_warehouse, BEFORE_COMMIT) for other in REPLACED), ("round", iceberg_warehouse, (3, 5))],
)
def test_a_round_whose_segments_were_replaced_and_swept_is_planned_again(
    other: str, make: Callable[[Path], Warehouse], places: Sequence[int], tmp_path: Path
) -> None:
    """C44: that they are gone is damage only of a version that still names them."""
    for at in places:
        still, reports = a_round_to_freeze(make, tmp_path / str(at), at)
        REPLACED[other](still.warehouse)
        for verb in (VERBS["sweep"], VERBS["expire"], VERBS["sweep"]):
            advance(still.warehouse, LONG_MS)
            verb(still.warehouse)
        still.go_on()
        assert still.refused is None, (still.where, still.refused)
        errors = [log.error for log in reports[0].failed]
        assert all("stalled" in str(error) for error in errors), (still.where, errors)
        check_whole(still.warehouse, NAME)


def test_a_round_whose_segment_is_lost_fails_at_once_whatever_is_appended_meanwhile() -> None:
    """C8, C44: the newest version needs it as well."""
    still, reports = a_round_to_freeze(memory_warehouse, Path(), 5)
    store, files = still.warehouse.store, still.warehouse.files
    assert isinstance(files, MemoryFiles)
    lost = store.segments(store.load(NAME))[0]
    del files.data[lost.path]
    an_append(b"b")(still.warehouse)
    still.go_on()
    (failed,) = reports[0].failed
    assert failed.partition == lost.partition
    assert f"{lost.path}: the file is missing" in str(failed.error)


def test_who_opens_a_version_after_it_was_swept_gets_an_error(tmp_path: Path) -> None:
    """C7: that is no damage, and nothing is to be restored from a backup."""
    warehouse = iceberg_warehouse(tmp_path)
    settings = settings_of({"sweep.grace.ms": GRACE_MS, "versions.retention.ms": RETENTION_MS})
    warehouse.store.create_topic(NewTopic(NAME, "orders", settings, PARTITIONS, warehouse.clock.now_ms()))
    an_append(b"a")(warehouse)
    reading = Standing(lambda w: contents(w, NAME), warehouse, 2)
    an_append(b"b")(warehouse)
    for _ in range(3):
        advance(warehouse, LONG_MS)
        VERBS["sweep"](warehouse)
    reading.go_on()
    assert isinstance(reading.refused, UnknownVersionError), reading.refused


@pytest.mark.parametrize(("verb", "last"), [(VERBS["append"], 5), (a_batch, 3)], ids=["append", "batch"])
def test_a_lag_counts_from_the_commit_of_an_append_that_was_paused(verb: Verb, last: int) -> None:
    """C14: its records are as old as their commit, and not as the call that was suspended."""
    for at in range(1, last + 1):
        warehouse = memory_warehouse(Path())
        settings = settings_of({"min.compaction.lag.ms": RETENTION_MS, "min.compaction.lag.from": "commit"})
        warehouse.store.create_topic(NewTopic(NAME, "orders", settings, PARTITIONS, warehouse.clock.now_ms()))
        appending = Standing(verb, warehouse, at)
        advance(warehouse, LONG_MS)
        appending.go_on()
        a_round(warehouse)
        log = warehouse.store.load(NAME).log(0)
        assert log.first_dirty_offset == 0 < log.log_end_offset, appending.where


def test_a_look_at_named_files_that_was_paused_finds_no_damage(tmp_path: Path) -> None:
    """C8: manifests that were superseded and swept while they were read are not needed any more."""
    for step in itertools.count():
        warehouse = iceberg_warehouse(tmp_path / str(step))
        settings = settings_of({"sweep.grace.ms": GRACE_MS, "versions.retention.ms": RETENTION_MS})
        warehouse.store.create_topic(NewTopic(NAME, "orders", settings, PARTITIONS, warehouse.clock.now_ms()))
        an_append(b"a")(warehouse)
        warehouse.store.clear_file_cache()

        def meanwhile(warehouse: Warehouse = warehouse) -> None:
            an_append(b"b")(warehouse)
            for _ in range(3):
                advance(warehouse, LONG_MS)
                VERBS["sweep"](warehouse)
            warehouse.store.clear_file_cache()

        with Stop(step, meanwhile) as stop:
            named = warehouse.store.named_files(NAME)
        assert {s.path for s in warehouse.store.segments(warehouse.store.load(NAME))} >= {
            path for path in named.needed if path.endswith(".parquet")
        }
        if not stop.reached:
            break
    assert step > 3, "hardly a call was stopped at"
