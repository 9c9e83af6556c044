"""What holds of every round over every log, whatever is in it (C1, C4, C9, C14, C16, C18, C22, C41)."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from lithify.compaction.rules import Cause, SurvivorRules
from lithify.compaction.survivors import survivors
from lithify.model.record import Record, is_tombstone
from support.log_strategies import records_of_a_log, rules_for

LOGS = records_of_a_log().flatmap(lambda records: st.tuples(st.just(records), rules_for(records)))


def deletes(record: Record, rules: SurvivorRules) -> bool:
    size = None if record.value is None else len(record.value)
    return is_tombstone(size, empty_is_tombstone=rules.empty_is_tombstone)


def in_scope(records: list[Record], rules: SurvivorRules) -> list[Record]:
    return [r for r in records if rules.log_start <= (r.offset or 0) < rules.horizon]


@given(LOGS)
def test_a_survivor_is_a_record_that_was_there(log):
    """C1: unchanged, in order, once."""
    records, rules = log
    left = survivors(records, rules).records
    assert list(left) == [r for r in records if r in set(left)]


@given(LOGS)
def test_kafkas_own_oracle_says_the_same(log):
    """C9: sort by key, take the last of each, drop the deletes that have expired."""
    records, rules = log
    by_key = sorted((r for r in in_scope(records, rules) if r.key is not None), key=lambda r: r.key or b"")
    last = {r.key: r for r in by_key}.values()  # sorting is stable: the last of a key has the highest offset
    expected = {r for r in last if not (deletes(r, rules) and (r.offset or 0) < rules.tombstones_expire_below)}
    found = {r for r in survivors(records, rules).records if r.key is not None}
    assert found == expected


@given(LOGS)
def test_every_key_has_one_record_or_an_expired_tombstone(log):
    """C4, C22."""
    records, rules = log
    left = survivors(records, rules).records
    kept = [r.key for r in left if r.key is not None]
    assert len(kept) == len(set(kept))
    for gone in {r.key for r in in_scope(records, rules) if r.key is not None} - set(kept):
        newest = [r for r in in_scope(records, rules) if r.key == gone][-1]
        assert deletes(newest, rules) and (newest.offset or 0) < rules.tombstones_expire_below


@given(LOGS)
def test_keyless_records_all_stay_or_all_go(log):
    """C16."""
    records, rules = log
    keyless = [r for r in in_scope(records, rules) if r.key is None]
    left = [r for r in survivors(records, rules).records if r.key is None]
    assert left == (keyless if rules.keep_keyless else [])


@given(LOGS)
def test_a_second_round_changes_nothing(log):
    """C41."""
    records, rules = log
    once = survivors(records, rules)
    twice = survivors(once.records, rules)
    assert (twice.records, twice.losers) == (once.records, {})


@given(LOGS)
def test_every_record_below_the_horizon_stays_or_has_a_cause(log):
    """C42."""
    records, rules = log
    found = survivors(records, rules)
    below = [r for r in records if (r.offset or 0) < rules.horizon]
    assert len(found.records) + sum(found.losers.values()) == len(below)
    assert found.losers.get(Cause.BELOW_START, 0) == len(below) - len(in_scope(records, rules))
    assert found.keys == len({r.key for r in in_scope(records, rules) if r.key is not None})


@given(LOGS, st.lists(st.builds(Record, st.binary(max_size=1), st.none()), max_size=3))
def test_what_comes_above_the_horizon_decides_nothing(log, later):
    """C14."""
    records, rules = log
    end = records[-1].offset + 1 if records else 0
    above = [replace(r, offset=max(end, rules.horizon) + n) for n, r in enumerate(later)]
    assert survivors([*records, *above], rules) == survivors(records, rules)


@given(LOGS, st.integers(0, 40))
def test_two_rounds_leave_what_one_would(log, earlier):
    """C4: compacting up to somewhere first does not change what a round over everything leaves."""
    records, rules = log
    first = replace(rules, horizon=min(earlier, rules.horizon), tombstones_expire_below=0)
    left = survivors(records, first).records
    rest = [r for r in records if (r.offset or 0) >= first.horizon]
    assert survivors([*left, *rest], rules).records == survivors(records, rules).records
