"""With which code an ingest ends, and what it says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lithify.cli.ingests import Telling, ended
from lithify.cli.invocation import Invocation
from lithify.cli.terminal import output
from lithify.model.sources.copied_topic import Hole
from lithify.reports.ingest import IngestBatch, IngestReport, MissedRange

PULSARS = "persistent://public/default/orders"
DONE = IngestReport("t", "t", 1, 5, 10)
FAILED = IngestReport("t", "t", 1, 5, 10, error="a broker went away")
REFUSED = IngestReport("t", "t", 0, 0, 10, error="no topic t", refused=True)


@pytest.mark.parametrize(
    "reports, code",
    [
        ([], 0),  # it was stopped before it began
        ([DONE, DONE], 0),
        ([DONE, FAILED], 1),
        ([FAILED, REFUSED], 1),
        ([DONE, REFUSED], 1),
        ([REFUSED, REFUSED], 2),
    ],
)
def test_it_is_refused_where_every_topic_is(capsys, reports, code):
    assert ended(Invocation(), tuple(reports), stopped=False) == code
    said = capsys.readouterr().err
    assert [one.error in said for one in reports if one.error] == [True] * sum(one.error is not None for one in reports)


def test_topics_are_shown_as_their_own_systems_call_them(capsys):
    """Kafka's copies have names of Lithify."""
    names = [(PULSARS, PULSARS), ("orders", "shop/orders")]
    reports = tuple(IngestReport(topic, source, 1, 5, 10, (Hole(0, 3, 5),)) for source, topic in names)
    ended(Invocation(), reports, stopped=False)
    told = capsys.readouterr()
    for source, topic in names:
        assert [row.split()[:2] for row in told.out.splitlines() if row.startswith(f"{source} ")] == [[source, topic]]
        assert f"\n{topic}" in f"\n{told.err}"


def test_what_may_be_missing_and_what_was_deleted_is_told(capsys):
    ended(Invocation(), (replace(DONE, missed_deletes=(MissedRange(1, 3, 9),), deleted_keys=2),), stopped=False)
    said = capsys.readouterr().err
    assert "t[1]: deletes at offsets 3 to 8 may be missing" in said
    assert "t: 2 keys deleted that the source no longer has" in said


@pytest.mark.parametrize(("reports", "sources"), [([REFUSED], []), ([], []), ([DONE, REFUSED], ["SOURCE", "t"])])
def test_a_copy_that_was_refused_is_no_row_of_zeros(capsys, reports, sources):
    ended(Invocation(), tuple(reports), stopped=False)
    assert [row.split()[0] for row in capsys.readouterr().out.splitlines()] == sources


@pytest.mark.parametrize("json", [True, False])
def test_only_a_copy_that_never_ends_ends_where_nobody_hears_it(monkeypatch, json):
    monkeypatch.setitem(output._lost, not json, BrokenPipeError(32, "Broken pipe"))
    batch = IngestBatch("t", "t", 3, (), 1)
    Telling(Invocation(json=json), None, continuous=False).batch(batch)
    with pytest.raises(BrokenPipeError):
        Telling(Invocation(json=json), None, continuous=True).batch(batch)
