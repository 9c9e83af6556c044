"""Entries as a producer and a broker would make them: `single` and `batch`, from plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lithify.pulsar.format.codecs import NONE, compressed
from lithify.pulsar.format.entry import RawEntry, joined, prefixed
from lithify.pulsar.format.wire_pb2 import BrokerEntryMetadata, KeyValue, MessageMetadata, SingleMessageMetadata


@dataclass(frozen=True, slots=True)
class Sent:
    """A message as a producer sends it; a value of None is what Pulsar calls a null value."""

    key: str | None
    value: bytes | None = b"v"
    event_time: int = 0
    sequence_id: int = 0
    properties: Mapping[str, str] = field(default_factory=dict)
    key_is_base64: bool = False
    ordering_key: bytes | None = None

    def describe(self, metadata: MessageMetadata | SingleMessageMetadata) -> None:
        """The fields that an entry and a message of a batch have in common."""
        pairs = self.properties.items()
        metadata.properties.extend(KeyValue(key=key.encode(), value=value.encode()) for key, value in pairs)
        if self.key is not None:
            metadata.partition_key = self.key.encode()
            metadata.partition_key_b64_encoded = self.key_is_base64
        if self.event_time:
            metadata.event_time = self.event_time
        if self.ordering_key is not None:
            metadata.ordering_key = self.ordering_key
        if self.value is None:
            metadata.null_value = True
        metadata.sequence_id = self.sequence_id

    @property
    def payload(self) -> bytes:
        return self.value or b""


@dataclass(frozen=True, slots=True)
class Form:
    """What may differ from entry to entry whatever is in it."""

    codec: int = NONE
    publish_time: int = 1
    producer: str = "p"
    checksum: bool = True
    broker_index: int | None = None
    says_size: bool = True
    """Whether the metadata has the uncompressed size, also where nothing is compressed; Python's client has not."""

    def wrapped(self, ledger: int, entry: int, metadata: MessageMetadata, data: bytes) -> RawEntry:
        """The entry with this metadata and uncompressed payload."""
        metadata.producer_name, metadata.publish_time = self.producer.encode(), self.publish_time
        if self.codec != NONE:
            metadata.compression = self.codec
        elif not self.says_size:
            metadata.ClearField("uncompressed_size")
        broker = None
        if self.broker_index is not None:
            broker = BrokerEntryMetadata(broker_timestamp=self.publish_time, index=self.broker_index)
        before = None if broker is None else broker.SerializeToString()
        payload = compressed(self.codec, data)
        stored = joined(before, metadata.SerializeToString(), payload, checksum=self.checksum)
        return RawEntry(ledger, entry, stored)


PLAIN = Form()


def single(ledger: int, entry: int, sent: Sent, form: Form = PLAIN, **fields: object) -> RawEntry:
    """An entry of one message; `fields` are further fields of its metadata."""
    metadata = MessageMetadata(uncompressed_size=len(sent.payload))
    sent.describe(metadata)
    metadata.MergeFrom(MessageMetadata(**fields))  # type: ignore[arg-type]
    return form.wrapped(ledger, entry, metadata, sent.payload)


def batch(ledger: int, entry: int, sent: Sequence[Sent], form: Form = PLAIN, **fields: object) -> RawEntry:
    """An entry of several messages, with the key of the first one, as clients write it."""
    metadata = MessageMetadata(num_messages_in_batch=len(sent), sequence_id=sent[0].sequence_id)
    if sent[0].key is not None:
        metadata.partition_key = sent[0].key.encode()
    data = b"".join(stored_in_batch(message) for message in sent)
    metadata.uncompressed_size = len(data)
    metadata.MergeFrom(MessageMetadata(**fields))  # type: ignore[arg-type]
    return form.wrapped(ledger, entry, metadata, data)


def stored_in_batch(sent: Sent, *, compacted_out: bool = False) -> bytes:
    """A message as it is in the uncompressed payload of a batch."""
    metadata = SingleMessageMetadata(payload_size=len(sent.payload))
    sent.describe(metadata)
    if compacted_out:
        metadata.compacted_out = True
    return b"".join(prefixed(metadata.SerializeToString())) + sent.payload
