"""No listed consumer misses a delete, however slowly it reads and whatever goes on meanwhile (C61, C62).

append, round, retain, time passes ─┐ in any order
consumer g: reads on, commits, dies ┤ each keeps a table, with its position, and starts again from both
consumer h: the same ───────────────┘
at the end each reads to the end: its table is that of all records ever appended, or it was told (C49)
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from lithify.errors import InvalidSettingError, LogTruncatedError, NothingToUndoError
from lithify.model.cursor import Cursor
from lithify.model.groups.positions import Position
from lithify.model.names import LogId
from lithify.model.record import Record
from lithify.rules.reading.pieces import Reading
from lithify.service.change.alter import alter
from lithify.service.change.retain import retain
from lithify.service.change.undo import undo
from lithify.service.read.fetch import open_log
from support.topics.memory_topic import ORDERS, MemoryTopic

HOW = Reading(compacted=True)
GROUPS = st.sampled_from(["g", "g", "h"])
BATCH = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["1", None, None])), min_size=1, max_size=4)
STEP = st.one_of(
    st.tuples(st.just("append"), BATCH),
    st.tuples(st.just("compact"), st.just(())),
    st.tuples(st.just("retain"), st.none()),
    st.tuples(st.just("wait"), st.sampled_from([1, 20, 100])),
    st.tuples(st.just("read"), st.tuples(GROUPS, st.integers(1, 3))),
    st.tuples(st.just("read and commit"), st.tuples(GROUPS, st.integers(1, 3))),
    st.tuples(st.just("commit"), GROUPS),
    st.tuples(st.just("die"), GROUPS),
)
STEPS = st.lists(STEP, max_size=40)
ALTERATIONS = st.sampled_from(
    [
        {"compaction.mode": "side-by-side"},
        {"delete.retention.ms": 0},
        {"delete.retention.ms": 20},
        {"cleanup.policy": "delete"},
        {"cleanup.policy": "compact,delete"},
        {"empty.value": "tombstone"},
        {"backlog.trim.groups": "g,h"},
        {"backlog.trim.groups": ""},
        {"min.compaction.lag.bytes": 1500},
    ]
)
CHANGE = st.one_of(STEP, st.tuples(st.just("undo"), st.none()), st.tuples(st.just("alter"), ALTERATIONS))
CHANGES = st.lists(st.one_of(CHANGE, st.tuples(st.just("compact"), st.lists(CHANGE, max_size=3))), max_size=40)
"""Also other commits, and any of them in the middle of a round."""
CONFIG = st.fixed_dictionaries(
    {
        "compaction_mode": st.sampled_from(["in-place", "side-by-side"]),
        "delete_retention_ms": st.sampled_from([0, 0, 20]),
        "tombstone_hold_groups": st.sampled_from(["g", "g", "g,h"]),
        "segment_bytes": st.just(1024),
    }
)


@dataclass
class Consumer:
    """One that folds a log, and commits its position with what it has."""

    topic: MemoryTopic
    group: str
    table: dict[bytes, bytes] = field(default_factory=dict)
    cursor: Cursor | None = None
    saved: tuple[dict[bytes, bytes], Cursor | None] = field(default_factory=lambda: ({}, None))

    def read(self, most: int | None = None) -> None:
        """Some records further. Raises `LogTruncatedError` where a delete may be gone."""
        start = "earliest" if self.cursor is None else self.cursor
        reader = open_log(self.topic.warehouse, self.topic.state, 0, start, HOW)
        for record in islice(reader, most):
            assert record.key is not None
            self.table.pop(record.key, None)
            if record.value is not None:
                self.table[record.key] = record.value
        self.cursor = reader.cursor()

    def commit(self) -> None:
        self.saved = dict(self.table), self.cursor
        if self.cursor is not None:
            log, now_ms = LogId(ORDERS, 0), self.topic.clock.now_ms()
            self.topic.groups.known[self.group, log] = Position(self.group, log, self.cursor, True, now_ms)

    def die(self) -> None:
        table, self.cursor = self.saved
        self.table = dict(table)


class Scene:
    """A topic with two consumers, the table of all records ever appended, and who was told of a delete that is gone."""

    def __init__(self, config: dict[str, object]) -> None:
        self.topic = MemoryTopic(**config)
        self.consumers = {group: Consumer(self.topic, group) for group in "gh"}
        self.wanted: dict[bytes, bytes | None] = {}
        self.told: set[str] = set()

    def read(self, group: str, most: int | None = None) -> None:
        try:
            self.consumers[group].read(most)
        except LogTruncatedError:
            self.told.add(group)

    def step(self, verb: str, what: Any) -> None:
        topic = self.topic
        match verb:
            case "append":
                records = [Record(k.encode(), None if v is None else v.encode(), 1_000, partition=0) for k, v in what]
                topic.append(records)
                self.wanted |= {r.key: r.value for r in records}
            case "compact" if topic.state.settings.compacts:
                topic.compact(meanwhile=lambda: [self.step(*other) for other in what], times=1)
            case "retain" if topic.state.settings.retains:
                retain(topic.warehouse, ORDERS)
            case "undo":
                with suppress(NothingToUndoError):
                    undo(topic.warehouse, ORDERS)
            case "alter":
                with suppress(InvalidSettingError):
                    alter(topic.warehouse, ORDERS, what)
            case "wait":
                topic.clock.advance(what)
            case "read":
                self.read(*what)
            case "read and commit":
                self.read(*what)
                self.consumers[what[0]].commit()
            case "commit":
                self.consumers[what].commit()
            case "die":
                self.consumers[what].die()


def run(steps, config) -> tuple[dict[bytes, bytes], dict[str, Consumer], set[str]]:
    """The table of all records ever appended, the listed consumers at the end, and which of them were told."""
    scene = Scene(config)
    for verb, what in steps:
        scene.step(verb, what)
    listed = {group: scene.consumers[group] for group in config["tombstone_hold_groups"].split(",")}
    for group in listed:
        scene.read(group)
    return {k: v for k, v in scene.wanted.items() if v is not None}, listed, scene.told & listed.keys()


def trimming(config):
    beside = config["compaction_mode"] == "side-by-side"
    return {**config, "backlog_trim_groups": config["tombstone_hold_groups"]} if beside else config


@settings(max_examples=150, deadline=None)
@given(STEPS, CONFIG)
def test_c61_no_listed_consumer_misses_a_delete(steps, config):
    wanted, consumers, told = run(steps, {**trimming(config), "tombstone_hold_max_ms": -1})
    assert not told
    assert all(consumer.table == wanted for consumer in consumers.values())


@settings(max_examples=150, deadline=None)
@given(CHANGES, CONFIG)
def test_c61_nor_one_whatever_is_altered_or_undone_and_during_rounds(steps, config):
    wanted, consumers, told = run(steps, {**trimming(config), "tombstone_hold_max_ms": -1, "retention_ms": -1})
    assert not told
    assert all(consumer.table == wanted for consumer in consumers.values())


@settings(max_examples=100, deadline=None)
@given(CHANGES, CONFIG, st.sampled_from([0, 20, 60]))
def test_c61_what_is_not_held_any_longer_is_told(steps, config, most_ms):
    wanted, consumers, told = run(steps, {**trimming(config), "tombstone_hold_max_ms": most_ms, "retention_ms": -1})
    assert all(consumer.table == wanted for group, consumer in consumers.items() if group not in told)


@settings(max_examples=100, deadline=None)
@given(STEPS, CONFIG)
def test_c61_what_all_have_read_is_not_held(steps, config):
    """Once both have read all and committed that, a round drops every tombstone that is old enough."""
    topic_steps = [step for step in steps if step[0] in ("append", "compact", "wait")]
    topic = MemoryTopic(tombstone_hold_max_ms=-1, **trimming(config))
    for verb, what in topic_steps:
        match verb:
            case "append":
                topic.append([Record(k.encode(), None if v is None else b"1", 1_000, partition=0) for k, v in what])
            case "compact":
                topic.compact()
            case "wait":
                topic.clock.advance(what)
    topic.compact()
    for group in "gh":
        consumer = Consumer(topic, group)
        consumer.read()
        consumer.commit()
    topic.clock.advance(20)
    topic.compact()
    assert [r for r in topic.records(compacted=True) if r.value is None] == []
    assert topic.log().tombstones == 0
