"""What `warehouse info` and `warehouse upgrade` print: what a warehouse can hold, and what is in it (C66)."""

from __future__ import annotations

from dataclasses import dataclass

from lithify.reports.report import Report


@dataclass(frozen=True, slots=True)
class WarehouseInfo(Report):
    """The format of a warehouse, and how many of its topics are of which."""

    warehouse: str
    format: int
    features: tuple[str, ...]
    newest_format: int
    """The highest that this version knows."""
    topics: int
    topics_by_format: dict[str, int]
    """By format version, of those that can be read."""
    unreadable: dict[str, str]
    """The others by name, with the error."""


@dataclass(frozen=True, slots=True)
class UpgradeReport(Report):
    """What `warehouse upgrade` changed."""

    warehouse: str
    changed: bool
    """False where it was of the newest format already."""
    format_before: int
    format: int
    features: tuple[str, ...]
