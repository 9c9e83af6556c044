"""All operations."""

from __future__ import annotations

from lithify.gateway.operations import cuts, groups, rounds, topics
from lithify.gateway.operations.operation import Operation, Target

OPERATIONS: tuple[Operation, ...] = (
    *topics.OPERATIONS,
    *rounds.OPERATIONS,
    *cuts.OPERATIONS,
    *groups.OPERATIONS,
)

BY_CALL: dict[tuple[Target, str], Operation] = {(one.of, one.call): one for one in OPERATIONS}
"""By the method of the Python API."""
