"""The cleaners and gateways that share a catalog. The field names are the JSON keys; times are epoch ms."""

from __future__ import annotations

from dataclasses import dataclass

from lithify.reports.report import Report


@dataclass(frozen=True, slots=True)
class HeldLog:
    """A log on which a cleaner works now. The topic is null where it was deleted meanwhile."""

    topic: str | None
    partition: int


@dataclass(frozen=True, slots=True)
class RunningCleaner(Report):
    """A cleaner, or a gateway, which is one."""

    cleaner: str
    started_ms: int | None
    """Null before its first look."""
    looked_ms: int | None
    """When it last completed a check of all topics."""
    interval_ms: int | None
    does_upkeep: bool
    """Whether it expires versions and sweeps files: one of the cleaners of a catalog does."""
    logs: tuple[HeldLog, ...]
