"""Entries as records with their ids: what is key, value, headers and metadata of each (C52, C53)."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest

from lithify.api.lake import open_lake
from lithify.errors import DamagedError
from lithify.model.message import MessageId
from lithify.model.record import Record
from lithify.pulsar.columns import messages_of
from lithify.pulsar.format.entry import RawEntry, prefixed
from lithify.pulsar.format.wire_pb2 import EncryptionKeys, MessageMetadata, SingleMessageMetadata
from lithify.pulsar.lake.records import records_of
from support.pulsar.entries import Form, Sent, batch, single

KEYS = [EncryptionKeys(key=b"k", value=b"secret")]
LZ4 = Form(codec=1, publish_time=77)


@pytest.fixture
def records(tmp_path):
    """What a topic has that these entries are copied into."""

    def taken(entries: Sequence[RawEntry], after: MessageId | None = None) -> list[Record]:
        lake = open_lake(str(tmp_path / "lake"))
        topic = lake.create_topic("t", like="pulsar", config={"message.ids": "pulsar"})
        tables = [records_of(messages, 0, after) for messages in messages_of(entries)]
        table = pa.concat_tables(tables)
        if table.num_rows:
            topic.append(table)
        return list(topic.reader(0))

    return taken


def metadata(record: Record) -> MessageMetadata:
    assert record.envelope is not None and record.envelope.metadata is not None
    return MessageMetadata.FromString(record.envelope.metadata)


def test_messages_of_a_batch_and_on_their_own(records):
    """C52: every field has its column, or is in the metadata."""
    sent = [
        Sent("a", b"1", 5, 10, {"x": "y", "z": ""}, ordering_key=b"o"),
        Sent("b", b"", 0, 11),
        Sent("", None, 6, 12, key_is_base64=True),
        Sent(None, b"4", 0, 13),
    ]
    found = records([batch(5, 0, sent, LZ4, schema_version=b"s"), single(5, 3, sent[0], LZ4, replicated_from=b"r")])
    assert [(r.key, r.value, r.timestamp) for r in found] == [
        (b"a", b"1", 77),
        (b"b", b"", 77),
        (b"", None, 77),
        (None, b"4", 77),
        (b"a", b"1", 77),
    ]
    assert [str(r.envelope.id) for r in found] == ["5:0:0", "5:0:1", "5:0:2", "5:0:3", "5:3"]
    assert [r.envelope.event_time for r in found] == [5, None, 6, None, 5]
    assert [r.headers for r in found] == [(("x", b"y"), ("z", b"")), (), (), (), (("x", b"y"), ("z", b""))]
    assert [metadata(r).sequence_id for r in found] == [10, 11, 12, 13, 10]
    assert [metadata(r).partition_key_b64_encoded for r in found] == [False, False, True, False, False]
    first, alone = metadata(found[0]), metadata(found[4])
    assert (first.producer_name, first.schema_version, first.ordering_key) == (b"p", b"s", b"o")
    assert (first.num_messages_in_batch, alone.replicated_from) == (4, b"r")
    for one in (first, alone):
        assert not one.HasField("partition_key") and not one.properties and not one.HasField("compression")


def test_a_message_has_no_keys_of_the_first_one_in_its_batch(records):
    """C52: producers repeat those in the metadata of the batch."""
    first = Sent("a", ordering_key=b"o", key_is_base64=True)
    of_batch = {"ordering_key": b"o", "partition_key_b64_encoded": True, "null_partition_key": True}
    found = [metadata(record) for record in records([batch(5, 0, [first, Sent("b"), Sent(None)], **of_batch)])]
    assert [one.ordering_key for one in found] == [b"o", b"", b""]
    assert [one.partition_key_b64_encoded for one in found] == [True, False, False]
    assert [one.null_partition_key for one in found] == [False] * 3


def test_fields_of_an_entry_that_are_not_known_are_kept_and_those_of_a_message_in_a_batch_are_not(records):
    """C52: a `MessageMetadata` has no place for them, since other fields have their numbers there."""
    one = SingleMessageMetadata(payload_size=1, partition_key=b"k").SerializeToString() + b"\x5a\x01x"  # number 11
    whole = MessageMetadata(producer_name=b"p", sequence_id=1, publish_time=2, num_messages_in_batch=1)
    field = b"\xfa\x3e\x03new"
    sent = whole.SerializeToString() + field
    (found,) = records([RawEntry(5, 0, b"".join((*prefixed(sent), *prefixed(one), b"v")))])
    assert (found.key, found.value, metadata(found).num_messages_in_batch) == (b"k", b"v", 1)
    assert field in found.envelope.metadata
    assert b"\x01x" not in found.envelope.metadata


def test_unknown_fields_are_kept(records):
    """C52: of a later Pulsar."""
    made = single(5, 0, Sent("a"))
    field = b"\xfa\x3e\x03new"  # number 1007
    whole = MessageMetadata(producer_name=b"p", sequence_id=1, publish_time=2).SerializeToString() + field
    entry = RawEntry(5, 1, len(whole).to_bytes(4, "big") + whole + b"v")
    assert field in records([made, entry])[1].envelope.metadata


def test_an_encrypted_message_has_its_key_and_its_payload_as_it_is(records):
    """C53: it competes as any other."""
    (found,) = records([single(5, 0, Sent("a", b"sealed"), encryption_keys=KEYS, encryption_param=b"iv")])
    assert (found.key, found.value, found.passed_through) == (b"a", b"sealed", False)
    assert metadata(found).encryption_param == b"iv"


def test_encrypted_batches_and_chunks_pass_through_whole(records):
    """C53: one record each, without a key."""
    sealed = batch(5, 0, [Sent("a", b"1"), Sent("b", b"2")], encryption_keys=KEYS)
    chunk = single(5, 1, Sent("c", b"half"), uuid=b"u", num_chunks_from_msg=2, chunk_id=0, total_chunk_msg_size=9)
    found = records([sealed, chunk])
    assert [(r.key, r.passed_through, str(r.envelope.id)) for r in found] == [(None, True, "5:0"), (None, True, "5:1")]
    assert found[1].value == b"half"
    assert sealed.data.endswith(found[0].value)
    assert (metadata(found[0]).partition_key, metadata(found[1]).uuid) == (b"a", b"u")


def test_markers_are_no_records(records):
    assert records([single(5, 0, Sent(None), marker_type=10)]) == []


def test_a_copy_continues_within_a_batch(records):
    """C52: after a truncation."""
    entries = [batch(5, 0, [Sent("a"), Sent("b"), Sent("c")]), single(5, 1, Sent("d"))]
    assert [r.key for r in records(entries, MessageId(5, 0, 1))] == [b"c", b"d"]


def test_a_damaged_entry_is_named(records):
    with pytest.raises(DamagedError, match="entry 5:0"):
        records([RawEntry(5, 0, b"\x0e\x01\x00\x00\x00\x00\x00\x00\x00\x00")])


@pytest.mark.parametrize(("index", "is_copied"), [(0, True), (1, True), (2, False), (-1, False)])
def test_a_copy_that_ends_within_an_encrypted_batch_gets_it(records, index, is_copied):
    """C52: as a whole, unless it ends with its last message."""
    sealed = batch(5, 1, [Sent("a"), Sent("b"), Sent("c")], encryption_keys=KEYS)
    found = records([sealed, single(5, 2, Sent("d"))], MessageId(5, 1, index))
    first = ["5:1"] if is_copied or index == -1 else []
    assert [str(r.envelope.id) for r in found] == [*first, "5:2"]
