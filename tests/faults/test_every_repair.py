"""A repair that dies at any of its calls leaves a topic that is repaired, or can still be (C6)."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

import pytest

from lithify.api.lake import Lake
from lithify.columnar.files.access import local_path
from lithify.errors import LithifyError
from lithify.model.record import Record
from lithify.ports.store import Warehouse
from lithify.store.iceberg import open_store
from lithify.store.iceberg.io.file_cache import FILE_CACHE
from lithify.testing.fake_clock import FakeClock
from support.processes.system_calls import KilledError, Stop, dies

STEPS = 300
"""More than a repair has."""

CLOCK = FakeClock()


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
