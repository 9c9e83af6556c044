"""Every law that a round must keep, and a round that breaks it (C4, C6, C14, C16, C18, C39)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lithify.compaction.audit import audit
from lithify.compaction.groups import RewriteGroup, SegmentOutcome
from lithify.compaction.rules import Cause
from lithify.errors import AuditError
from lithify.model.log import TombstoneStep
from support.builders import a_log, some_settings
from support.pure_rounds import PureLog


def a_round(**config):
    """A round that keeps every law: a tombstone superseded in the clean part, three segments left.

    Kept: s0 (clean), rewritten: s1 (clean), s2 (dirty), each into a segment of its own.
    """
    settings = some_settings(segment_bytes=1024, **config)
    log = PureLog()
    log.append(a_log("a=" + "x" * 900).records)
    log.append(a_log("b=∅ c=" + "x" * 900, first_offset=1).records)
    log.state = replace(log.state, first_dirty_offset=3, steps=(TombstoneStep(3, 1000, 1),))
    log.append(a_log("b=2 d=∅ d=3 e=" + "x" * 900, first_offset=3).records)
    outcome = log.round(settings, 2000)
    assert [len(g.sources) for g in outcome.grouping.groups] == [1, 1]
    assert [s.path for s in outcome.grouping.kept] == ["s0"]
    return outcome, tuple(zip(outcome.grouping.groups, ((s,) for s in outcome.written), strict=True))


def broken(outcome=None, written=None):
    """The message of an audit of the round of `a_round`, changed."""
    good, good_written = a_round()
    with pytest.raises(AuditError) as error:
        audit("orders-3", outcome or good, good_written if written is None else written)
    assert "orders-3: the round does not add up" in str(error.value)
    return str(error.value)


def with_findings(**changes):
    outcome, _ = a_round()
    return replace(outcome, findings=replace(outcome.findings, **changes))


def test_a_round_that_keeps_the_laws_passes():
    audit("orders-3", *a_round())


@pytest.mark.parametrize(
    "base",
    [{"log_start_offset": 8}, {"first_dirty_offset": 8, "log_end_offset": 9}, {"log_end_offset": 6}],
    ids=["S above H", "D above H", "H above E"],
)
def test_start_dirty_horizon_and_end_ascend(base):
    """C14: S <= D <= H <= E."""
    outcome, _ = a_round()
    plan = replace(outcome.plan, base=replace(outcome.plan.base, **base))
    assert "S <= D <= H <= E does not hold" in broken(replace(outcome, plan=plan))


@pytest.mark.parametrize("count", [None, -1, 5])
def test_every_scanned_segment_is_counted(count):
    """C4: none is forgotten, and none has more survivors than records."""
    outcome, _ = a_round()
    counts = dict(outcome.findings.survivors)
    counts["s2"] = count
    if count is None:
        del counts["s2"]
    assert f"s2: {count} of 4 records survive" in broken(with_findings(survivors=counts))


def test_losers_add_up_to_what_is_missing():
    """C4: a record that goes has a cause."""
    outcome, _ = a_round()
    counts = dict(outcome.findings.survivors) | {"s1": 0}
    assert "3 records go, 2 are accounted for by cause" in broken(with_findings(survivors=counts))


def test_a_keyless_record_may_not_go_where_keyless_records_are_retained():
    """C16."""
    outcome, written = a_round(null_key="retain")
    outcome = replace(outcome, findings=replace(outcome.findings, losers={Cause.SUPERSEDED: 1, Cause.NO_KEY: 1}))
    assert "1 keyless records go although null.key=retain" in broken(outcome, written)


def test_a_tombstone_may_not_go_before_one_has_expired():
    """C18."""
    found = with_findings(losers={Cause.SUPERSEDED: 1, Cause.EXPIRED_TOMBSTONE: 1})
    assert "1 tombstones go although none has expired" in broken(found)


@pytest.mark.parametrize("lost", [(-1,), (2,)])
def test_no_more_tombstones_go_than_their_step_has(lost):
    """C19."""
    assert f"{lost[0]} of the 1 tombstones that end at 3 go" in broken(with_findings(clean_tombstones_lost=lost))


def test_tombstones_are_counted_for_every_step():
    """C19."""
    assert "counted for 2 steps, the log has 1" in broken(with_findings(clean_tombstones_lost=(1, 0)))


def test_no_more_new_tombstones_stay_than_came():
    """C19."""
    assert "2 of 1 new tombstones stay" in broken(with_findings(dirty_tombstones_kept=2))


def test_a_value_may_not_go_for_its_age_where_age_does_not_count():
    """C24: neither with `compact` alone nor in a view."""
    found = with_findings(losers={Cause.SUPERSEDED: 1, Cause.PAST_RETENTION: 1})
    assert "1 values go although none is past retention" in broken(found)


def test_a_tombstone_is_held_only_by_records_that_wait():
    """C20: none do in this round."""
    assert "1 expired tombstones stay although no record waits" in broken(with_findings(tombstones_held=1))


@pytest.mark.parametrize("clean", [-1, 2])
def test_of_the_held_tombstones_some_are_clean(clean):
    """C20, C19: the counts of the steps are made of these."""
    found = with_findings(tombstones_held=1, clean_tombstones_held=clean)
    assert f"{clean} of 1 held tombstones are clean" in broken(found)


def test_segments_do_not_overlap():
    """C39: order is kept, offsets never interleave."""
    outcome, _ = a_round()
    first, second = outcome.written
    overlapping = replace(outcome, written=(first, replace(second, base_offset=first.end_offset - 1)))
    assert "overlap at offset 2" in broken(overlapping)


def test_nothing_reaches_beyond_the_horizon():
    """C14."""
    outcome, _ = a_round()
    first, second = outcome.written
    assert "reaches beyond the horizon 7" in broken(replace(outcome, written=(first, replace(second, end_offset=8))))


def test_what_is_left_is_what_was_there_without_the_losers():
    """C1, C4."""
    outcome, _ = a_round()
    first, second = outcome.written
    assert "7 records in, 2 removed, but 4 left" in broken(
        replace(outcome, written=(first, replace(second, records=2)))
    )


def with_written(**changes):
    """The written segments of a round, the second one changed."""
    _, written = a_round()
    (first, second) = written
    return (first, (second[0], (replace(second[1][0], **changes),)))


def test_a_group_is_written_whole():
    """C1."""
    assert "3 records of s2 survive, 2 were written" in broken(written=with_written(records=2))


@pytest.mark.parametrize("changes", [{"base_offset": 2}, {"end_offset": 9}])
def test_a_group_has_only_offsets_of_its_sources(changes):
    """C1, C39."""
    assert "offsets that its sources do not have" in broken(written=with_written(**changes))


def test_a_group_stays_in_its_log():
    """C13."""
    assert "written for s2 is of another partition" in broken(written=with_written(partition=1))


def test_a_message_stays_readable_however_much_is_broken():
    outcome, _ = a_round()
    sources = tuple(SegmentOutcome(s, 99) for s in outcome.plan.sources)
    written = tuple((RewriteGroup((source,)), ()) for source in sources * 10)
    assert len(broken(written=written)) < 1000
