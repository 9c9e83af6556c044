"""What `pulsar leftovers` found. The field names are the JSON keys."""

from __future__ import annotations

from dataclasses import dataclass

from lithify.model.settings.units import plural
from lithify.reports.report import Report

SAID_AT_MOST = 100
"""Ledgers in a text."""


@dataclass(frozen=True, slots=True)
class LeftLedger:
    """A ledger with a view, or a part of one, that a round left for a topic or partition that is gone."""

    ledger: int
    topic: str
    run_id: str


@dataclass(frozen=True, slots=True)
class LeftoversReport(Report):
    """All of them by id, and whether they were deleted."""

    ledgers: tuple[LeftLedger, ...]
    deleted: bool


def leftovers_text(report: LeftoversReport) -> list[str]:
    """A line for each of the first ledgers, and one that counts them."""
    said, count = report.ledgers[:SAID_AT_MOST], len(report.ledgers)
    lines = [f"ledger {one.ledger} of {one.topic}" for one in said]
    if count > len(said):
        lines.append(f"and {count - len(said):,} more")
    if not count:
        return ["no ledger is left of a topic that is gone"]
    ledgers = f"{plural(count, 'ledger')} of topics that are gone"
    can = f"can be deleted; --yes deletes {'it' if count == 1 else 'them'}"
    return [*lines, f"{ledgers}: {'deleted' if report.deleted else can}"]
