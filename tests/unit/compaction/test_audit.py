"""Every law that a round must keep, and a round that breaks it (C4, C6, C14, C16, C18, C39)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lithify.compaction.audit import audit
from lithify.compaction.decisions import CountedSegment, Drop, Keep, Rewrite
from lithify.compaction.outcome import Applied
from lithify.compaction.rules import Cause
from lithify.errors import AuditError
from lithify.model.log import TombstoneStep
from support.builders import a_log, some_settings
from support.topics.pure_rounds import PureLog


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
    kept, first, second = outcome.applied
    assert kept.decision == Keep(log.segments[0])
    assert [len(done.decision.sources) for done in (first, second)] == [1, 1]
    return outcome


def broken(outcome):
    """The message of an audit of the round of `a_round`, changed."""
    with pytest.raises(AuditError) as error:
        audit("orders-3", outcome)
    assert "orders-3: the round does not add up" in str(error.value)
    return str(error.value)


def with_written(first=None, second=None):
    """The round, with something else written for s1, or s2."""
    outcome = a_round()
    kept, *rewritten = outcome.applied
    changes = zip(rewritten, (first or {}, second or {}), strict=True)
    return replace(
        outcome,
        applied=(kept, *(replace(done, segments=(replace(done.segments[0], **change),)) for done, change in changes)),
    )


def with_findings(**changes):
    outcome = a_round()
    return replace(outcome, findings=replace(outcome.findings, **changes))


def test_a_round_that_keeps_the_laws_passes():
    audit("orders-3", a_round())


@pytest.mark.parametrize(
    "base",
    [{"log_start_offset": 8}, {"first_dirty_offset": 8, "log_end_offset": 9}, {"log_end_offset": 6}],
    ids=["S above H", "D above H", "H above E"],
)
def test_start_dirty_horizon_and_end_ascend(base):
    """C14: S <= D <= H <= E."""
    outcome = a_round()
    plan = replace(outcome.plan, base=replace(outcome.plan.base, **base))
    assert "S <= D <= H <= E does not hold" in broken(replace(outcome, plan=plan))


@pytest.mark.parametrize("count", [None, -1, 5])
def test_every_scanned_segment_is_counted(count):
    """C4: none is forgotten, and none has more survivors than records."""
    outcome = a_round()
    counts = dict(outcome.findings.survivors)
    counts["s2"] = count
    if count is None:
        del counts["s2"]
    assert f"s2: {count} of 4 records survive" in broken(with_findings(survivors=counts))


def test_losers_add_up_to_what_is_missing():
    """C4: a record that goes has a cause."""
    outcome = a_round()
    counts = dict(outcome.findings.survivors) | {"s1": 0}
    assert "3 records are removed, 2 are accounted for by cause" in broken(with_findings(survivors=counts))


def test_a_keyless_record_may_not_go_where_keyless_records_are_retained():
    """C16."""
    outcome = a_round(null_key="retain")
    outcome = replace(outcome, findings=replace(outcome.findings, losers={Cause.SUPERSEDED: 1, Cause.NO_KEY: 1}))
    assert "1 keyless records are removed although null.key=retain" in broken(outcome)


def test_a_tombstone_may_not_go_before_one_has_expired():
    """C18."""
    found = with_findings(losers={Cause.SUPERSEDED: 1, Cause.EXPIRED_TOMBSTONE: 1})
    assert "1 tombstones are removed although none has expired" in broken(found)


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
    assert "1 values are removed although none is past retention" in broken(found)


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
    assert "overlap at offset 2" in broken(with_written(second={"base_offset": 2}))


def test_nothing_reaches_beyond_the_horizon():
    """C14."""
    assert "reaches beyond the horizon 7" in broken(with_written(second={"end_offset": 8}))


def test_what_is_left_is_what_was_there_without_the_losers():
    """C1, C4."""
    assert "7 records in, 2 removed, but 4 left" in broken(with_written(second={"records": 2}))


def test_a_rewrite_is_written_whole():
    """C1."""
    assert "3 records of s2 survive, 2 were written" in broken(with_written(second={"records": 2}))


@pytest.mark.parametrize("changes", [{"base_offset": 2}, {"end_offset": 9}])
def test_a_rewrite_has_only_offsets_of_its_sources(changes):
    """C1, C39."""
    assert "offsets that its sources do not have" in broken(with_written(second=changes))


def test_a_rewrite_stays_in_its_log():
    """C13."""
    assert "written for s2 is of another partition" in broken(with_written(second={"partition": 1}))


@pytest.mark.parametrize(
    ("decision", "message"), [(Keep, "s2 has losers and was kept"), (Drop, "s2 has survivors and was dropped")]
)
def test_each_segment_becomes_what_its_count_says(decision, message):
    """C1, C4, C39."""
    outcome = a_round()
    *others, last = outcome.applied
    assert message in broken(
        replace(outcome, applied=(*others, Applied(decision(outcome.plan.dirty[0]), last.segments)))
    )


def test_a_message_stays_readable_however_much_is_broken():
    outcome = a_round()
    rewrites = [Rewrite((CountedSegment(segment, 99),)) for segment in outcome.plan.sources]
    applied = tuple(Applied(rewrite, ()) for rewrite in rewrites * 10)
    assert len(broken(replace(outcome, applied=applied))) < 1000
