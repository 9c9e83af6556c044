"""Rounds while others are at work: what is a conflict and what is none (C6, C41, C42, C44)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lithify.errors import PolicyError, UnknownTopicError
from lithify.ports.documents import REPORTS_KEPT
from lithify.service.change.alter import alter, uncompact
from lithify.service.change.cut import delete_records, truncate
from lithify.service.change.retain import retain
from lithify.service.change.undo import undo
from lithify.service.documents import reports_of
from lithify.service.round.compact import RunRequest, compact
from support.builders import a_log, draw
from support.topics.memory_topic import ORDERS, MemoryTopic


def append(topic, text, partition=0):
    topic.append([r._replace(offset=None, partition=partition) for r in a_log(text).records])


def drawn(topic, partition=0):
    return draw([topic.records(partition)])


def reports(topic):
    return list(reports_of(topic.warehouse.store, topic.state))


def test_logs_without_a_conflict_commit_while_one_with_a_conflict_is_planned_again():
    """C44: they commit; the one left out is planned again, in a commit of its own."""
    topic = MemoryTopic(partitions=2)
    append(topic, "a=1 a=2", 0)
    append(topic, "b=1 b=2", 1)
    version = topic.state.version
    report = topic.compact(meanwhile=lambda: topic.compact(partitions=(1,)), times=1)
    assert [log.changed for log in report.logs] == [True, False]
    assert topic.state.version == version + 2  # the other's round, and ours without its log
    assert (drawn(topic, 0), drawn(topic, 1)) == ("a=2@1", "b=2@1")


def test_a_log_that_others_change_again_and_again_is_given_up():
    """C44: after a bounded number of plans, with nothing changed by us."""
    topic = MemoryTopic()
    append(topic, "a=1 a=2")
    report = topic.compact(meanwhile=lambda: topic.edit(generation=topic.log().generation + 1))
    (failed,) = report.failed
    assert "the log was truncated, 5 times in a row" in failed.error
    assert (report.changed, drawn(topic)) == (False, "a=1@0 a=2@1")


def test_a_round_whose_new_files_are_gone_is_not_committed():
    """C6: a run checks before its commit that its files are still there."""
    topic = MemoryTopic()
    append(topic, "a=1 b=1 a=2")
    append(topic, "c=1")
    (source, other) = (s.path for s in topic.segments())

    def lose_new_files():
        for path in set(topic.files.data) - {source, other}:
            del topic.files.data[path]

    report = topic.compact(meanwhile=lose_new_files)
    assert "was written for this commit was deleted before it" in report.failed[0].error
    assert drawn(topic) == "a=1@0 b=1@1 a=2@2 c=1@3"


def test_every_round_that_commits_leaves_a_report_the_newest_hundred_stay():
    """C42."""
    topic = MemoryTopic()
    for number in range(REPORTS_KEPT + 3):
        append(topic, f"a={number}")
        topic.compact()
    stored = reports(topic)
    assert len(stored) == REPORTS_KEPT
    assert [report.logs[0].horizon for report in stored] == list(range(REPORTS_KEPT + 3, 3, -1))
    assert stored[0].version == topic.state.version


def test_a_report_says_whether_the_time_was_given():
    """C42: a report made with `--now` says so."""
    topic = MemoryTopic(now_ms=50)
    append(topic, "a=1")
    topic.compact(now_ms=70)
    append(topic, "a=2")
    topic.compact()
    assert [(r.now_ms, r.now_given) for r in reports(topic)] == [(50, False), (70, True)]


def test_the_report_that_is_returned_is_the_one_that_is_stored():
    """C42: also where the round took long."""
    topic = MemoryTopic(now_ms=50)
    append(topic, "a=1 a=2")
    returned = compact(topic.warehouse, topic.engine, ORDERS, RunRequest(), lambda *_: topic.clock.advance(1_000))
    assert returned.now_ms == reports(topic)[0].now_ms == 50


def test_a_partition_that_is_not_there_is_refused():
    topic = MemoryTopic(partitions=2)
    with pytest.raises(UnknownTopicError, match="no partition 2"):
        topic.compact(partitions=(0, 2))


def test_a_topic_that_does_not_compact_is_refused():
    """C30: and what to do instead is said."""
    topic = MemoryTopic()
    topic.edit(settings=replace(topic.state.settings, cleanup_policy="delete"))
    with pytest.raises(PolicyError, match="does not compact"):
        topic.compact()


SETTINGS = {
    "in place": {"cleanup_policy": "compact,delete", "retention_ms": 500},
    "side by side": {"cleanup_policy": "compact,delete", "retention_ms": 500, "compaction_mode": "side-by-side"},
}
VERBS = {
    "append": lambda topic: append(topic, "a=9 z=9"),
    "delete-records": lambda topic: delete_records(topic.warehouse, ORDERS, 0, topic.log().log_end_offset - 5),
    "delete-records beyond H": lambda topic: delete_records(topic.warehouse, ORDERS, 0, topic.log().log_end_offset),
    "truncate": lambda topic: truncate(topic.warehouse, ORDERS, 0, topic.log().log_end_offset - 1),
    "truncate below D": lambda topic: truncate(
        topic.warehouse, ORDERS, 0, topic.log().first_dirty_offset - 2, below_compacted=True
    ),
    "truncate and append": lambda topic: (
        truncate(topic.warehouse, ORDERS, 0, topic.log().log_end_offset - 2),
        append(topic, "b=8 b=9"),
    ),
    "alter": lambda topic: alter(topic.warehouse, ORDERS, {"null.key": "retain"}),
    "alter what deletes": lambda topic: alter(topic.warehouse, ORDERS, {"empty.value": "tombstone"}),
    "alter to and fro": lambda topic: [
        alter(topic.warehouse, ORDERS, {"empty.value": value}) for value in ("tombstone", "value")
    ],
    "another round": lambda topic: topic.compact(),
    "retain": lambda topic: retain(topic.warehouse, ORDERS, now_ms=1600),
    "undo": lambda topic: undo(topic.warehouse, ORDERS),
}
NO_CONFLICT = {"append", "delete-records", "delete-records beyond H"}


def a_topic_with_a_round(mode, **config):
    """Four offsets that a round has covered, and four that it has not; null.key=drop."""
    topic = MemoryTopic(null_key="drop", min_cleanable_dirty_ratio=0, **SETTINGS[mode], **config)
    append(topic, "a=1!900 b=1!900 c=∅!900 ·=1!900")
    topic.compact()
    append(topic, "a=2!950 d=''!950 | ·=2!960 b=∅!1000 e=1!1000")
    return topic


def a_topic_whose_last_round_moved_nothing(mode):
    """The same, and then a round that took expired deletes and old values and left D where it was."""
    topic = a_topic_with_a_round(mode, delete_retention_ms=100)
    topic.compact()
    topic.clock.set(1455)
    topic.compact()
    append(topic, "a=∅!1455 b=3!1455 c=3!1300 | d=∅!1455")
    return topic


TOPICS = {"after a round": a_topic_with_a_round, "after a round of deletes": a_topic_whose_last_round_moved_nothing}


def whole(topic):
    """What every kind of reader gets, and where the log stands."""
    log = topic.log()
    return (
        draw([topic.records()]),
        draw([topic.records(compacted=True)]),
        (log.log_start_offset, log.first_dirty_offset, log.log_end_offset, log.generation),
    )


@pytest.mark.parametrize("early", [True, False], ids=["between plan and rewrite", "between rewrite and commit"])
@pytest.mark.parametrize("mode", SETTINGS)
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("made", TOPICS)
def test_whatever_happens_during_a_round_it_is_as_if_it_had_been_before_or_after(made, verb, mode, early):
    """C44, C6: what is no conflict comes after the round, else the round is planned again, on what is there then."""
    raced, first, last = (TOPICS[made](mode) for _ in range(3))
    tries = []
    report = raced.compact(meanwhile=lambda: (VERBS[verb](raced), tries.append(1)), times=1, early=early)
    assert report.failed == () and tries == [1]
    VERBS[verb](first)
    first.compact()
    last.compact()
    if verb in NO_CONFLICT:
        VERBS[verb](last)
    expected = last if verb in NO_CONFLICT else first
    assert whole(raced)[:2] == whole(expected)[:2]
    assert raced.compact().failed == () and expected.compact().failed == ()
    assert whole(raced) == whole(expected)
    assert not raced.compact().changed


ORDERED = {
    "timestamp": {"compaction_strategy": "timestamp"},
    "header": {"compaction_strategy": "header", "compaction_strategy_header": "v"},
}


@pytest.mark.parametrize(("start", "tries"), [(1, 2), (2, 2), (3, 1), (5, 1)])
@pytest.mark.parametrize("mode", ["in-place", "side-by-side"])
@pytest.mark.parametrize("strategy", ORDERED)
def test_a_round_drops_nothing_that_records_deleted_meanwhile_have_superseded(strategy, mode, start, tries):
    """C44, C26, C10: by offset only later records supersede, but here one of a=1 and of the deleted a=9 was to stay."""
    topic = MemoryTopic(compaction_mode=mode, **ORDERED[strategy])
    for text, order in (("a=9", 9), ("b=1", 1), ("a=1", 1), ("c=1", 1), ("d=1", 1)):
        (record,) = a_log(text).records
        topic.append([record._replace(offset=None, timestamp=order, headers=(("v", order.to_bytes(8, "big")),))])
    seen, done = [], []

    def deleted():
        done.append(1)
        delete_records(topic.warehouse, ORDERS, 0, start)
        seen.append([record.offset for record in topic.reader(compacted=True)])

    assert topic.compact(meanwhile=deleted).failed == ()
    assert (len(done), [record.offset for record in topic.reader(compacted=True)]) == (tries, seen[0])


@pytest.mark.parametrize("early", [True, False])
def test_a_round_is_planned_again_when_its_view_is_dropped_meanwhile(early):
    """C44, C35."""
    raced, first = (a_topic_with_a_round("side by side") for _ in range(2))
    assert raced.compact(meanwhile=lambda: uncompact(raced.warehouse, ORDERS), times=1, early=early).failed == ()
    uncompact(first.warehouse, ORDERS)
    first.compact()
    assert whole(raced) == whole(first)


@pytest.mark.parametrize("early", [True, False])
@pytest.mark.parametrize("mode", SETTINGS)
def test_a_topic_that_is_recreated_during_a_round_has_nothing_of_the_old_one(mode, early):
    """C44: the identity of the table counts, not its name."""
    topic = a_topic_with_a_round(mode)
    report = topic.compact(meanwhile=topic.make_again, times=1, early=early)
    assert len(report.failed) == 1
    assert (whole(topic)[:2], topic.log().log_end_offset, topic.log().view) == (("", ""), 0, None)
