"""The slow groups of `just soak`, on a small lake and without Spark: rounds, cuts and other verbs between their reads.

A listed group misses no delete (C61), no reader misses one without an error (C49), and tables are the oracle's.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

import lithify
from lithify.model.record import Record
from lithify.model.settings.topic_settings import changed
from lithify.service.round.compact import RunRequest, compact
from lithify.testing.oracle_engine import OracleEngine
from soak.checks import check_all
from soak.feeder import Counts, FedTopic
from soak.groups.reasons import Interruption, is_held
from soak.groups.slow import GroupCounts, SlowGroup
from soak.outages import Outages
from soak.topics import DAY_MS, GROUP, Sizes

SIZES = Sizes(versions_retention_ms=DAY_MS, sweep_grace_ms=DAY_MS)
NO_OUTAGES = Outages([], float("inf"))
STEPS = 25


def a_topic(folder: Path, seed: int, *, held: bool) -> FedTopic:
    """One that a group reads, of several kinds, whose tombstones expire at once."""
    lake = lithify.open(str(folder / "lake"))
    luck = Random(seed)
    while True:
        fed = FedTopic(lake, "soak/topic", luck, SIZES, Counts(), grouped=True)
        fed.create()
        if is_held(fed.journal) is held:
            break
        lake.delete_topic(fed.name)
    fed.topic.alter({"delete.retention.ms": 0, "min.compaction.lag.ms": 0, "min.compaction.lag.bytes": 0})
    fed.journal.settings = fed.topic.state().settings
    fed.followers.clear()
    return fed


def soaked(fed: FedTopic, luck: Random) -> SlowGroup:
    """The group at the end of the log, after many turns of everything and a last round."""
    group = SlowGroup(fed, luck, GroupCounts(), compacted=luck.random() < 0.5)
    engine = OracleEngine(fed.lake.warehouse.files)
    for _ in range(STEPS):
        fed.turn()
        if luck.random() < 0.5:
            compact(fed.lake.warehouse, engine, fed.topic.topic_name, RunRequest())
        if luck.random() < 0.4:
            group.turn()
    group.finish()
    fed.release_all()
    at_once = {"delete.retention.ms": 0}  # which may have been altered
    fed.topic.alter(at_once)
    fed.journal.settings = changed(fed.journal.settings, at_once)
    compact(fed.lake.warehouse, engine, fed.topic.topic_name, RunRequest())
    return group


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("held", [True, False], ids=["held", "not held"])
def test_a_slow_group_has_the_live_keys_in_the_end_c61(tmp_path: Path, seed: int, held: bool) -> None:
    fed = a_topic(tmp_path, seed, held=held)
    group = soaked(fed, Random(seed))
    assert [*group.check(), *fed.counts.findings, *check_all([fed])[0]] == []
    told = group.counts.interruptions
    assert [str(one) for one in told if not one.is_explained(fed.counts.deletions, NO_OUTAGES)] == []
    assert group.counts.commits > 0


def interruptions(folder: Path, *, held: bool) -> list[Interruption]:
    """Those of a group that has read values whose deletes a round covers before it reads on."""
    fed = a_topic(folder, 1, held=held)
    group = SlowGroup(fed, Random(1), GroupCounts(), compacted=True)
    for value in (b"a value", None):
        put(fed, [Record(b"k%d" % n, value, partition=0) for n in range(5)])
        if value is not None:
            group.finish()
        compact(fed.lake.warehouse, OracleEngine(fed.lake.warehouse.files), fed.topic.topic_name, RunRequest())
    holds = [lag.holds_tombstones for lag in fed.lake.group(GROUP).describe(fed.name)]
    assert any(holds) is held
    group.finish()
    assert group.check() == []
    return group.counts.interruptions


def put(fed: FedTopic, batch: list[Record]) -> None:
    placed = fed.journal.placed(batch)
    fed.topic.append(batch)
    for partition, records in placed.items():
        fed.journal.logs[partition].append(records)


def test_what_a_group_misses_that_is_not_listed_is_told_and_one_that_is_misses_nothing_c61(tmp_path: Path) -> None:
    assert interruptions(tmp_path / "held", held=True) == []
    (missed,) = interruptions(tmp_path / "not held", held=False)
    assert missed.kind == "missed"
    assert missed.is_explained((), NO_OUTAGES)


def test_the_soak_finds_deletes_that_a_listed_group_would_miss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (missed,) = interruptions(tmp_path, held=False)
    monkeypatch.setattr("soak.groups.reasons.is_held", lambda _journal: True)
    assert not missed.is_explained((), NO_OUTAGES)
