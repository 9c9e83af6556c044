"""The tail of a Pulsar topic, from a broker that a test plays: each record once, as the copy has it later (C52)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from lithify.api.lake import open_lake
from lithify.errors import DamagedError, SourceLostError, SourceWentBackError
from lithify.model.message import MessageId
from lithify.model.record import Record
from lithify.pulsar.client import ClientConfig, Cluster, TopicReader
from lithify.pulsar.columns import Damage, messages_of
from lithify.pulsar.format.codecs import ZSTD
from lithify.pulsar.format.entry import RawEntry
from lithify.pulsar.lake.records import records_of
from lithify.pulsar_consumer.kept_whole import KeptWhole
from lithify.pulsar_consumer.live_tail import Check, PulsarTail
from lithify.service.snapshot.live import Reached
from lithify.testing.fake_clock import FakeClock
from support.pulsar.entries import Form, Sent, batch, single
from support.pulsar.fake_broker import FakeBroker, a_fake_broker
from support.pulsar.topics import SEALING

TOPIC = "persistent://t/n/topic"
CHUNK = {"uuid": b"u", "chunk_id": 0, "num_chunks_from_msg": 2, "total_chunk_msg_size": 8}
ENTRIES = [
    batch(5, 0, [Sent("a", b"1", properties={"x": "y"}), Sent("b", None, event_time=9), Sent(None, b"3")]),
    single(5, 1, Sent("c", b"sealed"), **SEALING),
    batch(5, 2, [Sent("d"), Sent("e")], **SEALING),
    single(5, 3, Sent("f"), marker_type=1),
    single(7, 0, Sent("g", b"part"), **CHUNK),
    batch(7, 1, [Sent("h"), Sent("i")]),
]


def complete(_partition: int, _at: Reached) -> None:
    """Nothing was trimmed."""


def tail_of(
    broker: FakeBroker, at: Reached, check: Check = complete, kept_whole: KeptWhole | None = None
) -> PulsarTail:
    config = ClientConfig(broker.url, answer_s=5, outage_s=5)
    cluster = Cluster(config)
    return PulsarTail(
        {0: TopicReader(config, TOPIC)},
        {0: at},
        FakeClock(),
        last_id=lambda _partition: cluster.last_id(TOPIC),
        check=check,
        kept_whole={} if kept_whole is None else {0: kept_whole},
    )


def all_of(tail: PulsarTail) -> Iterator[Record]:
    while some := tail.take(1):
        yield from some


def copied(tmp_path, entries: Sequence[RawEntry], damage: Damage | None = None) -> list[Record]:
    topic = open_lake(str(tmp_path / "lake")).create_topic("t", like="pulsar", config={"message.ids": "pulsar"})
    for messages in messages_of(entries, damage):
        topic.append(records_of(messages, 0, damage=damage))
    return list(topic.reader(0))


def test_records_are_those_that_the_copy_will_have(tmp_path):
    with a_fake_broker(*ENTRIES) as broker:
        tail = tail_of(broker, Reached(0))
        found = list(all_of(tail))
        assert found == copied(tmp_path, ENTRIES)
        assert [r.envelope.passed_through for r in found] == [False] * 4 + [True, True] + [False] * 2
        assert tail.is_at_end(0)
        assert tail.reached == {0: Reached(8, MessageId(7, 1))}
        broker.entries = [*ENTRIES, single(9, 0, Sent("late"))]
        assert not tail.is_at_end(0)
        assert [(r.key, r.offset) for r in all_of(tail)] == [(b"late", 8)]


def test_a_cluster_that_is_set_back_while_it_waits_is_noticed():
    """C52: to other messages with the same ids, or to less than was read, which would seem to be nothing new."""
    went_back: list[Reached] = []
    with a_fake_broker(*ENTRIES) as broker:
        tail = tail_of(broker, Reached(0), lambda _partition, at: went_back.append(at))
        assert len(list(all_of(tail))) == 8
        broker.entries = ENTRIES[:3]
        went_back.clear()
        assert tail.take(0) == ()
        assert went_back == [Reached(8, MessageId(7, 1))]
        others = batch(7, 1, [Sent("h"), Sent("i")], Form(publish_time=5))
        broker.entries = [*ENTRIES[:5], others, single(7, 2, Sent("new"))]
        with pytest.raises(SourceWentBackError, match="now has another message at 7:1 than the one that was read"):
            tail.take(0)


@pytest.mark.parametrize(
    "message, keys",
    [
        (MessageId(5, 0), [b"c", None, None, b"h", b"i"]),
        (MessageId(5, 0, 0), [b"b", None, b"c", None, None, b"h", b"i"]),
        (MessageId(5, 0, 2), [b"c", None, None, b"h", b"i"]),
        (MessageId(7, -1), [None, b"h", b"i"]),
        (MessageId(7, 1, 0), [b"i"]),
        (MessageId(7, 1), []),
    ],
)
def test_it_begins_behind_an_id_also_within_a_batch(message, keys):
    with a_fake_broker(*ENTRIES) as broker:
        found = list(all_of(tail_of(broker, Reached(40, message))))
    assert [r.key for r in found] == keys
    assert [r.offset for r in found] == list(range(40, 40 + len(keys)))


@pytest.mark.parametrize("checks, taken", [(0, 0), (1, 8)])
def test_nothing_counts_that_was_trimmed_while_it_was_read(checks, taken):
    """The check comes after entries were fetched, and once more after the last ones."""
    asked: list[Reached] = []

    def check(_partition: int, at: Reached) -> None:
        asked.append(at)
        if len(asked) > checks:
            raise SourceLostError("trimmed")

    with a_fake_broker(*ENTRIES) as broker:
        tail = tail_of(broker, Reached(0, MessageId(5, -1)), check)
        found: list[Record] = []
        with pytest.raises(SourceLostError):
            found.extend(all_of(tail))
            raise AssertionError("it ended")
        assert asked[0] == Reached(0, MessageId(5, -1))
        assert tail.reached[0].offset == taken
        assert tail.reached[0].message == (MessageId(7, 1, 1) if taken else MessageId(5, -1))


LIARS = [
    single(5, 0, Sent("a", b"1")),
    batch(5, 1, [Sent("b"), Sent("c")], num_messages_in_batch=9),
    single(5, 2, Sent("d", b"no frame of Zstandard"), compression=ZSTD),
    batch(7, 0, [Sent("e")], num_messages_in_batch=2),
    single(7, 1, Sent("f", b"6")),
]
"""The second, third and fourth are not what their producer says."""


def test_what_a_producer_wrote_damaged_is_an_error_that_says_how_to_go_on():
    with a_fake_broker(*LIARS) as broker:
        tail = tail_of(broker, Reached(0))
        with pytest.raises(DamagedError, match="entry 5:1 of the topic is damaged") as told:
            list(all_of(tail))
    assert "keep it whole with skip_damaged=True" in str(told.value)


def test_what_a_producer_wrote_damaged_is_gone_round_as_the_copy_does(tmp_path):
    """C74: with the same offsets. What is read again, as after an interrupt, is told once."""
    kept = KeptWhole()
    with a_fake_broker(*LIARS) as broker:
        found = list(all_of(tail_of(broker, Reached(0), kept_whole=kept)))
        damage = Damage()
        assert found == copied(tmp_path, LIARS, damage)
        assert [(r.key, r.offset, r.passed_through) for r in found] == [
            (b"a", 0, False),
            (None, 1, True),
            (b"d", 2, False),
            (None, 3, True),
            (b"f", 4, False),
        ]
        assert (kept.count, kept.named) == (3, ["5:1", "5:2", "7:0"])
        assert (damage.count, sorted(damage.named)) == (3, kept.named)
        assert list(all_of(tail_of(broker, Reached.by(found[1]), kept_whole=kept))) == found[2:]
        broker.entries = [*LIARS, batch(9, 0, [Sent("g")], num_messages_in_batch=5)]
        assert len(list(all_of(tail_of(broker, Reached.by(found[-1]), kept_whole=kept)))) == 1
    assert (kept.count, kept.named) == (4, ["5:1", "5:2", "7:0", "9:0"])
