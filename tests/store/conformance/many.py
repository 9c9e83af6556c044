"""Rules on what there is much of: the same over every catalog, as neither goes through it."""

from __future__ import annotations

from lithify.model.record import Record
from lithify.ports.documents import REPORTS_KEPT
from lithify.service.documents import put_report, reports_of
from store.conformance.documents import reported
from support.store.builders import NOW_MS, Place, a_report


class ManyRules:
    """Rules on many reports and many segments."""

    def test_no_more_reports_than_the_newest(self, place: Place) -> None:
        state = place.create()
        for n in range(REPORTS_KEPT + 3):
            put_report(place.store, state, f"r{n}", a_report(n))
            state = reported(place, state, f"r{n}")

        reports = [report.version for report in reports_of(place.store, state)]

        assert reports == list(range(REPORTS_KEPT + 2, 2, -1))

    def test_a_view_may_have_many_segments(self, place: Place) -> None:
        value = bytes(range(256)) * 4000  # a megabyte; a segment ends where a row group does
        records = [Record(b"%d" % n, value, NOW_MS, partition=0) for n in range(140)]
        state = place.append(place.create(segment_bytes=1024), records)

        state = place.cover(state, keep=lambda record: record.offset is not None and record.offset % 2 == 0)

        assert len(place.store.view(state)) > 1
        assert [r.offset for r in place.view(state)] == list(range(0, 140, 2))
