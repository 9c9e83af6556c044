"""Where the copy of a Kafka log goes on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lithify.model.sources.source import ComparedRecord, EpochAt, SourceLog, as_read, checksum_of, signs_of
from lithify.rules.lifecycle.copies.copy_continuation import (
    CopyContinues,
    NeverCopied,
    SourceWasCut,
    SourceWentBack,
    copy_continuation,
    copy_continuations,
    cuts_by_earlier,
    cuts_by_records,
    earlier_to_compare,
    epochs_to_ask,
    records_to_compare,
    unproven,
    with_cuts,
)
from support.builders import a_log
from support.topics.memory_topic import MemoryTopic


@pytest.mark.parametrize(
    ("log_end", "start", "end", "found"),
    [
        (None, 0, 0, CopyContinues(0)),
        (None, 40, 90, CopyContinues(40)),
        (50, 0, 90, CopyContinues(50)),
        (50, 50, 90, CopyContinues(50)),
        (50, 50, 50, CopyContinues(50)),
        (50, 51, 90, NeverCopied(50, 51)),
        (50, 0, 49, SourceWentBack(50, 49)),
        (50, 0, 0, SourceWentBack(50, 0)),
    ],
)
def test_the_offsets_decide(log_end, start, end, found):
    assert copy_continuation(log_end, SourceLog(0, start, end)) == found


def test_a_log_that_was_never_filled_has_lost_nothing():
    topic = MemoryTopic(partitions=2)
    topic.append(a_log("a=1 b=1").records)
    source = {p: SourceLog(p, 1, 9) for p in range(3)}
    assert copy_continuations(topic.state, source) == {0: CopyContinues(2), 1: CopyContinues(1), 2: CopyContinues(1)}
    assert copy_continuations(None, source) == dict.fromkeys(range(3), CopyContinues(1))


@pytest.mark.parametrize(
    ("stored", "there", "asked"),
    [
        (3, 5, {0: EpochAt(2, 3)}),
        (3, 1, {0: EpochAt(2, 3)}),  # another log under the same name
        (3, 3, {}),  # no log loses records within an epoch
        (None, 5, {}),  # copied by an earlier Lithify
        (3, None, {}),  # a broker that counts none
    ],
)
def test_a_source_with_another_leader_epoch_is_asked_whether_it_was_cut(stored, there, asked):
    """C72"""
    topic = MemoryTopic()
    topic.append(a_log("a=1 b=1").records)
    state = replace(topic.state, logs=(replace(topic.state.log(0), source_epoch=stored),))
    assert epochs_to_ask(state, {0: SourceLog(0, 0, 9, there), 1: SourceLog(1, 0, 9, 4)}) == asked


@pytest.mark.parametrize(
    ("start", "end", "compared"),
    [(0, 9, {0: 1}), (1, 9, {0: 1}), (0, 2, {0: 1}), (2, 9, {}), (0, 1, {})],  # gone there; went back
)
def test_a_source_is_asked_for_the_last_record_of_the_copy(start, end, compared):
    """C72: also where it has nothing new so far, as what comes then is not asked about."""
    topic = MemoryTopic(partitions=2)
    topic.append(a_log("a=1 b=1").records)
    source = {0: SourceLog(0, start, end, 3), 1: SourceLog(1, 0, 9, 3), 2: SourceLog(2, 0, 9, 3)}
    assert records_to_compare(topic.state, source) == compared


def test_another_record_in_place_of_the_last_one_is_a_cut():
    """C72: copies of times before 1900 may have other ones than Kafka."""
    topic = MemoryTopic()
    topic.append(a_log("a=1 b=1").records)
    own = topic.state.log(0).last_record
    assert cuts_by_records(topic.state, {0: (own.timestamp_ms, 7)}) == cuts_by_records(topic.state, {}) == {}
    assert cuts_by_records(topic.state, {0: (own.timestamp_ms + 1, 7)}) == {0: SourceWasCut(2, None)}
    old = replace(topic.state.log(0), last_record=replace(own, timestamp_ms=-2_208_988_800_001))
    assert cuts_by_records(replace(topic.state, logs=(old,)), {0: (7, 7)}) == {}


def test_another_record_with_the_same_timestamp_is_a_cut_by_its_key_or_value():
    """C72: a checksum is that of the record at its offset only."""
    topic = MemoryTopic()
    topic.append(a_log("a=1 b=1").records)
    last = topic.state.log(0).last_record
    signs = [signs_of(last.timestamp_ms, *both) for both in SIMILAR]
    assert len({*signs}) == len(signs)
    for checksum_at, found in ((last.offset, {0: SourceWasCut(2, None)}), (last.offset + 1, {})):
        state = replace(topic.state, logs=(replace(topic.state.log(0), source_last=(checksum_at, signs[0][1])),))
        assert cuts_by_records(state, {0: signs[0]}) == {}
        assert all(cuts_by_records(state, {0: other}) == found for other in signs[1:])


SIMILAR = [
    (b"b", b"1"),
    (b"b", b"2"),
    (b"b", b""),
    (b"b", None),
    (b"b1", b""),
    (None, b"b1"),
    (b"", b"b1"),
    (b"", None),
]


def test_only_a_copy_that_could_go_on_is_one_of_a_source_that_was_cut():
    found = {0: CopyContinues(5), 1: SourceWentBack(5, 4), 2: CopyContinues(5)}
    cut = {0: SourceWasCut(5, 3), 1: SourceWasCut(5, 3)}
    assert with_cuts(found, cut) == {0: SourceWasCut(5, 3), 1: SourceWentBack(5, 4), 2: CopyContinues(5)}


def test_a_log_that_has_the_last_record_is_not_cut_where_its_broker_does_not_know_the_epoch():
    """C72: a cluster that was restored to before later elections. Only a checksum proves that it is that record."""
    topic = MemoryTopic()
    topic.append(a_log("a=1 b=1").records)
    own = topic.state.log(0).last_record
    summed = replace(topic.state, logs=(replace(topic.state.log(0), source_last=(own.offset, 7)),))
    unknown, told = {0: SourceWasCut(2, None)}, {0: SourceWasCut(2, 1)}
    there = {0: (own.timestamp_ms, 7)}
    assert unproven(summed, unknown, there) == {}
    assert unproven(summed, unknown, {0: (own.timestamp_ms, 8)}) == unproven(summed, unknown, {}) == unknown
    assert unproven(summed, told, there) == told
    assert unproven(topic.state, unknown, there) == unknown


@pytest.mark.parametrize(
    ("start", "last", "compared"), [(0, 1, {0: (0, 1)}), (1, 1, {}), (0, 70, {0: (20, 70)}), (30, 70, {0: (30, 70)})]
)
def test_the_records_before_one_that_is_not_there_are_compared(start, last, compared):
    topic = MemoryTopic()
    topic.append(a_log("a=1 b=1").records)
    assert earlier_to_compare(topic.state, {0: SourceLog(0, start, 90, 3)}, {0: last}) == compared


@pytest.mark.parametrize(
    ("ours", "theirs", "is_cut"),
    [
        ({1: (5, 7), 2: (5, 8)}, {1: (5, 7), 3: (5, 9)}, False),
        ({1: (5, 7)}, {}, False),
        ({1: (5, 7), 2: (5, 8)}, {1: (5, 7), 2: (5, 9)}, True),
        ({1: (5, 7)}, {1: (6, 7)}, True),
        ({1: (-2_208_988_800_001, 7)}, {1: (6, 7)}, False),  # as an earlier version copied it
    ],
)
def test_another_record_at_an_offset_that_both_have_is_a_cut(ours, theirs, is_cut):
    """C72: where a transaction's marker, or nothing, is at the offset of the copy's last record."""
    topic = MemoryTopic()
    topic.append(a_log("a=1 b=1").records)
    assert cuts_by_earlier(topic.state, {0: ours}, {0: theirs}) == ({0: SourceWasCut(2, None)} if is_cut else {})


@pytest.mark.parametrize(("timestamp", "is_known"), [(5, True), (-1, True), (0, False), (-2_208_988_800_001, False)])
def test_what_a_consumer_has_read_is_compared_if_its_timestamp_is_that_of_kafka(timestamp, is_known):
    """C72: Kafka's client for Python gives 0 where there is none, and earlier versions copied others of old times."""
    record = ComparedRecord(3, timestamp, checksum_of(b"k", None))
    assert as_read(3, timestamp, b"k", None) == (record if is_known else None)
