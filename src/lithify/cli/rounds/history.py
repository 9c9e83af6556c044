"""`lithify history`: the reports of past rounds, newest first (C42)."""

from __future__ import annotations

from lithify.cli import parameters
from lithify.cli.invocation import Invocation, verb
from lithify.cli.terminal.output import columns, count, say, show
from lithify.cli.text.rounds import losers_text
from lithify.model.settings.units import format_bytes, format_duration, format_time
from lithify.reports.round import Losers, RoundReport


@verb("history")
@parameters.topic
def history(invocation: Invocation, topic_name: str) -> None:
    """Show the latest rounds of a topic, newest first.

    At most 100. With --json each is the output of `lithify compact --json`, as it was just before
    the commit.

    \b
    Examples:
      lithify history orders
      lithify history orders --json | head -1 | jq .logs
    """
    topic = invocation.open_whole_topic(topic_name)
    reports = topic.history()
    if invocation.printed(*reports):
        return
    if not reports:
        say(f"{topic.name}: no round has changed anything yet (`lithify compact {topic.name}` runs one)")
        return
    header = ("ROUND AT", "VERSION", "LOGS", "RECORDS", "BYTES", "TIME", "REMOVED")
    show(columns(header, map(_row, reports), left=("ROUND AT", "REMOVED")))
    if any(report.now_given for report in reports):
        say("* judged as of that time, which was given with --now")


def _row(report: RoundReport) -> tuple[str, ...]:
    logs = report.logs

    def total(name: str) -> int:
        return sum(getattr(log, name) for log in logs)

    causes = {name: sum(getattr(log.losers, name) for log in logs) for name in Losers.__dataclass_fields__}
    return (
        format_time(report.now_ms)[:19] + ("*" if report.now_given else ""),
        count(report.version),
        count(len(logs)),
        f"{count(total('records_in'))} → {count(total('records_out'))}",
        f"{format_bytes(total('bytes_in'))} → {format_bytes(total('bytes_out'))}",
        format_duration(report.duration_ms),
        losers_text(Losers(**causes)),
    )
