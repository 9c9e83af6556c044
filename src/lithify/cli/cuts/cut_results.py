"""The result of a cut as text: a line per log, and a summary."""

from __future__ import annotations

from lithify.cli.invocation import Invocation
from lithify.cli.terminal.drawing import drawn, texts
from lithify.cli.terminal.output import say, show
from lithify.reports.cut import CutReport
from lithify.reports.page import Outlet
from lithify.reports.page.wording import as_judged


def print_cut(invocation: Invocation, report: CutReport, done: str, idle: str) -> None:
    """Prints the report of a cut. `done` is its summary, `idle` the reason if there was nothing to do."""
    if invocation.printed(report):
        return
    page, time_note = report.page(), as_judged(report.now_ms, given=report.now_given)
    for text in texts(page, Outlet.RESULT):
        say(text)
    if not report.changed:
        say(f"{report.topic}: {idle}, still version {report.version}{time_note}")
        return
    show(drawn(page.table))
    say(f"{report.topic}: {done}, version {report.version}{time_note}")
