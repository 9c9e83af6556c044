"""What state machines do to the source of a replica: appends, cuts, and verbs by their names, refused or not."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from lithify.errors import RefusedError
from lithify.model.record import Record
from lithify.ports.engine import RewriteEngine
from lithify.ports.store import Warehouse
from lithify.service.change.alter import uncompact
from lithify.service.change.cut import delete_records, truncate
from lithify.service.change.expire import expire_versions
from lithify.service.change.retain import retain
from lithify.service.change.sweep import sweep
from lithify.service.change.undo import undo
from lithify.service.round.compact import RunRequest, compact
from lithify.service.write.append import append
from lithify.testing.fake_clock import FakeClock
from support.faults.topics import NAME
from support.topics.replicas import two_warehouses


def three_warehouses(kind: str, folder: Path) -> tuple[list[Warehouse], FakeClock]:
    """Of a source, its replica, and a replica of that, on one clock."""
    source, first = two_warehouses(kind, folder / "a")
    second, _ = two_warehouses(kind, folder / "b")
    clock = source.clock
    assert isinstance(clock, FakeClock)
    if kind == "memory":  # one source of ids, as tables of Iceberg have ids that are unique
        second.store._new_id = clock.new_id  # type: ignore[attr-defined]
        second.files._now_ms = clock.now_ms  # type: ignore[attr-defined]
    return [source, first, Warehouse(second.store, second.files, clock)], clock


def append_keys(source: Warehouse, keys: Iterable[tuple[int, bool]], now_ms: int) -> None:
    """A record for each key, a delete where it is not live; odd keys go into partition 1."""
    rows = [Record(b"k%d" % k, b"v%d" % now_ms if live else None, now_ms, partition=k % 2) for k, live in keys]
    append(source, NAME, rows)


def change(source: Warehouse, verb: str, engine: RewriteEngine) -> None:
    with suppress(RefusedError):
        match verb:
            case "compact":
                compact(source, engine, NAME, RunRequest())
            case "undo":
                undo(source, NAME)
            case "retain":
                retain(source, NAME)
            case "uncompact":
                uncompact(source, NAME, lose_trimmed=True)
            case "expire":
                expire_versions(source, NAME)
            case "sweep":
                sweep(source, NAME, delete=True, allow_unusual=True)
            case _:
                raise ValueError(verb)


def cut(source: Warehouse, partition: int, back: int, *, front: bool) -> None:
    """Deletes what is so far from the log end and older, or truncates what is newer."""
    log = source.store.load(NAME).log(partition)
    at = max(log.log_start_offset, log.log_end_offset - back)
    with suppress(RefusedError):
        if front:
            delete_records(source, NAME, partition, at)
        else:
            truncate(source, NAME, partition, at, below_compacted=True)
