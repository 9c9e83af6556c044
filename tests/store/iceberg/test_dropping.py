"""A topic that is deleted while another program recreates it, or whose deletion dies on the way.

The deletion is stopped before each call to files, folders, database or service. There another program
recreates the topic and appends to it, or the deletion dies and the topic is recreated later. Whatever
the new topic acknowledges stays, and nothing of the old one shows in it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from lithify.columnar.files.access import local_path
from lithify.errors import LithifyError, TopicExistsError, UnknownTopicError
from lithify.model.failure import LogFailure
from lithify.model.settings.rates import Rates, RatesDocument
from lithify.model.sources.copied_topic import CopiedTopic
from lithify.model.topic.state import TopicState
from lithify.service.documents import (
    failures_of,
    put_failures,
    put_rates,
    put_report,
    put_source,
    rates_note,
    source_of,
)
from lithify.store.iceberg import open_store
from lithify.store.iceberg.io.file_cache import FILE_CACHE
from lithify.testing.fake_clock import FakeClock
from lithify.testing.memory_store import MemoryStore, MemoryWarehouse
from store.rest_catalog import a_rest_catalog
from support.processes.system_calls import KilledError, Stop, dies
from support.store.builders import NOW_MS, ORDERS, Place, a_report, an_iceberg_place, lose_file, some_records
from support.store.catalogs import describe_catalog

STEPS = 400
"""More than a deletion has."""

TROUBLE = {0: LogFailure(8, 1, 1, 1, "old trouble", True)}
SOURCE = CopiedTopic("orders", "old")

Open = Callable[[], Place]


@pytest.fixture(params=["embedded", "service with a folder", "service with a mere name", "memory"])
def places(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    """Opens the warehouse as a program of its own does."""
    clock = FakeClock(NOW_MS)
    if request.param == "memory":
        memory = MemoryWarehouse(clock.new_id)
        yield lambda: Place(memory.store, memory.files, clock, lose_file)
        return
    if request.param == "embedded":
        yield lambda: an_iceberg_place(tmp_path / "warehouse", clock)
        return
    named = request.param.endswith("name")
    with a_rest_catalog(tmp_path) as service:
        warehouse = "lake" if named else f"file://{tmp_path}/lake"
        describe_catalog(monkeypatch, type="rest", uri=service.uri, warehouse=warehouse)
        yield lambda: Place(*open_store(None, "prod", clock.new_id), clock, lose_file)


def an_old_topic(place: Place) -> TopicState:
    """With a version that was closed, a report, and every document that a topic has."""
    state = place.append(place.create(), some_records("a", "b"))
    put_report(place.store, state, "report1", a_report(1))
    state = place.round(state, keep=lambda record: record.key == b"b", report_id="report1")
    put_failures(place.store, state, TROUBLE)
    put_source(place.store, state, SOURCE)
    put_rates(place.store, state, RatesDocument("old", Rates()))
    return state


def made_again(place: Place) -> TopicState:
    """A new topic of the name, with a record and documents of its own."""
    state = place.create()
    check_fresh(place, state)
    state = place.append(state, some_records("new"))
    put_failures(place.store, state, {0: replace(TROUBLE[0], error="new trouble")})
    put_source(place.store, state, replace(SOURCE, topic_id="new"))
    return state


def check_fresh(place: Place, state: TopicState) -> None:
    assert place.records(state) == []
    assert failures_of(place.store, state) == {}
    assert source_of(place.store, state) is None
    assert rates_note(place.store, state).id is None


def check_whole(place: Place) -> None:
    FILE_CACHE.clear()
    state = place.store.load(ORDERS)
    assert [record.key for record in place.records(state)] == [b"new"]
    assert failures_of(place.store, state)[0].error == "new trouble"
    assert source_of(place.store, state) == replace(SOURCE, topic_id="new")
    state = place.append(state, some_records("more"))
    assert [record.key for record in place.records(state)] == [b"new", b"more"]


@pytest.fixture
def steps(request: pytest.FixtureRequest) -> range:
    """Before which calls a deletion is stopped: with a service, before every second one, each with one of the two."""
    first = {"service with a folder": 0, "service with a mere name": 1}.get(request.node.callspec.params["places"])
    return range(STEPS) if first is None else range(first, STEPS, 2)


@pytest.fixture
def prepare(request: pytest.FixtureRequest, places: Open, tmp_path: Path) -> Callable[[], None]:
    """Makes the old topic once more; in a folder of its own it is made once, and then copied back."""
    there, saved = tmp_path / "warehouse", tmp_path / "saved"

    def again() -> None:
        if request.node.callspec.params["places"] != "embedded":
            with suppress(UnknownTopicError):
                places().store.drop_topic(ORDERS)
            an_old_topic(places())
        elif not saved.exists():
            an_old_topic(places())
            shutil.copytree(there, saved)
        else:
            shutil.rmtree(there)
            shutil.copytree(saved, there)
            FILE_CACHE.clear()

    return again


def every_step(places: Open, prepare: Callable[[], None], steps: range, stopped: Callable[[int], bool]) -> None:
    """Goes through these steps of a deletion; `stopped` tells whether there is such a step."""
    for step in steps:
        prepare()
        if not stopped(step):
            assert step > 10 or isinstance(places().store, MemoryStore)  # which has nothing to be stopped at
            return
    raise AssertionError("a deletion never ended")


def test_a_topic_made_again_while_the_old_one_is_deleted_loses_nothing(
    places: Open, prepare: Callable[[], None], steps: range
) -> None:
    again: list[TopicState] = []

    def make_again() -> None:
        with suppress(TopicExistsError):  # the old one is there still
            again.append(made_again(places()))

    def stopped(step: int) -> bool:
        again.clear()
        place = places()
        with Stop(step, make_again) as stop:
            place.store.drop_topic(ORDERS)
        if not again:
            made_again(places())
        check_whole(places())
        return stop.reached

    every_step(places, prepare, steps, stopped)


def test_one_deleted_and_made_again_by_others_is_not_deleted_a_second_time(
    places: Open, prepare: Callable[[], None], steps: range, request: pytest.FixtureRequest
) -> None:
    """The deletion froze, and goes on when what it meant to delete is long gone.

    A catalog service deletes by name alone, so there the new topic may go if it was made just then.
    """
    by_name = "service" in request.node.callspec.id

    def replace_it() -> None:
        other = places()
        with suppress(UnknownTopicError):
            other.store.drop_topic(ORDERS)
        made_again(other)

    def stopped(step: int) -> bool:
        place = places()
        before = place.store.load(ORDERS)
        with Stop(STEPS, dies) as loading:
            place.store.load_version(ORDERS, before.version)  # opens the catalog, as a deletion does first
        with Stop(step, replace_it) as stop, suppress(LithifyError):
            place.store.drop_topic(ORDERS)
        if not stop.reached:
            return False
        if places().store.topics() == ():
            assert by_name or step < loading.passed
            made_again(places())
        assert places().store.load(ORDERS).identity != before.identity
        check_whole(places())
        return True

    every_step(places, prepare, steps, stopped)


def test_a_deletion_that_dies_leaves_nothing_to_the_topic_made_again(
    places: Open, prepare: Callable[[], None], steps: range
) -> None:
    def stopped(step: int) -> bool:
        place = places()
        with suppress(KilledError), Stop(step, dies) as stop:
            place.store.drop_topic(ORDERS)
        FILE_CACHE.clear()
        if ORDERS in places().store.topics():  # it died before the catalog forgot the topic: try again
            places().store.drop_topic(ORDERS)
        made_again(places())
        check_whole(places())
        return stop.reached

    every_step(places, prepare, steps, stopped)


def test_what_others_have_put_into_the_folder_stays_and_is_reported(iceberg: Place) -> None:
    state = an_old_topic(iceberg)
    folder = Path(local_path(state.location) or "")
    (folder / "data" / "notes.txt").write_text("mine")
    (folder / "data" / "partition=0" / "part-00000.parquet").write_bytes(b"mine")

    left = iceberg.store.drop_topic(ORDERS)

    theirs = [f"{state.location}/data/{name}" for name in ("notes.txt", "partition=0/part-00000.parquet")]
    assert sorted(left) == theirs
    there = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    assert there == ["data/notes.txt", "data/partition=0/part-00000.parquet"]


def test_a_folder_with_nothing_of_others_goes_whole(iceberg: Place) -> None:
    state = an_old_topic(iceberg)

    assert iceberg.store.drop_topic(ORDERS) == ()

    assert not Path(local_path(state.location) or "").exists()


def test_what_is_appended_before_the_catalog_lets_go_of_a_topic_goes_with_it(tmp_path: Path) -> None:
    """No file of it stays, and so nothing that repair could take for a topic."""
    clock = FakeClock(NOW_MS)
    appended: list[TopicState] = []

    def append_more() -> None:
        place = an_iceberg_place(tmp_path, clock)
        with suppress(UnknownTopicError):
            appended.append(place.append(place.store.load(ORDERS), some_records("late")))

    for step in range(STEPS):
        place = an_iceberg_place(tmp_path, clock)
        state = place.append(place.create(), some_records("a"))
        with Stop(step, append_more):
            place.store.drop_topic(ORDERS)
        assert not Path(local_path(state.location) or "").exists(), step
        if len(appended) <= step:
            break
    assert appended, "the catalog removed it before anything else"
