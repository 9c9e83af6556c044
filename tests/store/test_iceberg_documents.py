"""Small documents beside topics: failures that are damaged, rates where there is no place for them."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from lithify.columnar.files.access import local_path
from lithify.columnar.files.sealed import sealed
from lithify.errors import DamagedError, WarehouseError
from lithify.model.failure import LogFailure
from lithify.model.settings.rates import Rates, RatesDocument
from lithify.reports.ingest import CopiedTopic, Hole
from lithify.service.documents import (
    failures_of,
    put_failures,
    put_rates,
    put_report,
    put_source,
    rates_note,
    reports_of,
    source_of,
)
from lithify.store.iceberg import open_store
from support.fake_clock import FakeClock
from support.processes.system_calls import Stop
from support.store.builders import Place, a_report, an_iceberg_place, some_records
from support.store.catalogs import describe_catalog

FAILURE = LogFailure(1, 2, 3, 4, "e")
RATES = RatesDocument("r", Rates(1, 2))


@pytest.mark.parametrize(
    "text",
    [
        '{"logs": {"0": {"fail',
        "",
        "\x00\x00",
        "[]",
        "{}",
        '{"logs": []}',
        '{"logs": {"zero": {"failures": 1, "first_ms": 2, "last_ms": 3, "retry_ms": 4, "error": "e"}}}',
        '{"logs": {"0": 5}}',
        '{"logs": {"0": {"failures": 1}}}',
        '{"logs": {"0": {"failures": 1, "first_ms": 2, "last_ms": 3, "retry_ms": null, "error": "e"}}}',
        '{"logs": {"0": {"failures": 1, "first_ms": 2, "last_ms": 3, "retry_ms": 4, "error": null}}}',
        '{"logs": {"0": {"failures": 1, "first_ms": 2, "last_ms": 3, "retry_ms": 4, "error": "e", "quarantined": 1}}}',
    ],
)
def test_damaged_failures_are_named_and_may_be_deleted(iceberg: Place, text: str) -> None:
    state = iceberg.create()
    put_failures(iceberg.store, state, {0: FAILURE})
    file = Path(state.location.removeprefix("file://")) / "lithify/failures.json"
    file.write_text(text)

    with pytest.raises(DamagedError, match=r"lithify/failures\.json: .*delete this file") as raised:
        failures_of(iceberg.store, state)

    assert str(file) in raised.value.message
    file.unlink()
    assert failures_of(iceberg.store, state) == {}


def test_failures_of_a_later_version_are_read_without_what_is_unknown(iceberg: Place) -> None:
    state = iceberg.create()
    put_failures(iceberg.store, state, {0: FAILURE})
    file = Path(state.location.removeprefix("file://")) / "lithify/failures.json"
    content = json.loads(file.read_text())
    content["logs"]["0"]["since"] = content["since"] = "4711"
    del content["checksum"]
    file.write_bytes(sealed(str(file), content))

    assert failures_of(iceberg.store, state) == {0: FAILURE}


def test_damaged_failures_do_not_stop_readers_and_writers(iceberg: Place) -> None:
    """C31: only the cleaner asks for them."""
    state = iceberg.create()
    put_failures(iceberg.store, state, {0: FAILURE})
    (Path(state.location.removeprefix("file://")) / "lithify/failures.json").write_text("{")

    state = iceberg.round(iceberg.append(state, some_records("a")))

    assert [r.key for r in iceberg.records(state)] == [b"a"]
    put_failures(iceberg.store, state, {})
    assert failures_of(iceberg.store, state) == {}


SOURCE = CopiedTopic("orders", "id", (Hole(0, 2, 3),))
ODD = ("null", "[]", '"text"', "-1", "1e999", "{}", '{"a": 1}', "[[1]]", '[{"a": 1}]', "[" * 100_000)


@pytest.mark.parametrize("name", ["failures", "source", "superseded", "rates"])
def test_a_document_of_any_other_shape_is_damaged_or_none(iceberg: Place, name: str) -> None:
    """Each key of it in turn. One of before format 3 has no checksum, and neither have these."""
    state = iceberg.create()
    store = iceberg.store
    put_failures(store, state, {0: FAILURE})
    put_source(store, state, SOURCE)
    put_rates(store, state, RATES)
    store.note_named(state, tuple(store.stored_files(state)), store.named_files(state.name), 1)
    file = Path(state.location.removeprefix("file://")) / f"lithify/{name}.json"
    written = json.loads(file.read_text())
    del written["checksum"]
    texts = [json.dumps({**written, key: 4711}).replace("4711", odd) for odd in ODD for key in written]
    looks = {
        "failures": lambda: dict(failures_of(store, state)),
        "source": lambda: str.__add__(source_of(store, state).name, source_of(store, state).topic_id),
        "superseded": lambda: store.closings(state, tuple(store.stored_files(state)), 2),
        "rates": lambda: rates_note(store, state),
    }
    for text in (*ODD, *texts):
        file.write_text(text)
        try:
            looks[name]()
        except DamagedError as error:
            assert str(file) in error.message, text


def test_rates_that_are_damaged_are_noted_as_none(iceberg: Place) -> None:
    """C40: no round stops for them."""
    state = iceberg.create()
    put_rates(iceberg.store, state, RATES)
    note = rates_note(iceberg.store, state)
    assert note.id == RATES.id

    (Path(state.location.removeprefix("file://")) / "lithify/rates.json").write_text("{")

    assert rates_note(iceberg.store, state) == replace(note, id=None)


def test_rates_for_a_warehouse_that_is_not_there_are_refused_and_make_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "warehouse"
    for make in (lambda: None, folder.mkdir):
        make()
        place = an_iceberg_place(folder, FakeClock())
        assert rates_note(place.store, None).id is None
        with pytest.raises(WarehouseError, match=r"there is no warehouse yet.*check the path"):
            put_rates(place.store, None, RATES)
        assert not folder.exists() or list(folder.iterdir()) == []


def test_a_catalog_that_places_topics_itself_has_no_rates_for_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    describe_catalog(monkeypatch, type="sql", uri=f"sqlite:///{tmp_path}/c.db", warehouse="a-mere-name")
    store, _ = open_store(None, "prod", FakeClock().new_id)

    for act in (lambda: put_rates(store, None, RATES), lambda: rates_note(store, None)):
        with pytest.raises(WarehouseError, match=r"catalog prod: .*`lithify throttle TOPIC` works"):
            act()


def test_rates_of_the_warehouse_lie_outside_of_every_topic(iceberg: Place, tmp_path: Path) -> None:
    state = iceberg.create()

    put_rates(iceberg.store, None, RATES)

    assert (tmp_path / "warehouse/.lithify/rates.json").is_file()
    assert not [f for f in iceberg.store.stored_files(state) if f.path.endswith("rates.json")]


def test_a_document_whose_draft_was_swept_is_written_again(iceberg: Place) -> None:
    """C45: a writer that was paused between writing and renaming it gets no error of an unreachable disk."""
    store, state = iceberg.store, iceberg.create()
    folder = Path(state.location.removeprefix("file://"))
    drafts: list[Path] = []

    def sweep() -> None:
        for draft in folder.rglob("*.part"):
            drafts.append(draft)
            draft.unlink()

    for step in count():
        with Stop(step, sweep) as stop:
            put_failures(store, state, {0: replace(FAILURE, failures=step)})
        assert failures_of(store, state)[0].failures == step
        if not stop.reached:
            break
    assert drafts, "no draft was there at any call"


def test_a_document_of_a_topic_that_was_deleted_meanwhile_does_not_bring_its_folder_back(iceberg: Place) -> None:
    """C47: its folder is gone, and so is the place of the document."""
    store, state = iceberg.store, iceberg.create()
    folder = Path(state.location.removeprefix("file://"))
    for step in count():
        dropped: list[Path] = []

        def drop(dropped: list[Path] = dropped) -> None:
            if any(folder.rglob("*.part")):
                shutil.rmtree(folder)
                dropped.append(folder)

        with Stop(step, drop) as stop:
            try:
                put_failures(store, state, {0: FAILURE})
            except WarehouseError:
                assert not folder.exists()
                return
        assert stop.reached
        assert not dropped


ODD_REPORTS = {
    "nothing": {},
    "no logs": {"topic": "t", "version": 1},
    "logs of another type": {"topic": "t", "version": 1, "logs": 7},
    "no log": {"topic": "t", "version": 1, "changed": True, "duration_ms": 1, "now_ms": 1, "logs": [None]},
    "a log without losers": {"topic": "t", "version": 1, "logs": [{"partition": 0}]},
    "losers of another type": {"topic": "t", "version": 1, "logs": [{"losers": []}]},
    "text for a number": a_report(1).to_json() | {"version": "1"},
    "no phases": a_report(1).to_json() | {"logs": [a_report(1).to_json()["logs"][0] | {"phases_ms": None}]},
}


@pytest.mark.parametrize("odd", ODD_REPORTS)
def test_a_report_of_before_checksums_that_says_too_little_is_named(iceberg: Place, odd: str) -> None:
    state = iceberg.append(iceberg.create(), some_records("a"))
    put_report(iceberg.store, state, "r1", a_report(1))
    newest = iceberg.round(state, report_id="r1")
    report = Path(local_path(state.location) or "") / "lithify" / "reports" / "r1.json"
    report.write_text(json.dumps(ODD_REPORTS[odd]))

    with pytest.raises(DamagedError, match=str(report)):
        list(reports_of(iceberg.store, newest))
