"""What `repair` found of a topic and did, or would do. The field names are the JSON keys."""

from __future__ import annotations

from dataclasses import dataclass

from lithify.reports.report import Report


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
