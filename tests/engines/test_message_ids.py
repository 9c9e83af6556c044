"""Topics with Pulsar's message ids, on both stores: what readers get, where they start, what truncations leave.

ledger:entry     5:0    5:1[0 1 2]    5:2    7:0    7:1 (passed through)    7:2
offset            0      1  2  3       4      5      6                       7
key               a      b  a  c       a      b      -                       d
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lithify.api.topic import Topic
from lithify.errors import InvalidRecordError, InvalidSettingError, OffsetOutOfRangeError, RefusedError
from lithify.model.cursor import Start
from lithify.model.message import EARLIEST, LATEST, Envelope, MessageId, MessagePosition
from lithify.model.names import TopicName
from lithify.model.record import Record
from lithify.model.topic.log import LastRecord
from lithify.model.topic.state import NewTopic
from lithify.pulsar.format.wire_pb2 import MessageMetadata
from lithify.rules.compaction.planner import plan_log
from lithify.service.proof.verify import verify
from lithify.service.round.compact import RunRequest, compact
from support.builders import some_settings
from support.checked.places import PLACES
from support.checked.trouble import RandomPlace
from support.engines.reading_inspector import ReadingInspector

NAME = TopicName("default", "states")
IDS = ((5, 0), (5, 1, 0), (5, 1, 1), (5, 1, 2), (5, 2), (7, 0), (7, 1), (7, 2))
KEYS = (b"a", b"b", b"a", b"c", b"a", b"b", None, b"d")


def message(offset: int) -> Record:
    """The record that gets this offset."""
    message_id, key = MessageId(*IDS[offset]), KEYS[offset]
    envelope = Envelope(message_id, 50 + offset if offset % 2 else None, b"m%d" % offset, key is None)
    return Record(key, b"v%d" % offset, 100 + 10 * offset, (("h", b"x"),) * (offset % 2), 0, envelope=envelope)


MESSAGES = tuple(message(offset) for offset in range(len(IDS)))


@pytest.fixture(params=sorted(PLACES))
def place(request: pytest.FixtureRequest) -> Iterator[RandomPlace]:
    with PLACES[request.param]() as opened:
        yield opened


@pytest.fixture
def topic(place: RandomPlace) -> Topic:
    """Three segments side by side, compacted up to the second."""
    settings = some_settings(
        message_ids="pulsar", compaction_mode="side-by-side", null_key="drop", delete_retention_ms=0
    )
    place.warehouse.store.create_topic(NewTopic(NAME, "states", settings, 1, 0))
    return Topic(place.warehouse, NAME)


def fill(topic: Topic, place: RandomPlace) -> None:
    topic.append(MESSAGES[:4])
    topic.append(MESSAGES[4:7])
    rounded(topic, place)
    topic.append(MESSAGES[7:])


def rounded(topic: Topic, place: RandomPlace) -> None:
    assert compact(place.warehouse, place.engine, NAME, RunRequest()).failed == ()
    assert verify(place.warehouse, ReadingInspector(place.warehouse.files), NAME).findings == ()


def offsets(topic: Topic, start: Start = "earliest", *, compacted: bool = False) -> list[int | None]:
    return [record.offset for record in topic.reader(0, start, compacted=compacted)]


def test_records_come_back_with_their_ids_and_a_round_keeps_what_is_passed_through(topic, place):
    """C52, C53, C16: null.key=drop, and a whole entry stays nevertheless."""
    fill(topic, place)
    assert [r._replace(offset=None) for r in topic.reader(0)] == list(MESSAGES)
    assert offsets(topic, compacted=True) == [3, 4, 5, 6, 7]
    assert [r.envelope for r in topic.reader(0, compacted=True)] == [m.envelope for m in MESSAGES[3:]]
    assert sorted(row["offset"] for row in topic.table().to_pylist()) == [3, 4, 5, 7]


def test_a_second_round_reads_nothing_for_what_is_passed_through(topic, place):
    """C41, C53: it is not taken for a record that may go."""
    fill(topic, place)
    rounded(topic, place)
    state, store = topic.state(), place.warehouse.store
    assert plan_log(state.log(0), store.segments(state), state.settings, 0, store.view(state)).is_idle


def test_a_delete_stays_while_an_entry_may_hide_what_it_deletes(topic, place):
    """C53, C18: `delete.retention.ms=0` drops it at once where there is none, and once there is none any more."""
    fill(topic, place)
    ids = MessageId(8, 0), MessageId(8, 1)
    topic.append([Record(b"a", None, 200, partition=0, envelope=Envelope(ids[0]))])
    rounded(topic, place)
    assert offsets(topic, compacted=True) == [3, 5, 6, 7, 8]
    assert sorted(row["offset"] for row in topic.table().to_pylist()) == [3, 5, 7]
    (status,) = topic.status().logs
    assert (status.passed_through, status.tombstones, status.due) == (1, 1, False)
    topic.delete_records(0, 7)
    rounded(topic, place)
    assert topic.status().logs[0].passed_through == 0
    topic.append([Record(b"e", None, 210, partition=0, envelope=Envelope(ids[1]))])
    rounded(topic, place)
    assert offsets(topic, compacted=True) == [7]


@pytest.mark.parametrize(
    ("start", "plain", "compacted"),
    [
        (MessageId(5, 0), 0, 3),
        (MessageId(5, 1), 1, 3),
        (MessageId(5, 1, 1), 2, 3),
        (MessageId(5, 3), 5, 5),  # no such message: the next
        (MessageId(7, 1), 6, 6),
        (MessageId(7, 2), 7, 7),
        (MessageId(7, 2, 5), 7, 7),  # an entry that is no batch has every index, as for Pulsar's clients
        (EARLIEST.id, 0, 3),
        (LATEST.id, 8, 8),
        (MessagePosition(5, 1, 1, 120), 2, 3),
        (MessagePosition(7, 1, -1, 999), 6, 6),  # when it was published does not count
        (EARLIEST, 0, 3),
        (LATEST, 8, 8),
    ],
)
def test_a_reader_starts_at_an_id_or_at_the_next_that_is_left(topic, place, start, plain, compacted):
    """C52."""
    fill(topic, place)
    every = list(range(8))
    assert offsets(topic, start) == every[plain:]
    assert offsets(topic, start, compacted=True) == every[compacted:]
    reader = topic.reader(0)
    reader.seek(start)
    assert [record.offset for record in reader] == every[plain:]


def test_all_logs_have_an_earliest_and_a_latest_position_and_no_other(topic, place):
    """C52."""
    fill(topic, place)
    assert [record.offset for record in topic.reader(start=EARLIEST)] == list(range(8))
    assert list(topic.reader(start=LATEST)) == []
    with pytest.raises(RefusedError, match="message id 5:1:1 belongs to one log"):
        topic.reader(start=MessagePosition(5, 1, 1, 120))


def test_an_id_that_was_not_copied_yet_is_no_place_to_start(topic, place):
    """C52: else a reader would never get it."""
    fill(topic, place)
    with pytest.raises(OffsetOutOfRangeError, match="message id 7:3 was not copied yet: the last copied one is 7:2"):
        topic.reader(0, MessageId(7, 3))


def test_last_positions_and_publish_times(topic, place):
    """C52, C36: as Pulsar's compaction service answers (PIP-429)."""
    assert (topic.reader(0).last_message_id(), topic.last_message_position()) == (EARLIEST, EARLIEST)
    assert topic.find_by_publish_time(0) is None
    fill(topic, place)
    last = MessagePosition(7, 2, -1, 170)
    assert (topic.reader(0, compacted=True).last_message_id(), topic.reader().last_message_id()) == (last, {0: last})
    assert topic.last_message_position(compacted=True) == last
    assert topic.find_by_publish_time(101) == MessagePosition(5, 1, 0, 110)
    assert topic.find_by_publish_time(101, compacted=True) == MessagePosition(5, 1, 2, 130)
    assert topic.find_by_publish_time(171) is None


SEALED = MessageMetadata(producer_name=b"p", sequence_id=1, publish_time=2, num_messages_in_batch=4)
BATCH = Envelope(MessageId(8, 0), metadata=SEALED.SerializeToString(), passed_through=True)
AROUND = (
    Record(b"a", b"1", 200, partition=0, envelope=Envelope(MessageId(7, 9))),
    Record(None, b"sealed", 210, partition=0, envelope=BATCH),
    Record(b"b", b"2", 220, partition=0, envelope=Envelope(MessageId(8, 1, 0))),
)


@pytest.mark.parametrize("index", range(-1, 4))
def test_a_start_at_any_index_of_an_encrypted_batch_begins_with_it(topic, place, index):
    """C52: it is one record, and clients of Pulsar have the ids of the messages in it."""
    topic.append(AROUND)
    assert offsets(topic, MessageId(8, 0, index)) == [1, 2]
    assert offsets(topic, MessagePosition(8, 0, index, 0)) == [1, 2]
    compact(place.warehouse, place.engine, NAME, RunRequest(now_ms=10**6))
    assert offsets(topic, MessageId(8, 0, index), compacted=True) == [1, 2]


def test_the_last_position_is_that_of_the_last_message_in_an_encrypted_batch(topic, place):
    """C52: as Pulsar has it (PIP-429), from the log, from a view, and while following."""
    topic.append(AROUND[:2])
    last = MessagePosition(8, 0, 3, 210)
    follower = topic.reader(0, follow=True)
    for _ in range(2):
        assert [topic.last_message_position(compacted=compacted) for compacted in (False, True)] == [last, last]
        assert topic.reader(0, compacted=True).last_message_id() == topic.reader(0).last_message_id() == last
        assert (follower.last_message_id(), topic.reader().last_message_id()) == (last, {0: last})
        compact(place.warehouse, place.engine, NAME, RunRequest(now_ms=10**6))
    assert topic.state().log(0).view.volume.passed_through == 1
    topic.append(AROUND[2:])
    assert topic.last_message_position(compacted=True) == MessagePosition(8, 1, 0, 220)


def test_an_encrypted_batch_whose_metadata_says_nothing_has_its_own_id_as_the_last(topic):
    """C52: a program may append such a record."""
    for metadata in (None, b"\xff"):
        message_id = topic.last_message_position().id
        again = BATCH._replace(id=MessageId(8, message_id.entry + 1), metadata=metadata)
        topic.append([AROUND[1]._replace(envelope=again)])
        assert topic.last_message_position().id == again.id


def test_what_was_appended_is_not_appended_again(topic):
    """C52: nor anything before it, nor half a batch."""
    topic.append(MESSAGES[:3])
    assert topic.state().log(0).copied_to == MessageId(5, 1, 1)
    for again in (MESSAGES[2:4], MESSAGES[:1]):
        with pytest.raises(InvalidRecordError, match="the log has everything up to 5:1:1"):
            topic.append(again)
    with pytest.raises(InvalidRecordError, match="message id 5:1 arrived"):  # all of an entry that is there in part
        topic.append([MESSAGES[6]._replace(envelope=Envelope(MessageId(5, 1), passed_through=True))])
    topic.append(MESSAGES[3:])
    assert offsets(topic) == list(range(8))


@pytest.mark.parametrize(
    ("to", "copied_to"), [(7, (7, 1)), (6, (7, 0)), (3, (5, 1, 1)), (1, (5, 0)), (0, (5, -1)), (8, (7, 2))]
)
def test_what_a_truncation_removes_is_copied_again_and_nothing_else(topic, place, to, copied_to):
    """C52, C26: also from within a batch."""
    fill(topic, place)
    topic.truncate(0, to, below_compacted=True)
    assert topic.state().log(0).copied_to == MessageId(*copied_to)
    topic.append(MESSAGES[to:]) if to < 8 else None
    assert [r._replace(offset=None) for r in topic.reader(0)] == list(MESSAGES)


def test_rounds_and_deleted_records_stay_copied(topic, place):
    """C52."""
    fill(topic, place)
    topic.delete_records(0, 8)
    assert topic.state().log(0).copied_to == MessageId(7, 2)
    assert topic.reader(0).last_message_id() == EARLIEST


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (Record(b"k", b"v", partition=0), "it has no message id, but message.ids=pulsar"),
        (MESSAGES[0]._replace(partition=None), "it has a message id, but no partition"),
        (MESSAGES[6]._replace(key=b"k"), "it is an entry that is passed through whole, but has a key"),
        (MESSAGES[0]._replace(envelope=Envelope(MessageId(5, -1))), "its message id 5:-1 has a negative part"),
    ],
)
def test_records_that_are_refused(topic, record, reason):
    """C52, C53."""
    with pytest.raises(InvalidRecordError, match=reason) as error:
        topic.append([record])
    assert error.value.index == 0


def test_ids_of_a_batch_ascend(topic):
    """C52: in each partition."""
    with pytest.raises(InvalidRecordError, match="message id 5:1:1 does not ascend: 5:1:1 came before it") as error:
        topic.append([MESSAGES[0], MESSAGES[2], MESSAGES[2]])
    assert error.value.index == 2


def test_other_topics_take_no_ids_and_have_none(place):
    """C52: records and readers of ordinary topics stay as they are."""
    place.warehouse.store.create_topic(NewTopic(NAME, "states", some_settings(), 1, 0))
    topic = Topic(place.warehouse, NAME)
    with pytest.raises(InvalidRecordError, match=r"it has a message id, but message\.ids=none"):
        topic.append(MESSAGES[:1])
    topic.append([Record(b"k", b"v", 5)])
    assert topic.reader(0).last_message_id() == LastRecord(0, 5)
    assert [r.envelope for r in topic.reader(0)] == [None]
    asked = (
        lambda: topic.reader(0, MessageId(1, 1)),
        lambda: topic.reader(0, EARLIEST),
        lambda: topic.find_by_publish_time(1),
    )
    for ask in asked:
        with pytest.raises(RefusedError, match="its records have no message ids"):
            ask()


def test_the_kind_of_a_topic_never_changes(topic):
    """C52, C43."""
    with pytest.raises(InvalidSettingError, match=r"message\.ids=pulsar cannot be changed"):
        topic.alter({"message.ids": "none"})
