"""Limits of a run, given as numbers or as text with units."""

from __future__ import annotations

from lithify.errors import RefusedError
from lithify.model.settings.rates import Rates
from lithify.model.settings.units import parse_rate_bytes, parse_size_bytes, plural
from lithify.ports.engine import RunLimits

DEFAULT_TASK_MEMORY = 2**30
LEAST_TASK_MEMORY = 16 * 2**20
"""With less, a task could not hold one row group and its winners."""

Size = int | str
"""Bytes, or text with a unit."""


def run_limits(
    task_memory: Size,
    read_rate: Size | None = None,
    write_rate: Size | None = None,
    partial_progress: Size | None = None,
) -> RunLimits:
    """Memory of one task in bytes, rates in bytes per second over the whole run, bytes that one commit rewrites.

    Raises `RefusedError`.
    """
    given = rates(read_rate, write_rate)
    return RunLimits(
        _bytes("task_memory", task_memory, LEAST_TASK_MEMORY, "a task needs"),
        given.read_rate_bytes,
        given.write_rate_bytes,
        rewrite_bytes=None
        if partial_progress is None
        else _bytes("partial_progress", partial_progress, 1, "a commit rewrites"),
    )


def rates(read_rate: Size | None, write_rate: Size | None) -> Rates:
    """In bytes per second; None is unlimited. Raises `RefusedError`."""
    return Rates(rate_bytes("read_rate", read_rate), rate_bytes("write_rate", write_rate))


def rate_bytes(name: str, rate: Size | None) -> int | None:
    """Bytes per second; None is unlimited. Raises `RefusedError`, which names the parameter."""
    if rate is None:
        return None
    try:
        return parse_rate_bytes(str(rate))
    except ValueError as error:
        raise RefusedError(f"{name}: {error}") from None


def _bytes(name: str, size: Size, least: int, needs: str) -> int:
    try:
        count = parse_size_bytes(str(size))
    except ValueError as error:
        raise RefusedError(f"{name}: {error}") from None
    if count < least:
        raise RefusedError(f"{name}={size}: {needs} at least {plural(least, 'byte')}")
    return count
