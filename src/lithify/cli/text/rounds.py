"""Rounds and plans as text: a line per log."""

from __future__ import annotations

from lithify.cli.terminal.output import drawn
from lithify.reports.round import PlanReport, RoundReport
from lithify.reports.tables.rounds import plan_table, round_table, unread_groups


def round_lines(report: RoundReport) -> list[str]:
    """A table of the logs."""
    return [*drawn(round_table(report)), *_unread(report)]


def plan_lines(plan: PlanReport) -> list[str]:
    """A table of the logs: what a round would change, and its cost."""
    return [*drawn(plan_table(plan)), *_unread(plan)]


def _unread(report: RoundReport | PlanReport) -> list[str]:
    return [] if report.groups_error is None else [unread_groups(report.groups_error)]
