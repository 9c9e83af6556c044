"""The rule on what there is much of: the same over every catalog, as reports do not go through it."""

from __future__ import annotations

from lithify.ports.documents import REPORTS_KEPT
from lithify.service.documents import put_report, reports_of
from store.conformance.documents import reported
from support.store.builders import Place, a_report


class ManyRules:
    """A rule on many reports."""

    def test_no_more_reports_than_the_newest(self, place: Place) -> None:
        state = place.create()
        for n in range(REPORTS_KEPT + 3):
            put_report(place.store, state, f"r{n}", a_report(n))
            state = reported(place, state, f"r{n}")

        reports = [report.version for report in reports_of(place.store, state)]

        assert reports == list(range(REPORTS_KEPT + 2, 2, -1))
