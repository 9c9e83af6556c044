"""Documents: failures (C31), rates (C40), sources; and reports, which count by the commits that name them (C42)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from lithify.model.failure import LogFailure
from lithify.model.names import TopicName
from lithify.model.settings.rates import Rates, RatesDocument
from lithify.model.sources.copied_topic import CopiedTopic, Hole
from lithify.model.sources.ends import KnownEnds, SourceEnd
from lithify.model.topic.edit import TopicEdit
from lithify.model.topic.state import TopicState
from lithify.ports.store import LogStore, StaleVersionError, Warehouse
from lithify.service.change.sweep import sweep
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
from lithify.testing.fake_clock import FakeClock
from support.store.builders import NOW_MS, ORDERS, Place, a_report, some_records

WAITING = LogFailure(3, 1_000, 2**43, 2**43 + 60_000, "s3://bucket/a ∅: the file is\nmissing")
STUCK = LogFailure(8, 0, 5, 0, "", quarantined=True)
SOURCE = CopiedTopic("orders ∅", "an id", (Hole(0, 2, 3),))
ENDS = {0: KnownEnds((SourceEnd(2, 5, None), SourceEnd(3, 6, 7))), 11: KnownEnds((), ((4, 9), (10, 11)))}

Put = Callable[[LogStore, TopicState], None]
Get = Callable[[LogStore, TopicState], object]
DOCUMENTS: dict[str, tuple[object, object, Put, Get]] = {
    "failures": (
        {},
        {0: WAITING, 11: STUCK},
        lambda store, state: put_failures(store, state, {11: STUCK, 0: WAITING}),
        failures_of,
    ),
    "rates": (
        None,
        "second",
        lambda store, state: put_rates(store, state, RatesDocument("second", Rates(None, 2))),
        lambda store, state: rates_note(store, state).id,
    ),
    "source": (None, SOURCE, lambda store, state: put_source(store, state, SOURCE), source_of),
    "source ends": ({}, ENDS, lambda store, state: put_source_ends(store, state, ENDS), source_ends_of),
}
"""What there is at first, what there is once `put` has stored it, `put`, and what asks for it."""


class DocumentRules:
    """Rules on documents."""

    @pytest.mark.parametrize("document", DOCUMENTS)
    def test_a_document_is_of_its_topic_and_not_of_a_version(self, place: Place, document: str) -> None:
        """C41: storing one makes no version, and a topic that is recreated has none."""
        nothing, stored, put, get = DOCUMENTS[document]
        state, other = place.create(partitions=12), place.create(TopicName("default", "other"))
        assert get(place.store, state) == nothing
        for _ in range(2):
            put(place.store, state)
            assert get(place.store, state) == get(place.store, place.store.load(ORDERS)) == stored

        assert get(place.store, other) == nothing
        assert place.store.load(ORDERS) == state
        assert place.store.versions(ORDERS) == ()
        after = place.round(place.append(state, some_records("a")))
        assert get(place.store, after) == stored
        sweep(Warehouse(place.store, place.files, FakeClock(2**43)), ORDERS, delete=True)
        assert get(place.store, after) == stored
        place.store.drop_topic(ORDERS)
        assert get(place.store, place.create()) == nothing

    def test_failures_that_are_stored_replace_all_of_before(self, place: Place) -> None:
        state = place.create(partitions=2)
        for failures in ({0: WAITING, 1: WAITING}, {1: STUCK}, {}, {}):
            put_failures(place.store, state, failures)
            assert failures_of(place.store, state) == failures

    def test_rates_of_the_warehouse_are_beside_those_of_topics_and_outlive_them(self, place: Place) -> None:
        state = place.create()
        before, of_topic = rates_note(place.store, None), rates_note(place.store, state)
        assert before.id is None

        put_rates(place.store, None, RatesDocument("all", Rates(1, None)))
        assert rates_note(place.store, state) == of_topic
        put_rates(place.store, state, RatesDocument("one", Rates(2, None)))
        put_rates(place.store, None, RatesDocument("all again", Rates()))

        assert rates_note(place.store, None) == replace(before, id="all again")
        assert rates_note(place.store, state) == replace(of_topic, id="one")
        assert place.store.load(state.name) == state
        place.store.drop_topic(state.name)
        assert rates_note(place.store, None).id == "all again"

    def test_a_report_counts_as_it_was_stored_last_from_the_commit_that_names_it(self, place: Place) -> None:
        state = place.create()
        for version in (1, 2):
            put_report(place.store, state, "r1", a_report(version))
            assert list(reports_of(place.store, state)) == []

        after = reported(place, state, "r1")

        assert list(reports_of(place.store, after)) == [a_report(2)]

    def test_newest_first(self, place: Place) -> None:
        state = place.create()
        for n in range(12):
            put_report(place.store, state, f"r{n}", a_report(n))
            state = reported(place, state, f"r{n}")

        assert [report.version for report in reports_of(place.store, state)] == list(range(11, -1, -1))

    def test_a_report_of_a_stale_commit_does_not_count(self, place: Place) -> None:
        state = place.create()
        put_report(place.store, state, "lost", a_report(1))
        newest = place.append(state, some_records("a"))

        with pytest.raises(StaleVersionError):
            reported(place, state, "lost")

        assert list(reports_of(place.store, newest)) == []

    def test_reports_outlive_appends_and_rounds(self, place: Place) -> None:
        state = place.append(place.create(versions_kept=1), some_records("a"))
        put_report(place.store, state, "first", a_report(1))
        state = place.round(state, report_id="first")
        for n in range(4):
            state = place.round(place.append(state, some_records(f"{n}")))

        assert list(reports_of(place.store, state)) == [a_report(1)]


def reported(place: Place, state: TopicState, report_id: str) -> TopicState:
    """A commit that names the report and changes next to nothing else."""
    log = replace(state.log(0), generation=state.log(0).generation + 1)
    return place.store.commit(state, TopicEdit(report_id, NOW_MS, {0: log}, report_id=report_id))
