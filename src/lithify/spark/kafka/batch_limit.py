"""How much of a topic one batch copies, so that a copy that is killed loses little (C6).

A batch is one commit: without a limit the first one is the whole topic, and begins again from its start after every
failure. A minute's work at the 70 to 190 MB/s that an ingest makes is about the limit in bytes. Kafka's readers are
limited by offsets alone, so the bytes become offsets by what the topic takes on the brokers' disks.
"""

from __future__ import annotations

BATCH_OFFSETS = 10_000_000
BATCH_BYTES = 4 * 2**30
"""Compressed, as on the brokers' disks."""


def offsets_at_once(offsets: int, size_bytes: int | None) -> int:
    """The offsets of a batch of a topic that has so many, and takes so many bytes, None if that is not told."""
    if not size_bytes:
        return BATCH_OFFSETS
    return max(1, min(BATCH_OFFSETS, BATCH_BYTES * offsets // size_bytes))
