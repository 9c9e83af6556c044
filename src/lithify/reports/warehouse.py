"""What `warehouse info`, `warehouse upgrade` (C66) and `repair` print. The field names are the JSON keys."""

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
    lacks: tuple[str, ...]
    """The features that an upgrade adds."""
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
    """False if it was of the newest format already."""
    format_before: int
    format: int
    features: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RepairedLog:
    """A log as it is after the repair."""

    partition: int
    log_start_offset: int
    log_end_offset: int
    records: int


@dataclass(frozen=True, slots=True)
class RepairReport(Report):
    """A topic's repair. `way` is one of nothing, register, rebuild, finish-deletion."""

    topic: str
    trouble: str
    """What is wrong with it in the catalog; empty if nothing is."""
    way: str
    repaired: bool
    """Whether it was done, or only planned."""
    complete: bool
    """No acknowledged record is missing, as far as the existing files can tell."""
    location: str
    metadata: str | None
    """The metadata file that it uses."""
    version: int | None
    """The version of that file."""
    logs: tuple[RepairedLog, ...]
    notes: tuple[str, ...]
    """What cannot be known, is left out, or is lost."""
