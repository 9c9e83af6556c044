"""Small documents beside topics: failures that are damaged, rates where there is no place for them."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from lithify.columnar.files.sealed import sealed
from lithify.errors import DamagedError, WarehouseError
from lithify.model.failure import LogFailure
from lithify.model.settings.rates import Rates, RatesDocument
from lithify.model.sources.copied_topic import CopiedTopic, Hole
from lithify.model.sources.ends import KnownEnds, SourceEnd
from lithify.service.documents import (
    failures_of,
    put_failures,
    put_rates,
    put_report,
    put_source,
    put_source_ends,
    rates_note,
    reports_of,
    source_ends_of,
    source_of,
)
from lithify.store.iceberg import open_store
from lithify.testing.fake_clock import FakeClock
from support.processes.system_calls import Stop
from support.store.builders import Place, a_report, an_iceberg_place, some_records
from support.store.catalogs import describe_catalog

FAILURE = LogFailure(1, 2, 3, 4, "e")
RATES = RatesDocument("r", Rates(1, 2))


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
NO_DOCUMENT = ("", "\x00\x00", '{"a', "null", "[]", '"text"', "-1", "{}", "[[1]]", '[{"a": 1}]', "[" * 100_000)
ODD: tuple[Any, ...] = (None, [], "text", -1, float("inf"), {}, {"a": 1}, [[1]], [{"a": 1}])


def edited(content: Any) -> Iterator[Any]:
    """The document with each of its values, however deep, odd or removed."""
    places = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for at, value in list(places):
        for other in (*ODD, *edited(value)):
            changed = copy.copy(content)
            changed[at] = other
            yield changed
        left = copy.copy(content)
        del left[at]
        yield left


@pytest.mark.parametrize("name", ["failures", "source", "source_ends", "superseded", "rates", "reports/r1"])
def test_a_document_of_any_other_shape_is_damaged_or_still_says_something(iceberg: Place, name: str) -> None:
    """One of before format 3 has no checksum, and neither have these. C40: rates that are damaged are none."""
    store, state = iceberg.store, iceberg.append(iceberg.create(), some_records("a"))
    put_report(store, state, "r1", a_report(1))
    state = iceberg.round(state, report_id="r1")
    put_failures(store, state, {0: FAILURE})
    put_source(store, state, SOURCE)
    put_source_ends(store, state, {0: KnownEnds((SourceEnd(2, 5, 7),), ((4, 9),))})
    put_rates(store, state, RATES)
    store.note_named(state, tuple(store.stored_files(state)), store.named_files(state.name), 1)
    file = Path(state.location.removeprefix("file://")) / f"lithify/{name}.json"
    written = json.loads(file.read_text())
    del written["checksum"]
    looks: dict[str, Callable[[], object]] = {
        "failures": lambda: [replace(f, failures=f.failures + 1) for f in failures_of(store, state).values()],
        "source": lambda: str.__add__(source_of(store, state).name, source_of(store, state).topic_id),  # type: ignore[union-attr]
        "source_ends": lambda: source_ends_of(store, state),
        "superseded": lambda: store.closings(state, tuple(store.stored_files(state)), 2),
        "rates": lambda: rates_note(store, state),
        "reports/r1": lambda: [report.to_json() for report in reports_of(store, state)],
    }

    def told(text: str) -> bool:
        file.write_text(text)
        try:
            looks[name]()
        except DamagedError as error:
            assert str(file) in error.message, text
            assert error.hint
            return True
        return False

    assert not told(json.dumps(written))
    assert [text[:20] for text in NO_DOCUMENT if not told(text)] == (
        [text[:20] for text in NO_DOCUMENT] if name == "rates" else []
    )
    damaged = [told(json.dumps(other)) for other in edited(written)]
    assert name == "rates" or sum(damaged) > len(damaged) // 2
    file.unlink()
    assert name != "failures" or failures_of(store, state) == {}, "as the hint says"


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
        with pytest.raises(WarehouseError, match=r"catalog prod: .*`lake.topic\(TOPIC\).throttle\(\)`"):
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
