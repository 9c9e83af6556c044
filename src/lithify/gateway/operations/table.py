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

BY_CALL = {(one.of, one.call): one for one in OPERATIONS}
"""By the method of the Python API."""
