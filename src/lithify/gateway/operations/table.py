"""All operations."""

from __future__ import annotations

from lithify.gateway.operations import cuts, groups, looks, rounds, standing, topics
from lithify.gateway.operations.operation import Operation

OPERATIONS: tuple[Operation, ...] = (
    *topics.OPERATIONS,
    *rounds.OPERATIONS,
    *cuts.OPERATIONS,
    *groups.OPERATIONS,
    *looks.OPERATIONS,
    *standing.OPERATIONS,
)

BY_NAME = {one.name: one for one in OPERATIONS}
