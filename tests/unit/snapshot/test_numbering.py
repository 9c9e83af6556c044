"""Whether a copy counts a consumer's messages as the consumer did (C52)."""

from __future__ import annotations

import pytest

from lithify.api.lake import open_lake
from lithify.errors import LogTruncatedError
from lithify.model.message import MessageId
from lithify.pulsar.columns import messages_of
from lithify.pulsar.lake.records import records_of
from lithify.service.snapshot.live import Reached
from lithify.service.snapshot.numbering import check_numbering
from support.engines.kernel import compact_without_spark
from support.pulsar.entries import Sent, batch, single

ENTRIES = [
    batch(5, 0, [Sent("a"), Sent("b"), Sent("c")]),  # offsets 0, 1, 2
    single(7, 4, Sent("a")),
    single(9, 0, Sent("d")),
]


@pytest.fixture
def topic(tmp_path):
    topic = open_lake(str(tmp_path / "lake")).create_topic("t", like="pulsar", config={"message.ids": "pulsar"})
    for messages in messages_of(ENTRIES):
        topic.append(records_of(messages, 0))
    return topic


AGREES = [
    Reached(0),
    Reached(3),
    Reached(0, MessageId(5, -1)),
    Reached(2, MessageId(5, 0, 1)),
    Reached(3, MessageId(5, 0)),
    Reached(3, MessageId(7, 3)),
    Reached(4, MessageId(7, 4)),
    Reached(5, MessageId(9, 0)),
    Reached(5, MessageId(9, 1)),
    Reached(8, MessageId(9, 3)),
]
DIFFERS = [
    Reached(4, MessageId(5, 0, 2)),
    Reached(5, MessageId(7, 2)),
    Reached(6, MessageId(9, 0)),
    Reached(4, MessageId(9, 2)),
]


@pytest.mark.parametrize("at", AGREES)
def test_a_consumer_that_counted_as_the_copy_goes_on(topic, at):
    check_numbering(topic.warehouse, topic.state(), 0, at)
    compact_without_spark(topic)
    check_numbering(topic.warehouse, topic.state(), 0, at)


@pytest.mark.parametrize("at", DIFFERS)
def test_one_that_counted_otherwise_does_not(topic, at):
    with pytest.raises(LogTruncatedError, match=f"has read {at.offset} messages up to {at.message}, but the copy"):
        check_numbering(topic.warehouse, topic.state(), 0, at)
