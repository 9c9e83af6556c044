"""Writes a stored warehouse with copies of Pulsar topics that have chunks and encrypted batches (C53).

    PYTHONPATH=tests python -m formats.make_copies NAME

It makes `NAME.zip`, and beside it `NAME.json` with what must be read from it, as `formats.make_warehouse` does for each
version of the format. `unmarked-chunks` was made by a Lithify that did not yet mark the chunks in a segment, so that
they count as encrypted batches there; `marked-chunks` by the first ones that did.
"""

from __future__ import annotations

import sys

import lithify
from formats.make_warehouse import HOUR_MS, archived
from lithify.pulsar.columns import messages_of
from lithify.pulsar.format.entry import RawEntry
from lithify.pulsar.lake.records import records_of
from support.pulsar.entries import Sent, batch, single
from support.pulsar.topics import SEALING

CHUNK = {"uuid": b"u", "chunk_id": 0, "num_chunks_from_msg": 2, "total_chunk_msg_size": 8}
WHOLE = (single(1, 0, Sent("a", b"part"), **CHUNK), batch(1, 0, [Sent("a", b"0"), Sent("e", b"0")], **SEALING))
"""By partition: a chunk of the key `a`, and an encrypted batch."""
FIRST = (single(1, 1, Sent("a", b"1")), batch(1, 2, [Sent("b", b"1"), Sent("c", b"1")]))
DELETES = (single(2, 0, Sent("a", b"")), batch(2, 1, [Sent("b", b""), Sent("d", b"1")]))
LATER = (single(3, 0, Sent("d", b"2")),)


def copied(lake: lithify.Lake, name: str, **config: object) -> int:
    """Two logs with expired deletes, those of their whole entries among them; returns the time of the last round."""
    ours = {"message.ids": "pulsar", "delete.retention.ms": HOUR_MS, "versions.kept": 2}
    topic = lake.create_topic(name, 2, like="pulsar", config=ours | config)
    at = topic.info().created_ms
    for partition, whole in enumerate(WHOLE):
        appended(topic, partition, whole, *FIRST)
        appended(topic, partition, *DELETES)
    topic.compact(now_ms=at)
    topic.compact(now_ms=at + 2 * HOUR_MS)
    for partition, _ in enumerate(WHOLE):
        appended(topic, partition, *LATER)
    return at + 2 * HOUR_MS


def appended(topic: lithify.Topic, partition: int, *entries: RawEntry) -> None:
    for messages in messages_of(entries):
        topic.append(records_of(messages, partition))


def both_modes(lake: lithify.Lake) -> int:
    """Returns the time of the last round."""
    copied(lake, "in-place", **{"compaction.mode": "in-place"})
    return copied(lake, "side-by-side")


if __name__ == "__main__":
    archived(sys.argv[1], both_modes)
