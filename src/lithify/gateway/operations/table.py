"""All operations."""

from __future__ import annotations

from lithify.gateway.operations import cuts, groups, looks, rounds, topics
from lithify.gateway.operations.operation import Operation

OPERATIONS: tuple[Operation, ...] = (
    *topics.OPERATIONS,
    *rounds.OPERATIONS,
    *cuts.OPERATIONS,
    *groups.OPERATIONS,
    *looks.OPERATIONS,
)
