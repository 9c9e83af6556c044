"""Rounds in parts end as one round does, and say what they did, whatever happens between two of them (C39, C42)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithify.cli.terminal.drawing import results
from lithify.errors import ConflictError, UnusualSweepError, WarehouseError
from lithify.model.record import Record
from lithify.ports.engine import RunLimits
from lithify.reports.rounds.round import RoundReport
from lithify.rules.compaction.decisions import CountedSegment
from lithify.service.documents import reports_of
from lithify.service.round.compact import RunRequest, compact
from support.engines.phased import PhasedEngine
from support.topics.memory_topic import ORDERS, MemoryTopic


def records(first: int, count: int) -> list[Record]:
    return [Record(b"k%03d" % (first + n), bytes([n]) * 40, 100 + n) for n in range(count)]


def a_topic(**config: object) -> MemoryTopic:
    """Eight segments of 30 records, half of which are dead."""
    given = {"segment_bytes": 2_000, "versions_retention_ms": 0, "versions_kept": 1, **config}
    topic = MemoryTopic(**given)
    for batch in range(8):
        topic.append(records(15 * batch, 30))
    return topic


def in_groups(topic: MemoryTopic, most: int) -> RoundReport:
    return compact(topic.warehouse, topic.engine, ORDERS, RunRequest(limits=RunLimits(rewrite_bytes=most)))


BATCHES = st.lists(st.lists(st.integers(0, 120), min_size=1, max_size=40, unique=True), min_size=1, max_size=12)


@given(BATCHES, st.sampled_from([1, 900, 3_000]), st.sampled_from([0.1, 0.33, 0.5]), st.lists(st.integers(0, 120)))
def test_any_log_ends_as_one_round_leaves_it(
    batches: list[list[int]], most: int, ratio: float, late: list[int]
) -> None:
    """C39, C41, C42: the records, what masks hide, and a report that adds up, also with records that came meanwhile."""
    topic = MemoryTopic(segment_bytes=1_500, versions_retention_ms=0, versions_kept=1, segment_max_dead_ratio=ratio)
    for batch in batches:
        topic.append([Record(b"k%03d" % key, b"v" * 40, 100) for key in batch])
    came = iter(late)

    def one_more() -> None:
        for key in islice(came, 1):
            topic.append([Record(b"k%03d" % key, None if key % 3 else b"w" * 40, 100)])

    engine = PhasedEngine(topic.engine, {"commit": one_more})
    report = compact(topic.warehouse, engine, ORDERS, RunRequest(limits=RunLimits(rewrite_bytes=most)))
    (log,) = report.logs
    rounds = [one.logs[0] for one in reports_of(topic.store, topic.state)]
    assert (log.records_in - log.losers.total, log.records_out) == (log.records_out, rounds[0].records_out)
    assert log.losers.total == sum(one.losers.total for one in rounds)
    assert log.records_in == sum(map(len, batches)) + min(len(late), len(rounds) - 1)
    assert log.segments_waiting == 0 or len(late) >= len(rounds)
    if not log.segments_waiting:
        assert hidden(topic) <= ratio / 2
        assert not in_groups(topic, most).changed or topic.log().log_end_offset > log.first_dirty_offset_after
    topic.compact()
    assert {r.key: r.value for r in topic.records()} == last_values(batches, late[: len(late) - len(list(came))])


def hidden(topic: MemoryTopic) -> float:
    """The share of the log's bytes that masks hide."""
    counted = [CountedSegment(segment, segment.records) for segment in topic.segments()]
    return sum(c.dead_bytes for c in counted) / max(1, sum(c.segment.size_bytes for c in counted))


def last_values(batches: list[list[int]], late: list[int]) -> dict[bytes | None, bytes | None]:
    values: dict[bytes | None, bytes | None] = {b"k%03d" % key: b"v" * 40 for batch in batches for key in batch}
    return values | {b"k%03d" % key: None if key % 3 else b"w" * 40 for key in late}


def test_what_masks_hide_is_bounded_where_none_hides_too_much_alone() -> None:
    """C39: six segments of which 32 % are dead, and no two of which merge."""
    topic = MemoryTopic(segment_bytes=1_500)
    for batch in range(6):
        topic.append(records(25 * batch, 25))
    topic.append([r for batch in range(6) for r in records(25 * batch, 8)])
    in_groups(topic, 1)
    assert 0 < hidden(topic) <= 0.33 / 2


def test_the_report_says_what_only_its_first_round_did() -> None:
    """C11, C61: tombstones without an order, and groups that had not read those that went."""
    header = {"compaction_strategy": "header", "compaction_strategy_header": "v"}
    topic = a_topic(delete_retention_ms=0, tombstone_hold_groups="g", tombstone_hold_max_ms=0, **header)
    order = (("v", (1).to_bytes(8, "big")),)
    topic.append([Record(b"k040", b"v", 1, order), Record(b"k040", None, 1), Record(b"gone", None, 1, order)])
    report = in_groups(topic, 900)
    rounds = [one.logs[0] for one in reports_of(topic.store, topic.state)]
    assert len(rounds) > 1
    assert report.logs[0].tombstones_unversioned == sum(one.tombstones_unversioned for one in rounds) > 0
    assert report.logs[0].missed_by == rounds[-1].missed_by == ("g",)


def test_who_fails_on_the_way_says_what_is_done() -> None:
    """C42: the log is as the round before has left it."""
    topic = a_topic()
    calls = iter([False, False, True])

    def fails() -> None:
        if next(calls):
            raise WarehouseError("out of luck")

    engine = PhasedEngine(topic.engine, {"rewrite": fails})
    report = compact(topic.warehouse, engine, ORDERS, RunRequest(limits=RunLimits(rewrite_bytes=1)))
    (log,), last = report.logs, next(reports_of(topic.store, topic.state)).logs[0]
    assert log.error == "out of luck"
    assert log.changed
    assert log.segments_waiting == last.segments_waiting > 0
    assert (log.records_out, log.first_dirty_offset_after) == (last.records_out, topic.log().first_dirty_offset)
    assert "FAILED before everything was rewritten" in " ".join(results(report.page()))


def test_a_topic_that_is_recreated_on_the_way_is_left_alone() -> None:
    topic = a_topic()
    sweeping = Happening(topic, topic.make_again)
    topic.warehouse = replace(topic.warehouse, store=sweeping)
    with pytest.raises(ConflictError, match="recreated"):
        in_groups(topic, 1)
    assert not list(reports_of(topic.store, topic.state))


class Happening:
    """A store where something happens at the first listings of files."""

    def __init__(self, topic: MemoryTopic, happens: Callable[[], object], times: int = 1) -> None:
        self._store, self._happens = topic.store, [happens] * times

    def __getattr__(self, name: str) -> object:
        if name == "stored_files" and self._happens:
            self._happens.pop()()
        return getattr(self._store, name)


def test_versions_stay_where_a_sweep_is_refused() -> None:
    """C6: a person may need them then."""
    topic, notes = a_topic(versions_kept=20), list[str]()

    def unusual() -> None:
        raise UnusualSweepError("not in this way")

    topic.warehouse = replace(topic.warehouse, store=Happening(topic, unusual, times=100))
    compact(topic.warehouse, topic.engine, ORDERS, RunRequest(limits=RunLimits(rewrite_bytes=1), notes=notes.append))
    rounds = list(reports_of(topic.store, topic.state))
    assert notes[1:] == ["orders: replaced files remain for now: not in this way"] * len(rounds)
    assert len(topic.store.versions(ORDERS)) == len(rounds) > 1
