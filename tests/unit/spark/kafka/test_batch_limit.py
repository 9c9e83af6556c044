"""How much a batch of an ingest copies at most."""

from __future__ import annotations

from lithify.spark.kafka.batch_limit import BATCH_BYTES, BATCH_OFFSETS, offsets_at_once


def test_a_batch_is_limited_by_offsets_and_by_bytes() -> None:
    assert offsets_at_once(10**9, None) == BATCH_OFFSETS
    assert offsets_at_once(10**9, 10**9) == BATCH_OFFSETS  # small records
    assert offsets_at_once(10**6, 10**12) == BATCH_BYTES // 10**6  # of a megabyte each
    assert offsets_at_once(2, 10**12) == 1
    assert offsets_at_once(0, 0) == BATCH_OFFSETS
