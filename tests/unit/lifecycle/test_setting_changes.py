"""What a changed setting does to a log with data, in both directions (C43)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lithify.errors import PolicyError
from lithify.model.segment import Volume
from lithify.model.settings.table import SETTINGS
from lithify.model.topic.log import HeldTombstones, LogState, TombstoneStep, View
from lithify.rules.lifecycle.setting_changes import altered
from support.builders import a_log, a_topic, some_settings

LOG = a_log("a=1 b=∅ | c='' | d=1")
STEPS = (TombstoneStep(3, 100, 1),)
STATE = replace(
    LOG.state(dirty_from=3, start=1, steps=STEPS),
    held=HeldTombstones(3, 4),
    last_round="r",
    last_round_ms=100,
    aged_before_ms=9,
)
BESIDE = {"compaction_mode": "side-by-side"}


def topic(log=STATE, **config):
    return a_topic(log, settings=some_settings(**config))


def after(before, then, *, log=STATE):
    """The log once the topic of settings `before` has those of `then`."""
    return altered(topic(log, **before), LOG.segments, some_settings(**then), 1)[0]


CHANGES = [
    ({}, {"null_key": "drop"}),
    ({}, {"null_key": "retain"}),
    ({}, {"delete_retention_ms": 5}),
    ({}, {"tombstone_hold_groups": "g"}),
    ({}, {"tombstone_hold_max_ms": 5}),
    (BESIDE, {**BESIDE, "backlog_trim_groups": "g"}),
    ({}, {"min_cleanable_dirty_ratio": 1}),
    ({}, {"min_compaction_lag_ms": 5}),
    ({}, {"min_compaction_lag_from": "commit"}),
    ({}, {"min_compaction_lag_bytes": 5}),
    ({}, {"max_compaction_lag_ms": 5}),
    ({}, {"compaction_threshold_bytes": 5}),
    ({}, {"cleanup_policy": "compact,delete"}),
    ({"cleanup_policy": "compact,delete"}, {"cleanup_policy": "compact,delete", "retention_ms": 5}),
    ({"cleanup_policy": "compact,delete"}, {"cleanup_policy": "compact,delete", "retention_bytes": 5}),
    ({}, {"segment_bytes": 1024}),
    ({}, {"segment_max_dead_ratio": 0.5}),
    ({}, {"key_index_enable": "true"}),
    ({}, {"compression_type": "gzip"}),
    ({}, {"message_timestamp_type": "LogAppendTime"}),
    ({}, {"message_timestamp_after_max_ms": 5}),
    ({}, {"max_message_bytes": 5}),
    ({}, {"versions_retention_ms": 5}),
    ({}, {"versions_kept": 5}),
    ({}, {"sweep_grace_ms": 60_005}),
    ({}, {"compaction_strategy": "timestamp"}),
    ({}, {"compaction_strategy": "header", "compaction_strategy_header": "v"}),
    ({}, {"compaction_strategy_header": "v"}),
]


def test_every_setting_is_changed_here():
    """C43."""
    tried = {name.replace("_", ".") for one, then in CHANGES for name in then if one.get(name) != then[name]}
    assert set(SETTINGS) - tried == {"compaction.mode", "empty.value", "message.ids"}  # they do more, see below


@pytest.mark.parametrize(("one", "other"), CHANGES)
def test_a_change_makes_the_log_due_once_and_moves_nothing(one, other):
    """C43: both ways; what held tombstones back and how old values may be is judged anew (C20, C24)."""
    for before, then in ((one, other), (other, one)):
        found = after(before, then)
        changed = sorted(name.replace("_", ".") for name in {**one, **other} if one.get(name) != other.get(name))
        assert found.round_required.startswith("changed: ") and sorted(found.round_required[9:].split(", ")) == changed
        assert replace(found, round_required="", held=STATE.held, aged_before_ms=9) == STATE
        assert (found.held, found.aged_before_ms) == (None, None)


def test_where_nothing_changes_no_round_is_required():
    """C43: also a policy that is only written in another way."""
    assert altered(topic(null_key="drop"), LOG.segments, some_settings(null_key="drop"), 1) == {}
    both = topic(cleanup_policy="compact,delete")
    assert altered(both, LOG.segments, some_settings(cleanup_policy="delete,compact"), 1) == {}


def test_a_log_that_never_had_a_record_requires_no_round():
    """C43."""
    assert after({}, {"empty_value": "tombstone"}, log=LogState(0)) == LogState(0)


def test_a_setting_changed_and_changed_back_before_a_round_still_covers_everything_again():
    """C43, C19: the steps are gone, so that without it no T would be known."""
    there = after({"empty_value": "value"}, {"empty_value": "tombstone"})
    back = after({"empty_value": "tombstone"}, {"empty_value": "value"}, log=there)
    assert (back.steps, back.uncovered) == ((), True)


@pytest.mark.parametrize("policy", ["compact", "compact,delete"])
def test_from_delete_to_compact_no_round_has_been_over_the_log(policy):
    """C43: D = S."""
    found = after({"cleanup_policy": "delete"}, {"cleanup_policy": policy})
    assert (found.log_start_offset, found.first_dirty_offset, found.steps) == (1, 1, ())
    assert (found.clean, found.dirty.records, found.round_required) == (Volume(), 4, "changed: cleanup.policy")
    assert found.last_round == ""


@pytest.mark.parametrize("policy", ["compact", "compact,delete"])
def test_from_compact_to_delete_no_round_is_required(policy):
    """C43, C23: no round runs there."""
    found = after({"cleanup_policy": policy}, {"cleanup_policy": "delete"})
    assert (found.round_required, found.first_dirty_offset, found.steps) == ("", 3, STEPS)


def test_from_delete_to_side_by_side_at_once():
    """C43."""
    found = after({"cleanup_policy": "delete"}, BESIDE)
    assert (found.first_dirty_offset, found.round_required) == (1, "changed: compaction.mode, cleanup.policy")


@pytest.mark.parametrize("view", [View(Volume(1, 5), 0), View()])
def test_from_side_by_side_to_in_place_is_refused_while_there_is_a_view(view):
    """C43, C35: also an empty one; it says what to do."""
    with pytest.raises(PolicyError, match="partition 0 has a compacted view") as error:
        after(BESIDE, {}, log=replace(STATE, view=view))
    assert ".uncompact()" in error.value.hint
    found = after(BESIDE, {"null_key": "drop", **BESIDE}, log=replace(STATE, view=view))
    assert (found.view, found.round_required) == (view, "changed: null.key")


def test_new_partitions_are_empty_logs_and_the_others_stay():
    """C43, C13: no round is required for it."""
    assert altered(topic(), LOG.segments, some_settings(), 3) == {1: LogState(1), 2: LogState(2)}
    both = altered(topic(), LOG.segments, some_settings(null_key="drop"), 2)
    assert (both[0].round_required, both[1]) == ("changed: null.key", LogState(1))


def test_each_log_changes_by_itself():
    """C43, C13: a segment of another log is none of it."""
    two = replace(topic(), logs=(STATE, LogState(1, log_end_offset=2, first_dirty_offset=2)))
    found = altered(two, (*LOG.segments, *a_log("x=1 y=1", partition=1).segments), some_settings(**BESIDE), 2)
    assert [found[p].dirty.records for p in (0, 1)] == [4, 2]
