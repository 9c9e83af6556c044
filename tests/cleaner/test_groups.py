"""Cleaners and the groups that topics name: their progress is work, without their database work goes on (C61, C62)."""

from __future__ import annotations

from dataclasses import replace

from lithify.ports.groups import NoGroups
from lithify.reports.events import EventKind
from support.topics.cleaner_lake import CleanerLake

HOLDS = {"tombstone_hold_groups": "g", "tombstone_hold_max_ms": -1, "delete_retention_ms": 0}


def test_a_cleaner_drops_tombstones_once_groups_have_read_them():
    """C61: without a commit, and only in the topic that they have read."""
    lake = CleanerLake()
    topics = [lake.topic(name, **HOLDS) for name in ("orders", "clicks")]
    for name in topics:
        lake.append(name, "a=1 a=-")
    one = lake.cleaner()
    one.work()
    assert [lake.text(name) for name in topics] == ["a=-", "a=-"]
    rounds = len(one.told(EventKind.ROUND))
    lake.wait()
    one.work()
    assert len(one.told(EventKind.ROUND)) == rounds, "nothing is due while the group holds them"
    lake.groups.commit(lake.state(topics[0]), 0, "g", 2, lake.clock.now_ms())
    lake.wait()
    one.work()
    assert [lake.text(name) for name in topics] == ["", "a=-"]
    assert len(one.told(EventKind.ROUND)) == rounds + 1


def test_a_cleaner_trims_what_groups_have_read():
    """C62: by retention, without a round."""
    lake = CleanerLake()
    name = lake.topic("orders", compaction_mode="side-by-side", backlog_trim_groups="g")
    lake.append(name, "a=1 b=1")
    one = lake.cleaner()
    one.work()
    assert lake.text(name) == "a=1 b=1"
    lake.groups.commit(lake.state(name), 0, "g", 2, lake.clock.now_ms())
    lake.wait()
    one.work()
    assert (lake.text(name), len(one.told(EventKind.RETAINED))) == ("", 1)
    lake.wait()
    one.work()
    assert len(one.told(EventKind.RETAINED)) == 1


def test_a_cleaner_goes_on_without_the_positions_of_groups_and_says_so():
    """C50, C61: once, and not at each look."""
    lake = CleanerLake()
    name = lake.topic("orders", **HOLDS)
    lake.append(name, "a=1 a=2 b=-")
    one = lake.cleaner(warehouse=replace(lake.warehouse, groups=NoGroups()))
    one.work()
    assert lake.text(name) == "a=2 b=-"
    (trouble,) = one.told(EventKind.TROUBLE)
    assert "there is no database of consumer groups" in trouble.facts["error"]
    lake.wait()
    one.work()
    assert len(one.told(EventKind.TROUBLE)) == 1
    assert len(one.told(EventKind.ROUND)) == 1
