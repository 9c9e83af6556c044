"""A copy's last message against what its topic has at that id (C52)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lithify.api.lake import open_lake
from lithify.errors import SourceWentBackError
from lithify.model.message import MessageId
from lithify.pulsar.columns import messages_of
from lithify.pulsar.format.entry import RawEntry
from lithify.pulsar.lake.records import records_of
from lithify.pulsar.lake.replaced_messages import behind, published_at_end, published_there, replaced_message
from lithify.spark.pulsar.entry_ranges import EntryRange
from support.pulsar.entries import Form, Sent, batch, single
from support.pulsar.topics import SEALING

A, B = Sent("a", b"1"), Sent("b", b"2")
PUBLISHED = Form(publish_time=77)
LATER = Form(publish_time=78)
KINDS = {
    "single": lambda form: single(7, 41, A, form),
    "batch": lambda form: batch(7, 41, [A, B], form),
    "encrypted batch": lambda form: batch(7, 41, [A, B], form, **SEALING),
    "chunk": lambda form: single(7, 41, A, form, uuid=b"u", chunk_id=0, num_chunks_from_msg=2, total_chunk_msg_size=2),
}
NEXT = single(7, 42, B, LATER)


@pytest.fixture(params=KINDS)
def kind(request):
    return KINDS[request.param]


def log_of(tmp_path, *entries: RawEntry):
    topic = open_lake(str(tmp_path)).create_topic("t", like="pulsar", config={"message.ids": "pulsar"})
    for messages in messages_of(entries):
        topic.append(records_of(messages, 0))
    return topic.state().log(0)


def test_the_same_message_is_the_same(tmp_path, kind):
    log = log_of(tmp_path, kind(PUBLISHED))
    theirs = published_there(log, lambda _at: kind(PUBLISHED))
    assert theirs == published_at_end(log) == 77
    assert replaced_message(log, theirs) is None


def test_another_one_is_named(tmp_path, kind):
    log = log_of(tmp_path, kind(PUBLISHED))
    assert log.last_record is not None
    assert replaced_message(log, published_there(log, lambda _at: kind(LATER))) == log.last_record.message_id


def test_one_that_is_gone_tells_nothing(tmp_path):
    log = log_of(tmp_path, KINDS["single"](PUBLISHED))
    assert published_there(log, lambda _at: None) is None
    assert replaced_message(log, None) is None


def test_a_copy_that_has_more_than_its_last_record_does_not_end_with_it(tmp_path):
    log = log_of(tmp_path, KINDS["single"](PUBLISHED))
    assert published_at_end(replace(log, copied_to=MessageId(7, 43))) is None
    assert published_at_end(replace(log, last_record=None)) is None


def test_a_range_is_read_from_the_copys_last_entry_and_copied_behind_it(kind):
    end = MessageId(7, 42)
    whole, within = EntryRange(0, "t", MessageId(7, 41), end, 77), EntryRange(0, "t", MessageId(7, 41, 0), end, 77)
    assert whole.start == within.start == MessageId(7, 41)
    first = kind(PUBLISHED)
    assert list(whole.behind(iter([[first, NEXT], [NEXT]]))) == [[NEXT], [NEXT]]
    assert list(within.behind(iter([[first, NEXT]]))) == [[first, NEXT]]  # a truncated copy lacks a part of it
    assert list(whole.behind(iter([[NEXT]]))) == [[NEXT]]  # it was trimmed
    with pytest.raises(SourceWentBackError, match="t now has another message at 7:41 than the one that was read"):
        list(whole.behind(iter([[kind(LATER), NEXT]])))


def test_a_range_that_compares_nothing_is_read_from_the_next_entry():
    assert EntryRange(0, "t", MessageId(7, 41), MessageId(7, 42)).start == MessageId(7, 42)
    assert EntryRange(0, "t", None, MessageId(7, 42)).start is None
    assert behind(MessageId(7, 41), 77, [NEXT], topic="t", hint="") == [NEXT]
