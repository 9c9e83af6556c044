"""The verbs that cut, alter, undo and sweep, each with a topic on which it changes something."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

from lithify.errors import CoordinationError, EngineError, LithifyError, RefusedError
from lithify.model.names import TopicName
from lithify.model.settings.rates import Rates
from lithify.model.sources.copied_topic import CopiedTopic
from lithify.model.sources.origin import KAFKA, OWN, PROMOTED, CopyOf
from lithify.model.sources.source import IngestRequest
from lithify.model.stored_file import FileKind
from lithify.model.topic.edit import TopicEdit
from lithify.model.topic.log import WrittenBatch
from lithify.ports.documents import DocumentKind
from lithify.ports.store import Warehouse
from lithify.rules.lifecycle.clocks import LEAP_MS
from lithify.service.change.alter import alter, uncompact
from lithify.service.change.cut import delete_records, truncate
from lithify.service.change.expire import expire_versions
from lithify.service.change.retain import retain
from lithify.service.change.streams import create_stream, edit_stream
from lithify.service.change.sweep import sweep
from lithify.service.change.undo import undo
from lithify.service.change.upgrade import upgrade
from lithify.service.clock_check import trust_clock
from lithify.service.documents import (
    failures_of,
    put_cleaners,
    put_heartbeat,
    put_source,
    rates_note,
    source_of,
    throttle,
    warehouse_format,
)
from lithify.service.ingest.ingest import ingest
from lithify.service.ingest.promote_copy import promote_copy
from lithify.service.look.quarantine import release
from lithify.service.look.streams import stream_info
from lithify.service.read.fetch import open_log
from lithify.service.round.compact import RunRequest, compact
from lithify.service.round.run import Run, run_rounds
from lithify.service.write.append import append
from lithify.testing.fake_clock import FakeClock
from lithify.testing.oracle_engine import OracleEngine
from support.engines.kernel import KernelEngine
from support.faults.ports import FaultyPort, Kind, Verb
from support.faults.topics import IN_PLACE, NAME, PARTITIONS, SIDE_BY_SIDE, picture, records
from support.topics.known_positions import KnownPositions
from support.topics.listed_source import ListedSource
from support.topics.staged_batches import append_batch

FROM_SOURCE = records(range(45), keys=5)
"""What each log of a source has from offset 0 on; ours have some 30 of them."""
YEARS_LATER_MS = 10 * LEAP_MS
CREATED = TopicName("eu", "created")


@dataclass(frozen=True, slots=True)
class Case:
    """A verb, the topic that it is tried on, and whether a second one right after it changes nothing."""

    verb: Verb
    config: dict[str, object]
    again: bool = True
    look: Callable[[Warehouse], object] = picture
    """What the verb changes."""


def a_round(warehouse: Warehouse) -> object:
    # The engine's own calls are struck elsewhere: there one log may fail and the other go on.
    files = getattr(warehouse.files, "_real", warehouse.files)
    report = compact(warehouse, OracleEngine(files), NAME, RunRequest())
    if report.failed:
        raise EngineError(str(report.failed[0].error))
    return report


def a_round_of_kernels(warehouse: Warehouse) -> object:
    """Of one log, by the kernels of the Spark engine; it raises what the log met."""
    result = run_rounds(Run(warehouse, KernelEngine()), {NAME: (0,)})[NAME]
    for error in [result] if isinstance(result, LithifyError) else result.errors.values():
        raise error
    return result


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


def an_ingest(warehouse: Warehouse, *, start: int = 0, accepts_loss: bool = False) -> object:
    """What a source has from `start` on behind the log ends: a second time there is nothing left to copy.

    The topic is a copy as an earlier Lithify left it, which says so only in its document (C70).
    """
    ports = [getattr(port, "_real", port) for port in (warehouse.store, warehouse.files)]
    numbered = list(enumerate(FROM_SOURCE))[start:]
    logs = {p: [r._replace(partition=p, offset=n) for n, r in numbered] for p in range(PARTITIONS)}
    real = Warehouse(*ports, warehouse.clock)
    if source_of(real.store, state := real.store.load(NAME)) is None:
        put_source(real.store, state, CopiedTopic(str(NAME), ""))
    source = ListedSource(real, {str(NAME): logs})
    request = IngestRequest({}, (str(NAME),), accepts_loss=accepts_loss)
    (report,) = ingest(warehouse, source, request, lambda _batch: None, lambda: False)
    if report.error is not None:
        raise EngineError(report.error)
    return report


def a_promotion(warehouse: Warehouse) -> object:
    """Of a copy of a Kafka topic."""
    store = getattr(warehouse.store, "_real", warehouse.store)
    if (state := store.load(NAME)).origin == OWN:
        store.commit(state, TopicEdit("marked", 1_000_000, {}, origin=CopyOf(KAFKA, "there")))
    return promote_copy(warehouse, NAME)


def a_trim(warehouse: Warehouse) -> object:
    """Of a backlog that a group has read; it raises why the positions could not be read."""
    state, groups = getattr(warehouse.store, "_real", warehouse.store).load(NAME), KnownPositions()
    for log in state.logs:
        groups.commit(state, log.partition, "g", log.log_end_offset, 1_000_000)
    striker = getattr(warehouse.groups, "_striker", None)
    known = replace(warehouse, groups=groups if striker is None else FaultyPort(groups, striker))
    report = retain(known, NAME)
    if report.groups_error is not None:
        raise CoordinationError(report.groups_error)
    return report


def a_stream(warehouse: Warehouse) -> object:
    """Created and looked at."""
    create_stream(warehouse, CREATED.stream, {"ttl": 5})
    return stream_info(warehouse, CREATED.stream)


def an_edit(warehouse: Warehouse) -> object:
    """Of the stream that the topic is in; it raises what the topic met."""
    report = edit_stream(warehouse, NAME.stream, {"compression": "lz4"})
    for topic in report.failed:
        raise EngineError(str(topic.error))
    return report


def inherited(warehouse: Warehouse) -> object:
    return warehouse.store.load(NAME).settings.compression_type, picture(warehouse)


def streams(warehouse: Warehouse) -> object:
    return warehouse.store.stream_attributes(warehouse.store.streams())


def a_first_append(warehouse: Warehouse) -> object:
    """To a topic that its stream creates."""
    with suppress(RefusedError):
        create_stream(warehouse, CREATED.stream, {"autocreate": "true", "defaultpartitions": PARTITIONS})
    return append(warehouse, CREATED, records(range(4), keys=2))


def appended(warehouse: Warehouse) -> object:
    if CREATED not in warehouse.store.topics():
        return []
    state = warehouse.store.load(CREATED)
    return [record.value for log in state.logs for record in open_log(warehouse, state, log.partition)]


def years_later(warehouse: Warehouse) -> object:
    """A clock that is refused, unless it is confirmed (C46)."""
    clock = warehouse.clock
    assert isinstance(clock, FakeClock)
    clock.set(YEARS_LATER_MS)
    return trust_clock(warehouse, NAME)


def is_trusted(warehouse: Warehouse) -> object:
    return (warehouse.store.load(NAME).clock_ms or 0) >= YEARS_LATER_MS


def has_rates(warehouse: Warehouse) -> object:
    return rates_note(warehouse.store, warehouse.store.load(NAME)).id is not None


def stored_cleaners(warehouse: Warehouse) -> object:
    return warehouse.store.get_document(None, DocumentKind.CLEANERS)


def heartbeats(warehouse: Warehouse) -> object:
    files = warehouse.store.stored_files(warehouse.store.load(NAME))
    return {file.path for file in files if file.kind is FileKind.HEARTBEAT}


CASES = {
    "retain": Case(lambda w: retain(w, NAME, now_ms=1_545), IN_PLACE),
    "trim": Case(a_trim, {**SIDE_BY_SIDE, "backlog.trim.groups": "g"}),
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
    "cleaners": Case(lambda w: put_cleaners(w.store, 2), IN_PLACE, look=stored_cleaners),
    "heartbeat": Case(lambda w: put_heartbeat(w.store, w.store.load(NAME), "run"), IN_PLACE, look=heartbeats),
    "expire": Case(lambda w: expire_versions(w, NAME), IN_PLACE, look=kept),
    "expire-view": Case(lambda w: expire_versions(w, NAME), SIDE_BY_SIDE, look=kept),
    "quarantine release": Case(lambda w: release(w, NAME, [1]), IN_PLACE, look=failing),
    "batch": Case(a_batch, IN_PLACE),
    "append-expected-end": Case(lambda w: append(w, NAME, records(range(60, 70), 9), expected_end={0: 30}), IN_PLACE),
    "ingest": Case(an_ingest, IN_PLACE),
    "promote": Case(a_promotion, IN_PLACE, again=False, look=lambda w: w.store.load(NAME).origin == PROMOTED),
    "create-stream": Case(a_stream, IN_PLACE, look=streams),
    "edit-stream": Case(an_edit, IN_PLACE, look=inherited),
    "first-append": Case(a_first_append, IN_PLACE, again=False, look=appended),
    "upgrade": Case(upgrade, IN_PLACE, look=lambda w: warehouse_format(w.store)),
    "sweep": Case(lambda w: sweep(w, NAME, delete=True), {**IN_PLACE, "versions.kept": 1}),
}


ON_DISK = [("iceberg", Kind.LOSES_ANSWER), ("iceberg", Kind.CRASHES_AFTER)]
"""What a service makes of an error does not depend on the store; what is left behind does."""
STRIKES = [*(("memory", kind) for kind in Kind), *ON_DISK]
