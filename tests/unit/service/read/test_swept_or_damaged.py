"""Readers of a version that is not kept any more: which of its files are gone, and which are damaged (C7, C8)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random

import pytest

from lithify.columnar.files.access import local_path
from lithify.errors import DamagedError, LithifyError, VersionSweptError
from lithify.model.record import Record
from lithify.model.scan import Everywhere, ScanSettings, ScanTask
from lithify.model.segment import by_file
from lithify.model.settings.topic_settings import settings_of
from lithify.model.topic.state import NewTopic, TopicState
from lithify.ports.files import Batch
from lithify.ports.store import Warehouse
from lithify.service.change.expire import expire_versions
from lithify.service.creation import create_warehouse
from lithify.service.read.fetch import open_log, table_batches
from lithify.service.read.scan_plan import offsets_at, plan_tasks, why_missing
from lithify.service.round.compact import RunRequest, compact
from lithify.service.write.append import append
from lithify.testing.fake_clock import FakeClock
from lithify.testing.oracle_engine import OracleEngine
from support.faults.topics import NAME, iceberg_warehouse

DAY_MS = 86_400_000
CONFIG = {"versions.retention.ms": DAY_MS, "segment.max.dead.ratio": 0.5, "segment.bytes": 1_024}


def two_rounds(folder: Path) -> tuple[Warehouse, TopicState, TopicState]:
    """A topic, its version after the first round, which is no longer kept, and its newest: with other masks."""
    warehouse = iceberg_warehouse(folder)
    create_warehouse(warehouse.store)
    warehouse.store.create_topic(NewTopic(NAME, "orders", settings_of(CONFIG), 1, warehouse.clock.now_ms()))
    engine = OracleEngine(warehouse.files)
    append(warehouse, NAME, [Record(b"k%d" % n, Random(n).randbytes(100), partition=0) for n in range(20)])
    append(warehouse, NAME, [Record(b"k%d" % n, b"new", partition=0) for n in range(2)])
    compact(warehouse, engine, NAME, RunRequest())
    before = warehouse.store.load(NAME)
    append(warehouse, NAME, [Record(b"k%d" % n, b"newer", partition=0) for n in range(4)])
    compact(warehouse, engine, NAME, RunRequest())
    assert isinstance(warehouse.clock, FakeClock)
    warehouse.clock.advance(DAY_MS + 1)
    assert expire_versions(warehouse, NAME) is not None
    return warehouse, before, warehouse.store.load(NAME)


def read(batches: Iterable[Batch]) -> None:
    for batch in batches:
        list(batch.records())


def by_reader(warehouse: Warehouse, state: TopicState) -> Callable[[], None]:
    reader = open_log(warehouse, state, 0, "earliest")
    return lambda: read(reader.poll())


def as_table(warehouse: Warehouse, state: TopicState) -> Callable[[], None]:
    return lambda: read(table_batches(warehouse, state))


def by_tasks(warehouse: Warehouse, state: TopicState) -> Callable[[], None]:
    """As the tasks of a query do it."""
    settings, states = ScanSettings(), (state,)
    start, end = (offsets_at(warehouse, states, Everywhere(at), settings) for at in ("earliest", "latest"))
    return lambda: read_tasks(warehouse, plan_tasks(warehouse, states, start, end, settings))


def read_tasks(warehouse: Warehouse, tasks: Iterable[ScanTask]) -> None:
    for task in tasks:
        for piece in task.pieces:
            try:
                read(warehouse.files.read(piece.segment, 0))
            except DamagedError as error:
                raise why_missing(warehouse, task, piece.segment) or error from error


WAYS = {way.__name__: way for way in (by_reader, as_table, by_tasks)}


def removed(file: Path) -> None:
    file.unlink()


def damaged(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2 :] = bytes(len(content) - len(content) // 2)
    file.write_bytes(content)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("harm", [removed, damaged])
def test_only_files_that_are_gone_and_not_named_were_swept(
    way: str, harm: Callable[[Path], None], tmp_path: Path
) -> None:
    """What is there, or what a kept version names, is damaged, and the error names it."""
    warehouse, before, newest = two_rounds(tmp_path)
    named, told = by_file(warehouse.store.segments(newest)), []
    for path in by_file(warehouse.store.segments(before)):
        again, file = WAYS[way](warehouse, before), Path(local_path(path) or "")
        content = file.read_bytes()
        harm(file)
        with pytest.raises(LithifyError) as error:
            again()
        swept = harm is removed and path not in named
        assert isinstance(error.value, VersionSweptError if swept else DamagedError), (path, error.value)
        assert path in str(error.value)
        file.write_bytes(content)
        told.append((path in named, swept))
    assert {named for named, _ in told} == {True, False}  # a segment, and a mask that another has replaced
