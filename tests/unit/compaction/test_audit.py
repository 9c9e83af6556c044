"""Every law that a round must keep, and a round that breaks it (C4, C6, C14, C16, C18, C39)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lithify.errors import AuditError
from lithify.model.topic.log import TombstoneStep
from lithify.rules.compaction.audit import audit
from lithify.rules.compaction.decisions import AddMask, CountedSegment, Drop, Keep, Rewrite
from lithify.rules.compaction.outcome import Applied
from lithify.rules.compaction.survivor_rules import Cause
from support.builders import some_settings
from support.topics.pure_rounds import a_pure_log


def a_round(**config):
    """A round that keeps every law: a tombstone superseded in the clean part, three segments left.

    Kept: s0 (clean), rewritten: s1 (clean), s2 (dirty), each into a segment of its own.
    """
    settings = some_settings(segment_bytes=1024, **{"segment_max_dead_ratio": 0, **config})
    log = a_pure_log("a=" + "x" * 900, "b=∅ c=" + "x" * 900)
    log.state = replace(log.state, first_dirty_offset=3, steps=(TombstoneStep(3, 1000, 1),))
    log.draw("b=2 d=∅ d=3 e=" + "x" * 900)
    outcome = log.round(settings, 2000)
    kept, first, second = outcome.applied
    assert kept.decision == Keep(log.segments[0])
    assert [len(done.decision.segments) for done in (first, second)] == [1, 1]
    return outcome


def broken(outcome):
    """The message of an audit of the round of `a_round`, changed."""
    with pytest.raises(AuditError) as error:
        audit("orders-3", outcome)
    assert "orders-3: the numbers of the round contradict each other" in str(error.value)
    return str(error.value)


def with_written(change):
    """The round, with something else written for s2."""
    outcome = a_round()
    *others, last = outcome.applied
    return replace(outcome, applied=(*others, replace(last, segments=(replace(last.segments[0], **change),))))


def with_mask(change):
    """The same round where masks are allowed, with something else said of the segment that has one now."""
    outcome = a_round(segment_max_dead_ratio=1)
    *others, last = outcome.applied
    assert isinstance(last.decision, AddMask)
    return replace(outcome, applied=(*others, replace(last, segments=change(last.segments[0]))))


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


def losers(**more):
    return {"losers": {Cause.SUPERSEDED: 1, **{Cause[name]: count for name, count in more.items()}}}


FINDINGS = {
    "C4: a record that goes has a cause": (
        losers(),
        "2 records are removed, but 1 are counted by cause",
    ),
    "C18: no tombstone before one has expired": (
        losers(EXPIRED_TOMBSTONE=1),
        "1 tombstones are removed although none has expired",
    ),
    "C24: no value for its age where age does not count": (
        losers(PAST_RETENTION=1),
        "1 values are removed although none is past retention",
    ),
    "C19: of a step no fewer than none": (
        {"clean_tombstones_lost": (-1,)},
        "-1 of the 1 tombstones that end at 3 are removed",
    ),
    "C19: of a step no more than it has": (
        {"clean_tombstones_lost": (2,)},
        "2 of the 1 tombstones that end at 3 are removed",
    ),
    "C19: counted for every step": ({"clean_tombstones_lost": (1, 0)}, "counted for 2 steps, but the log has 1"),
    "C19: no more new tombstones remain than came": ({"dirty_tombstones_kept": 2}, "2 of 1 new tombstones remain"),
    "C20: none is held where no record waits": (
        {"tombstones_held": 1},
        "1 expired tombstones remain although no record is",
    ),
    "C20: of those held no fewer than none are clean": (
        {"tombstones_held": 1, "clean_tombstones_held": -1},
        "-1 of 1 held tombstones are clean",
    ),
    "C20: and no more than all": (
        {"tombstones_held": 1, "clean_tombstones_held": 2},
        "2 of 1 held tombstones are clean",
    ),
}


@pytest.mark.parametrize(("findings", "says"), FINDINGS.values(), ids=FINDINGS)
def test_what_the_key_pass_counts_adds_up(findings, says):
    """C4, C18 to C20, C24."""
    assert says in broken(with_findings(**findings))


def test_a_keyless_record_may_not_go_where_keyless_records_are_retained():
    """C16."""
    outcome = a_round(null_key="retain")
    outcome = replace(outcome, findings=replace(outcome.findings, **losers(NO_KEY=1)))
    assert "1 keyless records are removed although null.key=retain" in broken(outcome)


WRITTEN = {
    "C39: segments do not overlap": ({"base_offset": 2}, "overlap at offset 2"),
    "C14: none reaches beyond the horizon": ({"end_offset": 8}, "reaches beyond the horizon 7"),
    "C1, C4: what is left is what was there without the losers": (
        {"records": 2},
        "7 records in, 2 removed, but 4 left",
    ),
    "C1: a rewrite is written whole": ({"records": 2}, "3 records of s2 survive, but 2 were written"),
    "C39: it begins within its sources": ({"base_offset": 2}, "offsets that its sources do not have"),
    "C39: it ends within its sources": ({"end_offset": 9}, "offsets that its sources do not have"),
    "C13: it stays in its log": ({"partition": 1}, "written for s2 belongs to another partition"),
}


@pytest.mark.parametrize(("change", "says"), WRITTEN.values(), ids=WRITTEN)
def test_what_was_written_is_what_survived(change, says):
    """C1, C4, C13, C14, C39."""
    assert says in broken(with_written(change))


MASKED = {
    "there is a mask": lambda s: (replace(s, mask=None),),
    "it hides what was there before": lambda s: (replace(s, records=2),),
    "it hides all dead": lambda s: (replace(s, mask=replace(s.mask, dead=2)),),
    "it is of that segment": lambda s: (replace(s, path="s9"),),
    "the file is as it was": lambda s: (replace(s, size_bytes=1),),
    "there is one": lambda _: (),
    "and no other": lambda s: (s, replace(s, base_offset=8, end_offset=9)),
}


@pytest.mark.parametrize("change", MASKED.values(), ids=MASKED)
def test_a_segment_with_a_mask_is_the_segment_that_it_was(change):
    """C1, C4, C39."""
    assert "s2 was to remain with a mask of 1 records" in broken(with_mask(change))


def test_a_mask_is_a_new_file():
    """C6: no file is written again."""
    outcome = with_mask(lambda s: (s,))
    audit("orders-3", outcome)
    *others, last = outcome.applied
    source = last.decision.source
    old = replace(source.segment, records=source.segment.records, mask=replace(last.segments[0].mask, dead=0))
    decision = AddMask(replace(source, segment=old))
    unchanged = replace(outcome, applied=(*others, Applied(decision, last.segments)))
    assert "s2 still has its earlier mask" in broken(unchanged)


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


def test_a_segment_with_one_survivor_is_not_dropped():
    """C1."""
    outcome = a_round()
    *others, _ = outcome.applied
    one_left = replace(outcome.findings, survivors={**outcome.findings.survivors, "s2": 1})
    applied = (*others, Applied(Drop(outcome.plan.dirty[0]), ()))
    assert "s2 has survivors and was dropped" in broken(replace(outcome, findings=one_left, applied=applied))


def test_a_message_stays_readable_however_much_is_broken():
    outcome = a_round()
    rewrites = [Rewrite((CountedSegment(segment, 99),)) for segment in outcome.plan.sources]
    applied = tuple(Applied(rewrite, ()) for rewrite in rewrites * 10)
    assert len(broken(replace(outcome, applied=applied))) < 1000
