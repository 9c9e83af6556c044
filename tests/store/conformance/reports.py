"""Reports: stored first, counted by the commit that names them (C42)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lithify.model.log import TopicEdit, TopicState
from lithify.ports.store import StaleVersionError
from lithify.reports.round import REPORTS_KEPT
from lithify.service.documents import put_report, reports_of
from support.store.builders import NOW_MS, Place, a_report, some_records


class ReportRules:
    """Rules on reports."""

    def test_a_report_counts_from_the_commit_that_names_it(self, place: Place) -> None:
        state = place.create()
        put_report(place.store, state, "r1", a_report(1))
        assert list(reports_of(place.store, state)) == []

        after = self.reported(place, state, "r1")

        assert list(reports_of(place.store, after)) == [a_report(1)]

    def test_newest_first_and_no_more_than_the_newest(self, place: Place) -> None:
        state = place.create()
        for n in range(REPORTS_KEPT + 3):
            put_report(place.store, state, f"r{n}", a_report(n))
            state = self.reported(place, state, f"r{n}")

        reports = [report.version for report in reports_of(place.store, state)]

        assert reports == list(range(REPORTS_KEPT + 2, 2, -1))

    def test_a_report_of_a_stale_commit_does_not_count(self, place: Place) -> None:
        state = place.create()
        put_report(place.store, state, "lost", a_report(1))
        newest = place.append(state, some_records("a"))

        with pytest.raises(StaleVersionError):
            self.reported(place, state, "lost")

        assert list(reports_of(place.store, newest)) == []

    def test_a_report_may_be_stored_again_before_it_counts(self, place: Place) -> None:
        state = place.create()
        put_report(place.store, state, "r1", a_report(1))
        put_report(place.store, state, "r1", a_report(2))

        state = self.reported(place, state, "r1")

        assert list(reports_of(place.store, state)) == [a_report(2)]

    def test_reports_outlive_appends_and_rounds(self, place: Place) -> None:
        state = place.append(place.create(versions_kept=1), some_records("a"))
        put_report(place.store, state, "first", a_report(1))
        state = place.round(state, report_id="first")
        for n in range(4):
            state = place.round(place.append(state, some_records(f"{n}")))

        assert list(reports_of(place.store, state)) == [a_report(1)]

    def reported(self, place: Place, state: TopicState, report_id: str) -> TopicState:
        """A commit that names the report and changes next to nothing else."""
        log = replace(state.log(0), generation=state.log(0).generation + 1)
        return place.store.commit(state, TopicEdit(report_id, NOW_MS, {0: log}, report_id=report_id))
