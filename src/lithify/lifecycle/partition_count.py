"""How many partitions a topic may have, when it is made and when it grows."""

from __future__ import annotations

from lithify.errors import RefusedError

MAX_PARTITIONS = 10_000
"""Partitions of one topic: its metadata keeps some 100 bytes of state for each."""


def check_partitions(count: int) -> None:
    """Raises `RefusedError`."""
    if not 1 <= count <= MAX_PARTITIONS:
        raise RefusedError(f"partitions={count}: a topic has 1 to {MAX_PARTITIONS}")
