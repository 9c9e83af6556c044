"""What holds of every round over every log, whatever is in it (C1, C4, C9 to C11, C14, C16, C18, C20, C22, C24)."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from lithify.model.record import Record, is_tombstone
from lithify.model.settings.table import ByColumn, ByHeader
from lithify.rules.compaction.survivor_rules import Cause, SurvivorRules
from lithify.rules.compaction.survivors import survivors
from support.generated.logs import records_of_a_log, rules_for, with_whole_entries

LOGS = (
    records_of_a_log().map(with_whole_entries).flatmap(lambda records: st.tuples(st.just(records), rules_for(records)))
)


def deletes(record: Record, rules: SurvivorRules) -> bool:
    size = None if record.value is None else len(record.value)
    return is_tombstone(size, empty_is_tombstone=rules.empty_is_tombstone)


def in_scope(records: list[Record], rules: SurvivorRules) -> list[Record]:
    return [r for r in records if rules.log_start <= (r.offset or 0) < rules.horizon]


def above_horizon(records: list[Record], rules: SurvivorRules) -> list[Record]:
    return [r for r in records if (r.offset or 0) >= rules.horizon]


def rank(record: Record, rules: SurvivorRules) -> float:
    """C10, said in another way than the product says it."""
    if rules.order is None:
        return 0
    if rules.order == ByColumn("timestamp"):
        return record.timestamp or 0
    assert isinstance(rules.order, ByHeader)
    value = ([None] + [v for name, v in record.headers if name == rules.order.name])[-1]
    number = int.from_bytes(value or b"", "big")
    return float("-inf") if value is None or len(value) != 8 else number - 2**64 * (number >> 63)


def beats(one: Record, other: Record, rules: SurvivorRules) -> bool:
    return one.key == other.key and (rank(one, rules), one.offset or 0) > (rank(other, rules), other.offset or 0)


def goes(record: Record, rules: SurvivorRules) -> bool:
    """Whether a winner goes for its age (C18, C24)."""
    if record.key is not None and deletes(record, rules):
        return (record.offset or 0) < rules.tombstones_expire_below
    return rules.values_expire_before_ms is not None and (record.timestamp or 0) < rules.values_expire_before_ms


@given(LOGS)
def test_a_survivor_is_a_record_that_was_there(log):
    """C1: unchanged, in order, once."""
    records, rules = log
    left = survivors(records, rules).records
    assert list(left) == [r for r in records if r in set(left)]


@given(LOGS)
def test_kafkas_own_oracle_says_the_same(log):
    """C4, C9 to C11, C14, C20, C22, C53: sort by key and by what decides, take the last of each, drop the old ones.

    A tombstone that beats a record above the horizon stays, and all do while a whole entry may hide what they beat, of
    a chunk those of its key.
    """
    records, rules = log
    keyed = [r for r in in_scope(records, rules) if r.key is not None]
    ordered = sorted(sorted(keyed, key=lambda r: rank(r, rules)), key=lambda r: r.key or b"")  # both sorts are stable
    last = {r.key: r for r in ordered}.values()
    above = above_horizon(records, rules)
    hides = [r for r in in_scope(records, rules) if r.passed_through and not goes(r, rules)]
    hidden = {r.chunk.key for r in hides if r.chunk is not None}
    above = [r if r.chunk is None else r._replace(key=r.chunk.key) for r in above]
    held = [
        r for r in last if deletes(r, rules) and (r.key in hidden or any(beats(r, other, rules) for other in above))
    ]
    hides += [r for r in above if r.passed_through and rules.order is not None]
    if any(r.chunk is None for r in hides):
        rules = replace(rules, tombstones_expire_below=0)
    expected = {r for r in last if not goes(r, rules) or r in held}
    found = survivors(records, rules)
    assert {r for r in found.records if r.key is not None} == expected
    assert found.held == tuple(sorted(r.offset or 0 for r in held if goes(r, rules)))


@given(LOGS)
def test_keyless_records_stay_or_go_by_their_age_alone(log):
    """C16, C24, C53."""
    records, rules = log
    keyless = [r for r in in_scope(records, rules) if r.key is None]
    left = [r for r in survivors(records, rules).records if r.key is None]
    assert left == [r for r in keyless if not goes(r, rules) and (rules.keep_keyless or r.passed_through)]


@given(LOGS)
def test_a_second_round_changes_nothing(log):
    """C41: what waits is there still."""
    records, rules = log
    once = survivors(records, rules)
    twice = survivors([*once.records, *above_horizon(records, rules)], rules)
    assert (twice.records, twice.losers, twice.held) == (once.records, {}, once.held)


@given(LOGS)
def test_every_record_below_the_horizon_stays_or_has_a_cause(log):
    """C42."""
    records, rules = log
    found = survivors(records, rules)
    below = [r for r in records if (r.offset or 0) < rules.horizon]
    assert len(found.records) + sum(found.losers.values()) == len(below)
    assert found.losers.get(Cause.BELOW_START, 0) == len(below) - len(in_scope(records, rules))
    assert found.keys == len({r.key for r in in_scope(records, rules) if r.key is not None})


@given(LOGS, st.integers(0, 40))
def test_two_rounds_leave_what_one_would(log, earlier):
    """C4: compacting up to somewhere first does not change what a round over everything leaves."""
    records, rules = log
    first = replace(rules, horizon=min(earlier, rules.horizon), tombstones_expire_below=0, values_expire_before_ms=None)
    left = survivors(records, first).records
    rest = [r for r in records if (r.offset or 0) >= first.horizon]
    assert survivors([*left, *rest], rules).records == survivors(records, rules).records
