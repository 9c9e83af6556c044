"""Tables, and a key of them, are read by a process that is paused at each port call while others work (C7, C8, C69).

What is read is a table of before or of after, or an error says that the version is gone: never of both, and a file
that a sweep has deleted is no damage.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import pytest

from faults.history import CONFIGS, a_history, iceberg_warehouse, memory_warehouse, prepared_again
from faults.test_frozen import MOST_CALLS, VERBS
from lithify.errors import (
    OffsetOutOfRangeError,
    UnknownTopicError,
    UnknownVersionError,
    VersionSweptError,
)
from lithify.model.cursor import AtTime
from lithify.model.record import Record
from lithify.ports.files import Batch
from lithify.ports.store import Warehouse
from lithify.service.change.expire import expire_versions
from lithify.service.change.sweep import sweep
from lithify.service.read.as_of import table_at
from lithify.service.read.fetch import table_batches
from lithify.store.iceberg.catalog import lock
from lithify.testing.fake_clock import FakeClock
from support.faults.ports import LONG_MS, Freezer, faulty, outcome
from support.faults.topics import NAME
from support.generated.indexed_files import every_file_indexed

ICEBERG_SAMPLE = 6
"""Of all (configuration, read, verb, whether files are swept) so many are tried on Iceberg."""
INDEXED = {name: {**config, "key.index.enable": "true"} for name, config in CONFIGS.items()}
GONE = (UnknownTopicError, UnknownVersionError, VersionSweptError)

Read = Callable[[Warehouse], list[Record]]


def records(batches: Iterable[Batch]) -> list[Record]:
    return [record for batch in batches for record in batch.records()]


def of_key(key: bytes) -> Read:
    return lambda w: records(table_batches(w, w.store.load(NAME), None, key))


def as_of(key: bytes | None) -> Read:
    """A log as it was where the second round ended."""
    return lambda w: records(table_at(w, NAME, 21, 0, key))


READS: Mapping[str, Read] = {
    "table": lambda w: records(table_batches(w, w.store.load(NAME))),
    **{f"key {key.decode()}": of_key(key) for key in (b"k0", b"k4", b"young1", b"never")},
    "table at offsets": as_of(None),
    "key at offsets": as_of(b"k0"),
    "key at a time": lambda w: records(table_at(w, NAME, AtTime(w.clock.now_ms() - LONG_MS // 2), None, b"young0")),
}


def swept_too(verb: Callable[[Warehouse], object]) -> Callable[[Warehouse], None]:
    """The verb, and long after it what the versions of before need is deleted."""

    def done(warehouse: Warehouse) -> None:
        clock = warehouse.clock
        assert isinstance(clock, FakeClock)
        outcome(verb, warehouse)
        for _ in range(2):
            clock.advance(LONG_MS)
            outcome(lambda w: expire_versions(w, NAME), warehouse)
            outcome(lambda w: sweep(w, NAME, delete=True, allow_unusual=True), warehouse)

    return done


def check(anew: Callable[[], Warehouse], name: str, other: str, *, sweeps: bool) -> tuple[int, int]:
    """Pauses it at each of its calls; returns how many there are, and at how many of them it was refused."""
    read, meanwhile = READS[name], swept_too(VERBS[other]) if sweeps else VERBS[other]
    allowed = (*GONE, OffsetOutOfRangeError) if " at " in name else GONE
    before, refused = read(anew()), 0
    for at in range(1, MOST_CALLS):
        warehouse = anew()
        freezer = Freezer(at, lambda warehouse=warehouse: outcome(meanwhile, warehouse))
        try:
            found = read(faulty(warehouse, freezer))
        except allowed:
            refused += 1
            continue
        if not freezer.reached:
            return at - 1, refused
        where = f"{name} frozen before call {at} ({freezer.calls[at - 1]}), then {other}"
        assert found == before or found == read(warehouse), where
    raise AssertionError("it makes calls without end")


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("name", READS)
def test_frozen_anywhere_it_is_the_table_of_one_version(name: str, config: str, tmp_path: Path) -> None:
    anew = prepared_again(memory_warehouse, lambda make, to: a_history(make, to, CONFIGS[config]), tmp_path)
    told = [check(anew, name, other, sweeps=sweeps) for other in VERBS for sweeps in (False, True)]
    calls, refused = map(sum, zip(*told, strict=True))
    assert calls >= 2 * 2 * len(VERBS)
    assert 0 < refused < calls


def test_the_same_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sample of the above on Iceberg, where manifests and indexes of keys are files as well."""
    monkeypatch.setattr(lock, "MAX_WAIT_S", 0.05)
    luck = random.Random(37)
    with every_file_indexed():
        on_disk = {
            config: prepared_again(
                iceberg_warehouse,
                lambda make, to, config=config: a_history(make, to, INDEXED[config]),
                tmp_path / config,
            )
            for config in CONFIGS
        }
        every = list(itertools.product(CONFIGS, READS, VERBS, (False, True)))
        told = [
            check(on_disk[config], name, other, sweeps=sweeps)
            for config, name, other, sweeps in luck.sample(every, ICEBERG_SAMPLE)
        ]
    assert sum(refused for _, refused in told) > 0
