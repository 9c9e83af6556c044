"""What `pulsar leftovers` found. The field names are the JSON keys."""

from __future__ import annotations

from dataclasses import dataclass

from lithify.model.settings.units import plural
from lithify.reports.report import Report

SHOWN_AT_MOST = 100
"""Ledgers in a text."""


@dataclass(frozen=True, slots=True)
class LeftLedger:
    """A ledger with a view, or a part of one, that a round left and nothing serves; `gone`: its topic is not there."""

    ledger: int
    topic: str
    run_id: str
    gone: bool = True


@dataclass(frozen=True, slots=True)
class LeftoversReport(Report):
    """All of them by id, and whether they were deleted."""

    ledgers: tuple[LeftLedger, ...]
    deleted: bool
    notes: tuple[str, ...] = ()


def leftovers_text(report: LeftoversReport) -> list[str]:
    """A line for each of the first ledgers, and one that counts them."""
    shown, count = report.ledgers[:SHOWN_AT_MOST], len(report.ledgers)
    lines = [f"ledger {one.ledger} of {one.topic}{', which is gone' if one.gone else ''}" for one in shown]
    if count > len(shown):
        lines.append(f"and {count - len(shown):,} more")
    if not count:
        return ["no round has left a ledger"]
    ledgers = f"{plural(count, 'ledger')} that rounds left"
    can = f"can be deleted; --yes deletes {'it' if count == 1 else 'them'}"
    return [*lines, f"{ledgers}: {'deleted' if report.deleted else can}"]
