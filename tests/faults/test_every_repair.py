"""A repair that dies at any of its calls leaves a topic that is repaired, or can still be (C6)."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from faults.keyed_appends import START_MS
from faults.keyed_appends import Lake as KeyedLake
from lithify.api.lake import Lake
from lithify.columnar.files.access import local_path
from lithify.errors import LithifyError, UnknownOutcomeError
from lithify.model.record import Record
from lithify.ports.store import Warehouse
from lithify.store.iceberg import open_store
from lithify.store.iceberg.io.file_cache import FILE_CACHE
from lithify.testing.fake_clock import FakeClock
from support.faults.ports import CrashError
from support.faults.topics import NAME, iceberg_warehouse
from support.processes.system_calls import KilledError, Stop, dies
from support.topics.whole_logs import contents

STEPS = 300
"""More than a repair has."""

CLOCK = FakeClock()


class DiesAfterCommit:
    """Strikes a gateway, whose append has landed, before it can note that."""

    def call(self, name: str, action: Callable[[], Any]) -> Any:
        answer = action()
        if name == "commit":
            raise CrashError(name)
        return answer


def a_lake(folder: Path) -> Lake:
    FILE_CACHE.clear()
    return Lake(Warehouse(*open_store(str(folder), None, CLOCK.new_id), CLOCK))


def a_broken_topic(folder: Path, *, newest: bool, catalog: bool) -> None:
    """Without its newest metadata, so that it has to be recreated, or without catalog, or both."""
    topic = a_lake(folder).create_topic("orders")
    for value in (b"1", b"2", b"3"):
        topic.append([Record(b"a", value), Record(b"b", value)])
    if newest:
        place = Path(local_path(topic.state().location) or "") / "metadata"
        max(place.glob("*.metadata.json"), key=lambda path: path.name).unlink()
    if catalog:
        (folder / "catalog.db").unlink()


def a_repair(folder: Path) -> None:
    """All of a repair's ways but that of a deletion that broke off."""
    for newest, catalog in ((True, False), (False, True)):
        place = folder / f"{newest}-{catalog}"
        a_broken_topic(place, newest=newest, catalog=catalog)
        a_lake(place).repair("orders", repair=True)


@pytest.mark.parametrize(("newest", "catalog"), [(True, False), (False, True), (True, True)])
def test_a_repair_that_dies_is_repeated(tmp_path: Path, newest: bool, catalog: bool) -> None:
    folder, saved = tmp_path / "warehouse", tmp_path / "saved"
    a_broken_topic(folder, newest=newest, catalog=catalog)
    shutil.copytree(folder, saved)
    for step in range(0, STEPS, 2 if newest and catalog else 1):
        shutil.rmtree(folder)
        shutil.copytree(saved, folder)
        with suppress(KilledError), Stop(step, dies) as stop:
            a_lake(folder).repair("orders", repair=True)
        a_lake(folder).repair("orders", repair=True)

        topic = a_lake(folder).topic("orders")
        assert [record.value for record in topic.reader(0)] == [b"1", b"1", b"2", b"2", b"3", b"3"]
        topic.append([Record(b"a", b"4")])
        if not stop.reached:
            assert step > 10
            return
    raise AssertionError("a repair never ended")


@pytest.mark.parametrize("landed", [False, True])
def test_an_append_with_a_key_that_was_repaired_is_not_done_again(tmp_path: Path, landed: bool) -> None:
    """C75: the metadata of its commit is lost, but its segments are found."""
    FILE_CACHE.clear()
    lake = KeyedLake.made(iceberg_warehouse(tmp_path, START_MS))
    lake.until_acknowledged(lake.gateway(), "before")
    lake.send(lake.gateway(None if landed else DiesAfterCommit()), "a")
    place = Path(local_path(lake.warehouse.store.load(NAME).location) or "") / "metadata"
    max(place.glob("*.metadata.json"), key=lambda path: path.name).unlink()
    FILE_CACHE.clear()
    Lake(lake.warehouse).repair(str(NAME), repair=True)

    if landed:
        lake.until_acknowledged(lake.gateway(), "a")
    else:
        with pytest.raises(UnknownOutcomeError):
            lake.until_acknowledged(lake.gateway(), "a")
    lake.until_acknowledged(lake.gateway(), "b")
    lake.check(["b"])
    assert sum((record.value or b"").startswith(b"a/") for log in contents(lake.warehouse, NAME) for record in log) == 3


@pytest.mark.parametrize(("newest", "catalog"), [(True, False), (False, True)])
def test_a_repair_that_was_paused_undoes_nothing(tmp_path: Path, newest: bool, catalog: bool) -> None:
    """C6: another one was done meanwhile, and what was appended after it stays."""
    folder, saved = tmp_path / "warehouse", tmp_path / "saved"
    a_broken_topic(folder, newest=newest, catalog=catalog)
    shutil.copytree(folder, saved)
    a_lake(folder).repair("orders")  # imports what it needs

    def meanwhile() -> None:
        a_lake(folder).repair("orders", repair=True)
        a_lake(folder).topic("orders").append([Record(b"a", b"4")])

    for step in range(0, STEPS, 2):
        shutil.rmtree(folder)
        shutil.copytree(saved, folder)
        with Stop(step, meanwhile) as stop, suppress(LithifyError):
            a_lake(folder).repair("orders", repair=True)
        if not stop.reached:
            assert step > 10
            return
        assert b"4" in [record.value for record in a_lake(folder).topic("orders").reader(0)], step
    raise AssertionError("a repair never ended")
