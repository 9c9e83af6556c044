"""Every port call of the verbs that cut, alter, undo and sweep fails, in turn (C6, C26, C31, C33, C35, C40, C43).

As with appends and rounds: after a call was struck the topic is as it was before or as it is after
the verb, whole, and the verb gets through when it is tried again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from faults.prepared import prepared_again
from faults.test_every_call import MAKERS, NAME, PARTITIONS, records, strikes
from lithify.errors import LithifyError, RefusedError
from lithify.lifecycle.clocks import LEAP_MS
from lithify.model.failure import LogFailure
from lithify.model.log import WrittenBatch
from lithify.model.names import TopicName
from lithify.model.settings.rates import Rates
from lithify.model.settings.topic_settings import settings_of
from lithify.model.start_position import Start
from lithify.ports.store import Warehouse
from lithify.reading.pieces import Reading
from lithify.reports.ingest import IngestRequest
from lithify.service.change.alter import alter, uncompact
from lithify.service.change.cut import delete_records, truncate
from lithify.service.change.expire import expire_versions
from lithify.service.change.retain import retain
from lithify.service.change.sweep import sweep
from lithify.service.change.undo import undo
from lithify.service.clock_check import trust_clock
from lithify.service.documents import failures_of, put_failures, rates_note
from lithify.service.ingest.ingest import ingest
from lithify.service.look.quarantine import release
from lithify.service.look.throttle import throttle
from lithify.service.read.fetch import open_log
from lithify.service.round.compact import RunRequest, compact
from lithify.service.write.append import append
from support.engines.oracle import OracleEngine
from support.fake_clock import FakeClock
from support.faults.injection import CrashError, Injector, Kind, faulty
from support.store.staged_batches import append_batch
from support.topics.listed_source import ListedSource
from support.topics.whole_logs import check_whole

Verb = Callable[[Warehouse], object]

START: Start = "earliest"
FROM_SOURCE = records(range(45), keys=5)
"""What each log of a source has from offset 0 on; ours have some 30 of them."""
YEARS_LATER_MS = 10 * LEAP_MS


def picture(warehouse: Warehouse, name: TopicName = NAME) -> object:
    """All that a user sees of the topic: settings, offsets, what plain and compacted readers get."""
    state = warehouse.store.load(name)
    return state.settings, tuple(
        (
            (log.log_start_offset, log.first_dirty_offset, log.log_end_offset, log.generation),
            tuple(open_log(warehouse, state, log.partition)),
            tuple(open_log(warehouse, state, log.partition, START, Reading(compacted=True))),
        )
        for log in state.logs
    )


@dataclass(frozen=True, slots=True)
class Case:
    """A verb, the topic that it is tried on, and whether a second one right after it changes nothing."""

    verb: Verb
    config: dict[str, object]
    again: bool = True
    look: Callable[[Warehouse], object] = picture
    """What the verb changes."""


IN_PLACE: dict[str, object] = {"cleanup.policy": "compact,delete", "retention.ms": 500}
SIDE_BY_SIDE: dict[str, object] = {"compaction.mode": "side-by-side"}


def a_round(warehouse: Warehouse) -> object:
    # The engine's own calls are struck elsewhere: there one log may fail and the other go on.
    files = getattr(warehouse.files, "_real", warehouse.files)
    report = compact(warehouse, OracleEngine(files), NAME, RunRequest())
    if report.failed:
        raise CrashError(report.failed[0].error)
    return report


def kept(warehouse: Warehouse) -> object:
    """The versions that are kept, and what the newest looks like."""
    return [version.version for version in warehouse.store.versions(NAME)], picture(warehouse)


def failing(warehouse: Warehouse) -> object:
    return dict(failures_of(warehouse.store, warehouse.store.load(NAME)))


def a_batch(warehouse: Warehouse) -> object:
    """What two tasks wrote, as the batch of a query: sent again, it is there."""
    files = getattr(warehouse.files, "_real", warehouse.files)
    tasks = [records(numbers, keys=5) for numbers in (range(100, 110), range(110, 120))]
    return append_batch(warehouse, NAME, tasks, WrittenBatch("query", 7), files)


def an_ingest(warehouse: Warehouse) -> object:
    """What a source has behind the log ends: a second time there is nothing left to copy."""
    ports = [getattr(port, "_real", port) for port in (warehouse.store, warehouse.files)]
    logs = {p: [r._replace(partition=p, offset=n) for n, r in enumerate(FROM_SOURCE)] for p in range(PARTITIONS)}
    source = ListedSource(Warehouse(*ports, warehouse.clock), {str(NAME): logs})
    (report,) = ingest(warehouse, source, IngestRequest({}, (str(NAME),)), lambda _batch: None, lambda: False)
    if report.error is not None:
        raise CrashError(report.error)
    return report


def years_later(warehouse: Warehouse) -> object:
    """A clock that is refused, unless somebody says that it is right (C46)."""
    clock = warehouse.clock
    assert isinstance(clock, FakeClock)
    clock.set(YEARS_LATER_MS)
    return trust_clock(warehouse, NAME)


def is_trusted(warehouse: Warehouse) -> object:
    return (warehouse.store.load(NAME).clock_ms or 0) >= YEARS_LATER_MS


def has_rates(warehouse: Warehouse) -> object:
    return rates_note(warehouse.store, warehouse.store.load(NAME)).id is not None


CASES = {
    "retain": Case(lambda w: retain(w, NAME, now_ms=1_545), IN_PLACE),
    "delete-records": Case(lambda w: delete_records(w, NAME, 0, 12), IN_PLACE),
    "truncate": Case(lambda w: truncate(w, NAME, 0, 25), IN_PLACE),
    "truncate-view": Case(lambda w: truncate(w, NAME, 0, 12, below_compacted=True), SIDE_BY_SIDE),
    "alter": Case(lambda w: alter(w, NAME, {"empty.value": "tombstone"}, partitions=3), IN_PLACE),
    "alter-mode": Case(lambda w: alter(w, NAME, {"compaction.mode": "side-by-side"}), IN_PLACE),
    "uncompact": Case(lambda w: uncompact(w, NAME), SIDE_BY_SIDE),
    "undo": Case(lambda w: undo(w, NAME), IN_PLACE, again=False),
    "undo-view": Case(lambda w: undo(w, NAME), SIDE_BY_SIDE, again=False),
    "view": Case(a_round, SIDE_BY_SIDE),
    "trust-clock": Case(years_later, IN_PLACE, look=is_trusted),
    "throttle": Case(lambda w: throttle(w, NAME, Rates(1, 2)), IN_PLACE, look=has_rates),
    "expire": Case(lambda w: expire_versions(w, NAME), IN_PLACE, look=kept),
    "expire-view": Case(lambda w: expire_versions(w, NAME), SIDE_BY_SIDE, look=kept),
    "release": Case(lambda w: release(w, NAME, [1]), IN_PLACE, look=failing),
    "batch": Case(a_batch, IN_PLACE),
    "ingest": Case(an_ingest, IN_PLACE),
    "sweep": Case(lambda w: sweep(w, NAME, delete=True), {**IN_PLACE, "versions.kept": 1}),
}


def prepared(make: Callable[[Path], Warehouse], folder: Path, config: dict[str, object]) -> Warehouse:
    """Two batches, a round, another batch, a round of one log, one batch more; then a day goes by."""
    warehouse = make(folder)
    settings = settings_of({"delete.retention.ms": 0, "retention.ms": -1, **config})
    warehouse.store.create_topic(NAME, "orders", settings, PARTITIONS, warehouse.clock.now_ms())
    engine = OracleEngine(warehouse.files)
    append(warehouse, NAME, records(range(0, 20), keys=6))
    append(warehouse, NAME, records(range(20, 40), keys=7))
    compact(warehouse, engine, NAME, RunRequest(now_ms=1_100))
    append(warehouse, NAME, records(range(40, 50), keys=8))
    compact(warehouse, engine, NAME, RunRequest((0,), now_ms=1_100))
    append(warehouse, NAME, records(range(50, 60), keys=6))
    failure = LogFailure(3, 0, 0, 0, "injected: no luck", quarantined=True)
    put_failures(warehouse.store, warehouse.store.load(NAME), {0: failure, 1: failure})
    clock = warehouse.clock
    assert isinstance(clock, FakeClock)
    clock.advance(86_400_000)
    return warehouse


STRIKES = [
    *(("memory", kind) for kind in Kind),
    # What a service makes of an error does not depend on the store; what is left behind does.
    ("iceberg", Kind.LOSES_ANSWER),
    ("iceberg", Kind.CRASHES_BEFORE),
]


@pytest.mark.parametrize(("store", "kind"), STRIKES, ids=lambda value: getattr(value, "name", value).lower())
@pytest.mark.parametrize("name", CASES)
def test_a_verb_is_all_or_nothing(name: str, store: str, kind: Kind, tmp_path: Path) -> None:
    """C6: struck anywhere, it happened or it did not, and nothing is in between."""
    case = CASES[name]
    anew = prepared_again(MAKERS[store], lambda make, folder: prepared(make, folder, case.config), tmp_path)
    untouched = anew()
    before = case.look(untouched)
    case.verb(untouched)
    after = case.look(untouched)
    assert (before == after) == (name == "sweep"), "the verb changes what is looked at, sweep does not"
    for injector in strikes(kind):
        warehouse = anew()
        acknowledged = _struck(case.verb, warehouse, injector)
        check_whole(warehouse, NAME)
        assert case.look(warehouse) in ([after] if acknowledged else [before, after]), injector
        _once_more(case, warehouse, done=case.look(warehouse) == after)
        check_whole(warehouse, NAME)
        assert case.look(warehouse) == after
        assert acknowledged or injector.struck


def _struck(verb: Verb, warehouse: Warehouse, injector: Injector) -> bool:
    """Whether the verb was acknowledged."""
    try:
        verb(faulty(warehouse, injector))
    except (LithifyError, CrashError):
        return False
    return True


def _once_more(case: Case, warehouse: Warehouse, *, done: bool) -> None:
    """Tries the verb again: what is done already changes nothing, or is not done twice."""
    if not done or case.again:
        try:
            case.verb(warehouse)
        except RefusedError:
            assert done
