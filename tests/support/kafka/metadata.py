"""The metadata log of a cluster, as a broker has it in its directory."""

from __future__ import annotations

import struct
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lithify.kafka_log.batches.encoding import encoded
from lithify.kafka_protocol.table import record_kinds
from lithify.kafka_protocol.writing import Pieces, struct_writer
from support.kafka.batches import control_batch, table_of

TOPIC, BROKER = 2, 4
Record = tuple[str, Mapping[str, Any]]


def id_of(topic: str) -> bytes:
    return uuid.uuid5(uuid.NAMESPACE_DNS, topic).bytes


def text_id(topic: str) -> str:
    """As `partition.metadata` has it."""
    return urlsafe_b64encode(id_of(topic)).rstrip(b"=").decode()


def a_topic(name: str, topic_id: bytes | None = None) -> Record:
    return "TopicRecord", {"name": name, "topic_id": topic_id or id_of(name)}


def removed(name: str) -> Record:
    return "RemoveTopicRecord", {"topic_id": id_of(name)}


def a_setting(owner: str, name: str, value: str | None, kind: int = TOPIC) -> Record:
    return "ConfigRecord", {"resource_type": kind, "resource_name": owner, "name": name, "value": value}


BEGIN: Record = ("BeginTransactionRecord", {"name": "n"})
END: Record = ("EndTransactionRecord", {})
ABORT: Record = ("AbortTransactionRecord", {"reason": None})


def bytes_of(record: Record) -> bytes:
    name, fields = record
    (number,) = (number for number, kind in record_kinds().items() if kind.name == name)
    pieces: Pieces = []
    struct_writer(record_kinds()[number].fields, 0, flexible=True)(pieces, fields)
    return bytes([1, number, 0]) + b"".join(pieces)


def batch_of(offset: int, records: Sequence[Record | bytes]) -> bytes:
    """One batch; records given as bytes are as they are."""
    values = [one if isinstance(one, bytes) else bytes_of(one) for one in records]
    (data,) = encoded(table_of([(offset + n, 1, 0, None, value, None) for n, value in enumerate(values)]))
    return data


def snapshot_of(records: Sequence[Record | bytes], *, is_whole: bool = True) -> bytes:
    ends = [control_batch(0, -1, struct.pack(">hh", 0, 3)), batch_of(1, records)]
    if is_whole:
        ends.append(control_batch(1 + len(records), -1, struct.pack(">hh", 0, 4)))
    return b"".join(ends)


def write_log(root: Path, *records: Record | bytes, start: int = 0, name: str | None = None) -> Path:
    """The folder, with these in one segment, a batch each."""
    folder = root / "__cluster_metadata-0"
    folder.mkdir(parents=True, exist_ok=True)
    data = b"".join(batch_of(start + n, [record]) for n, record in enumerate(records))
    (folder / (name or f"{start:020}.log")).write_bytes(data)
    return folder
