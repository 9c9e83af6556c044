"""Everything that only reads a topic or looks at topics, as far as ports can fail under it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from tempfile import TemporaryDirectory

import pytest

from lithify.api.topic import Topic
from lithify.errors import UnknownTopicError
from lithify.hydration import hydrate
from lithify.model.cursor import AtTime, Cursor
from lithify.model.groups.positions import Position
from lithify.model.names import LogId
from lithify.model.record import Record
from lithify.model.scan import AsOfPoint, AsOfVersion, Everywhere, Listed, Matching, ScanSettings
from lithify.model.sources.origin import KAFKA
from lithify.model.sources.source import IngestRequest
from lithify.ports.engine import RunLimits
from lithify.ports.store import Warehouse
from lithify.rules.reading.pieces import Reading
from lithify.service.change.alter import plan_uncompact
from lithify.service.change.cut import plan_delete_records, plan_truncate
from lithify.service.change.expire import versions_to_expire
from lithify.service.change.sweep import refuse_sweep, sweep
from lithify.service.change.undo import plan_undo
from lithify.service.cleaner_rates import with_rates_of_cleaners
from lithify.service.creation import check_known
from lithify.service.documents import reports_of
from lithify.service.ingest.known_sources import check_one_can_begin
from lithify.service.look.known_failures import KnownFailures
from lithify.service.look.lag import group_lag
from lithify.service.look.layout import topic_layout
from lithify.service.look.overview import StatusWatch
from lithify.service.look.quarantine import failing_logs
from lithify.service.look.status import kept_versions, topic_info, topic_infos, topic_status
from lithify.service.look.streams import all_streams, stream_info
from lithify.service.look.warehouse import warehouse_info
from lithify.service.proof.verify import verify
from lithify.service.read.as_of import records_to, table_at
from lithify.service.read.fetch import open_log, open_reader, open_topic, table_batches
from lithify.service.read.scan_plan import offsets_at, plan_as_of, plan_tasks, starts_at, subscribed, why_missing
from lithify.service.read.shown import key_report, records_report
from lithify.service.read.signs import copied_signs
from lithify.service.round.compact import RunRequest, plan_compact
from lithify.testing.oracle_inspector import OracleInspector
from support.faults.ports import FaultyPort, Verb
from support.faults.topics import NAME

COMPACTED = Reading(compacted=True)


def verified(warehouse: Warehouse) -> object:
    """What `verify` says; the calls of its inspector can be struck as well."""
    injector = getattr(warehouse.store, "_striker", None)
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


def consumed(warehouse: Warehouse) -> object:
    """What consumers of the lake take and put into tables, one after the other, and where they then are."""
    topic, table = Topic(warehouse, NAME), dict[bytes, Record]()
    with TemporaryDirectory() as folder:
        with topic.consumer(position=f"{folder}/position") as consumer:
            ends, said = consumer.ends(), list[Record]()
            while not consumer.has_read(ends) or not consumer.caught_up():
                said += consumer.take(0)
            assert consumer.poll(0) is None
            consumer.store_position()
            where = consumer.positions(), sorted(consumer.position().cursors.items())
            consumer.close()
        read = topic.fill(table, position=f"{folder}/another")
    return said, read, sorted(table.items()), where


def hydrated(warehouse: Warehouse) -> object:
    """The rows of a table in a file."""
    with TemporaryDirectory() as folder:
        report = hydrate(Topic(warehouse, NAME), f"{folder}/table.db")
        with closing(sqlite3.connect(f"{folder}/table.db")) as connection:
            rows = connection.execute(f"SELECT * FROM {NAME.topic} ORDER BY key").fetchall()
    return report.records, report.caught_up, rows


def signed(warehouse: Warehouse) -> object:
    """What is compared with a source that has no record in place of the copy's last one (C72)."""
    return copied_signs(warehouse, warehouse.store.load(NAME), {0: (20, 30), 1: (0, 9)})


def scanned(warehouse: Warehouse) -> object:
    """What a job of Spark plans to read, and its error for a file that is gone."""
    states = subscribed(warehouse, Listed((NAME,)))
    said: list[object] = []
    for settings in (ScanSettings(), ScanSettings(compacted=True, min_tasks=9)):
        start = offsets_at(warehouse, states, Everywhere(AtTime(1_035)), settings)
        end = offsets_at(warehouse, states, Everywhere("latest"), settings)
        tasks = plan_tasks(warehouse, states, start, end, settings)
        here = tasks[0].pieces[0].segment
        gone = why_missing(warehouse, tasks[0], replace(here, path="gone"))
        said += [*tasks, str(gone), subscribed(warehouse, Matching(".*"))]
        assert why_missing(warehouse, tasks[0], here) is None
    return said


def scanned_as_of(warehouse: Warehouse) -> object:
    """The same of topics as they were at a point, and in a version."""
    states = subscribed(warehouse, Listed((NAME,)))
    settings = ScanSettings(latest_without_match=True)
    versions = (AsOfVersion(states[0].version), AsOfPoint({str(NAME): {0: 25, 1: 0}}))
    said = [plan_as_of(warehouse, states, point, settings) for point in versions]
    return starts_at(warehouse, states, Everywhere(AtTime(1_035)), settings), *said


def lagged(warehouse: Warehouse) -> object:
    """What a group has left that is in the middle of one segment, and without a position in the other log."""
    state = warehouse.store.load(NAME)
    cursor = Cursor.of(state, state.log(0), 20)
    return group_lag(warehouse, "g", NAME, [Position("g", LogId(NAME, 0), cursor, True, 0)])


def watched(warehouse: Warehouse) -> object:
    """What a gateway shows, which looks again and again."""
    return StatusWatch(warehouse, failures=KnownFailures(warehouse).of).overview()


def missed(warehouse: Warehouse) -> object:
    """A topic that is not there. That the error names the nearest one is not essential."""
    with pytest.raises(UnknownTopicError):
        subscribed(warehouse, Listed((replace(NAME, topic="order"),)))
    return "not there"


READS: dict[str, Verb] = {
    "read": lambda w: tuple(open_reader(w, NAME, 0, "earliest", Reading(), None)),
    "read compacted": lambda w: tuple(open_log(w, w.store.load(NAME), 0, "earliest", COMPACTED)),
    "from a time": lambda w: tuple(open_log(w, w.store.load(NAME), 1, AtTime(1_035))),
    "one record": lambda w: open_reader(w, NAME, 0, "earliest", Reading(), None).read_next(),
    "all logs": lambda w: tuple(open_reader(w, NAME, None, "earliest", Reading(), None)),
    "sought": sought,
    "following": followed,
    "resumed": resumed,
    "consumed": consumed,
    "hydrated": hydrated,
    "signs": signed,
    "scanned": scanned,
    "scanned as of": scanned_as_of,
    "table": lambda w: [r for batch in table_batches(w, w.store.load(NAME)) for r in batch.records()],
    "table of one key": lambda w: [
        r for batch in table_batches(w, w.store.load(NAME), 0, b"k2") for r in batch.records()
    ],
    "table at an offset": lambda w: [r for batch in table_at(w, NAME, 25, 0) for r in batch.records()],
    "table at a time": lambda w: [r for batch in table_at(w, NAME, AtTime(1_000_000), None) for r in batch.records()],
    "read to": lambda w: [
        r for batch in records_to(w, NAME, {0: 25}, 0, "earliest", compacted=True) for r in batch.records()
    ],
    "status": lambda w: topic_status(w, w.store.load(NAME)),
    "status of all": lambda w: StatusWatch(w).overview(),
    "status of all again": watched,
    "layout": lambda w: topic_layout(w, w.store.load(NAME)),
    "browse the latest": lambda w: records_report(w, NAME, 0, None, 10),
    "browse": lambda w: records_report(w, NAME, 0, 5, 10),
    "history of a key": lambda w: key_report(w, NAME, b"k2"),
    "limits of a cleaner": lambda w: with_rates_of_cleaners(w.store, RunLimits()),
    "group describe": lagged,
    "versions": lambda w: kept_versions(w, NAME),
    "versions to expire": lambda w: versions_to_expire(w, w.store.load(NAME), w.clock.now_ms()),
    "history": lambda w: list(reports_of(w.store, w.store.load(NAME))),
    "quarantine list": failing_logs,
    "verify": verified,
    "topic info": lambda w: (check_known(w.store, NAME), topic_info(w, w.store.load(NAME))),
    "a topic that is not there": missed,
    "topic infos": topic_infos,
    "stream info": lambda w: stream_info(w, NAME.stream),
    "streams": all_streams,
    "warehouse info": warehouse_info,
    "whether an ingest can begin": lambda w: check_one_can_begin(
        w.store, KAFKA, IngestRequest({}, (str(NAME), "others"))
    ),
    "plan of a round": lambda w: plan_compact(w, 2, NAME, RunRequest()),
    "plan of delete-records": lambda w: plan_delete_records(w, NAME, 0, 12),
    "plan of truncate": lambda w: plan_truncate(w, NAME, 0, 25),
    "plan of uncompact": lambda w: plan_uncompact(w, NAME),
    "plan of undo": lambda w: plan_undo(w, NAME),
    "plan of a sweep": lambda w: sweep(w, NAME, delete=False),
    "whether a sweep is refused": lambda w: refuse_sweep(w, NAME),
}
