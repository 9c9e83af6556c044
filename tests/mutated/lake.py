"""A small warehouse with every kind of stored file, and all that can be read of it.

orders      in place: two rounds, masks, kept versions, deletes, reports, failures, rates, a source and its ends
devices     side by side: views, on the branch `compacted`
returns     like orders, so that each file has another one of its kind
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from lithify.columnar.files.access import local_path
from lithify.errors import DamagedError, UnknownTopicError
from lithify.model.cursor import Start
from lithify.model.failure import LogFailure
from lithify.model.names import TopicName
from lithify.model.record import Record
from lithify.model.settings.rates import Rates
from lithify.model.settings.topic_settings import settings_of
from lithify.model.sources.copied_topic import CopiedTopic, Hole
from lithify.model.sources.ends import KnownEnds, SourceEnd
from lithify.model.topic.state import NewTopic
from lithify.ports.store import Warehouse
from lithify.reports.overview import Standing
from lithify.rules.reading.pieces import Reading
from lithify.service.creation import create_warehouse
from lithify.service.documents import (
    failures_of,
    put_failures,
    put_promotion,
    put_source,
    put_source_ends,
    rates_note,
    reports_of,
    source_ends_of,
    source_of,
    throttle,
)
from lithify.service.look.overview import StatusWatch
from lithify.service.look.status import kept_versions, topic_status
from lithify.service.read.fetch import open_log, table_batches
from lithify.service.round.compact import RunRequest, compact
from lithify.service.write.append import append
from lithify.store.iceberg import open_store
from lithify.testing.fake_clock import FakeClock
from support.engines.kernel import KernelEngine
from support.topics.whole_logs import check_whole

NOW_MS = 4_000_000_000_000
DAY_MS = 86_400_000
PARTITIONS = 2
EARLIEST: Start = "earliest"

ORDERS = TopicName("default", "orders")
DEVICES = TopicName("default", "devices")
RETURNS = TopicName("default", "returns")
TOPICS: Mapping[TopicName, Mapping[str, object]] = {
    ORDERS: {},
    DEVICES: {"compaction.mode": "side-by-side"},
    RETURNS: {},
}


def opened(folder: Path, *, later_ms: int = 0, ids_from: int = 0) -> Warehouse:
    """The warehouse for a program of its own, whose ids are new."""
    clock = FakeClock(NOW_MS + later_ms)
    for _ in range(ids_from):
        clock.new_id()
    store, files = open_store(str(folder), None, clock.new_id)
    return Warehouse(store, files, clock)


def prepare(folder: Path) -> None:
    """Makes the warehouse."""
    warehouse = opened(folder)
    create_warehouse(warehouse.store)
    for name, config in TOPICS.items():
        settings = settings_of({"delete.retention.ms": DAY_MS, "versions.kept": 3, "segment.bytes": 1024, **config})
        warehouse.store.create_topic(NewTopic(name, str(name), settings, PARTITIONS, NOW_MS))
        append(warehouse, name, standing())
        for batch in range(6):
            append(warehouse, name, records(batch))
            if batch in (2, 4):
                compact(warehouse, KernelEngine(), name, RunRequest(now_ms=NOW_MS + batch))
        state = warehouse.store.load(name)
        failure = LogFailure(3, NOW_MS, NOW_MS + 1, NOW_MS + 2, f"no luck with {name}", quarantined=True)
        put_failures(warehouse.store, state, {1: failure})
        theirs = {"cleanup.policy": "compact", "max.message.bytes": "77"}
        put_source(warehouse.store, state, CopiedTopic(f"{name}-there", "abcdef", (Hole(0, 2, 3),), config=theirs))
        ends = (SourceEnd(17, NOW_MS + len(str(name)), DAY_MS), SourceEnd(19, NOW_MS + 100, None))
        put_promotion(warehouse.store, state)
        put_source_ends(warehouse.store, state, {0: KnownEnds(ends, ((4, 9),)), 1: KnownEnds(ends[:1])})
        throttle(warehouse, name, Rates(1_000_000, 2_000_000))
    throttle(warehouse, None, Rates(3_000_000, 4_000_000))


def standing() -> list[Record]:
    """Keys of which later batches have few, so that rounds mask those."""
    return [Record(b"standing-%d" % n, b"value %d" % n, NOW_MS, partition=n % PARTITIONS) for n in range(50)]


def records(batch: int) -> list[Record]:
    """Keys that come again, deletes, headers, in both partitions."""
    again = [Record(b"standing-%d" % n, b"again", NOW_MS + batch, partition=n % PARTITIONS) for n in (batch, batch + 9)]
    return again + [
        Record(
            key=b"key-%d" % ((batch + n) % 7),
            value=None if n == 8 else b"value %d of batch %d" % (n, batch),
            timestamp=NOW_MS + 100 * batch + n,
            headers=(("by", b"clerk %d" % n),) if n % 3 == 0 else (),
            partition=n % PARTITIONS,
        )
        for n in range(12)
    ]


Look = Callable[[Warehouse, TopicName], Any]


def _records(warehouse: Warehouse, name: TopicName, **how: Any) -> Any:
    state = warehouse.store.load(name)
    return [list(open_log(warehouse, state, p, EARLIEST, Reading(**how))) for p in state.partitions]


def _from_each_offset(warehouse: Warehouse, name: TopicName) -> Any:
    state = warehouse.store.load(name)
    return [next(iter(open_log(warehouse, state, 0, at)), None) for at in range(0, state.log(0).log_end_offset, 5)]


def _of_versions(warehouse: Warehouse, name: TopicName) -> Any:
    kept = [warehouse.store.load_version(name, version.version) for version in warehouse.store.versions(name)]
    return [(state, [list(open_log(warehouse, state, p)) for p in state.partitions]) for state in kept]


def _overview(warehouse: Warehouse, name: TopicName) -> Any:
    shown = next((topic for topic in StatusWatch(warehouse).overview().topics if topic.topic == str(name)), None)
    if shown is None:
        raise UnknownTopicError("it is not in the list")
    if shown.state is Standing.UNREADABLE:
        raise DamagedError(str(shown.error))
    return shown.to_json()


def _at_token(warehouse: Warehouse, name: TopicName) -> Any:
    found = warehouse.store.load_at(name, dict(warehouse.store.change_tokens())[name])
    return found, warehouse.store.segments(found)


def _named(warehouse: Warehouse, name: TopicName) -> Any:
    # Only the table's metadata log names earlier metadata files, and no verb reads them.
    newest = dict(warehouse.store.change_tokens())[name]
    named = warehouse.store.named_files(name)
    return named.needed, {f for f in named.others if f == newest or not f.endswith(".metadata.json")}


def _closings(warehouse: Warehouse, name: TopicName) -> Any:
    # Of segments the records of versions tell; of other files only when they were last changed.
    state = warehouse.store.load(name)
    told = warehouse.store.closings(state, tuple(warehouse.store.stored_files(state)), NOW_MS)
    return sorted((path, closing) for path, closing in told.items() if path.endswith(".parquet"))


def _of_each_key(warehouse: Warehouse, name: TopicName) -> Any:
    state = warehouse.store.load(name)
    keys = (b"key-1", b"standing-3", b"never")
    return [[r for batch in table_batches(warehouse, state, key=key) for r in batch.records()] for key in keys]


LOOKS: Mapping[str, Look] = {
    "state": lambda w, name: w.store.load(name),
    "records": _records,
    "compacted": lambda w, name: _records(w, name, compacted=True),
    "from each offset": _from_each_offset,
    "table": lambda w, name: [r for batch in table_batches(w, w.store.load(name)) for r in batch.records()],
    "of each key": _of_each_key,
    "status": lambda w, name: topic_status(w, w.store.load(name)).to_json(),
    "versions": lambda w, name: [version.to_json() for version in kept_versions(w, name)],
    "of versions": _of_versions,
    "history": lambda w, name: list(reports_of(w.store, w.store.load(name))),
    "failures": lambda w, name: dict(failures_of(w.store, w.store.load(name))),
    "source": lambda w, name: source_of(w.store, w.store.load(name)),
    "source ends": lambda w, name: dict(source_ends_of(w.store, w.store.load(name))),
    "rates": lambda w, name: (rates_note(w.store, w.store.load(name)), rates_note(w.store, None)),
    "named": _named,
    "closings": _closings,
    "topics": lambda w, _: w.store.topics(),
    "overview": _overview,
    "at its token": _at_token,
}
"""All that can be read of a topic, part by part."""


READERS: Mapping[str, tuple[str, ...]] = {
    "segment": ("records", "compacted", "from each offset", "table", "of each key", "of versions"),
    "mask": ("records", "compacted", "from each offset", "table", "of each key", "of versions"),
    "manifest": ("records", "status", "named", "at its token", "of versions"),
    "manifest list": ("records", "status", "named", "at its token", "of versions"),
    "metadata": ("state", "status", "versions", "of versions", "history", "named", "at its token", "topics"),
    "version record": ("versions", "of versions", "closings"),
    "report": ("history",),
    "failures": ("failures", "status", "overview"),
    "source": ("source",),
    "promotion": ("source",),
    "source_ends": ("source ends",),
    "rates": ("rates",),
    "catalog.db": ("state", "topics", "overview", "records"),
    "format": ("state", "topics", "overview", "records"),
}
"""Which parts are read from each kind of file."""


def kinds(folder: Path) -> dict[str, dict[TopicName, list[Path]]]:
    """The files of each kind that the versions of each topic name."""
    warehouse = opened(folder)
    found: dict[str, dict[TopicName, list[Path]]] = {}
    for name in TOPICS:
        for path in map(Path, map(_local, warehouse.store.named_files(name).all)):
            if path.is_file() and (kind := _kind(warehouse, name, path)) is not None:
                found.setdefault(kind, {}).setdefault(name, []).append(path)
    for of_topic in found.values():
        for paths in of_topic.values():
            paths.sort()
    return found


def _kind(warehouse: Warehouse, name: TopicName, path: Path) -> str | None:
    if path.suffix == ".parquet":
        return "mask" if path.name.endswith(".deletes.parquet") else "segment"
    if path.suffix == ".avro":
        return "manifest list" if path.name.startswith("snap-") else "manifest"
    if path.name.endswith(".metadata.json"):
        newest = dict(warehouse.store.change_tokens())[name]  # no verb reads earlier ones
        return "metadata" if newest is not None and Path(_local(newest)) == path else None
    return {"versions": "version record", "reports": "report", "lithify": path.stem}[path.parent.name]


def _local(path: str) -> str:
    return local_path(path) or path


def check_usable(warehouse: Warehouse, name: TopicName) -> None:
    """What is there agrees with itself, and can be appended to and compacted."""
    check_whole(warehouse, name)
    append(warehouse, name, records(9))
    report = compact(warehouse, KernelEngine(), name, RunRequest())
    assert not report.failed, report.failed
    check_whole(warehouse, name)
