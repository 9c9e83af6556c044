"""`lithify verify`: proves that no record was lost, or names those that were (C1 to C5, C8)."""

from __future__ import annotations

import click

from lithify.cli import parameters
from lithify.cli.invocation import Invocation, verb
from lithify.cli.terminal.output import plural, say, show, styled
from lithify.cli.terminal.progress import phase_progress
from lithify.model.names import partition_of
from lithify.model.settings.units import format_bytes, format_duration
from lithify.reports.verification import Finding, VerifyReport

FOUND_SOMETHING = 3


@verb("verify")
@parameters.topic
@click.option(
    "--against", type=int, metavar="VERSION", help="Compare with this version. Default: the one before the last round."
)
@parameters.read_rate("tasks")
@parameters.spark_conf
def verify(
    invocation: Invocation, topic_name: str, against: int | None, read_rate: int | None, spark_conf: dict[str, str]
) -> int:
    """Prove that compaction lost nothing.

    Reads all files and checks them, their offsets and counts, and that each log has exactly the records that the
    rules leave of an earlier version. Prints every finding; exit code 3 if there is one.

    \b
    Examples:
      lithify verify orders
      lithify verify orders --against 12 --json
      lithify verify orders --read-rate 50MB/s
    """
    topic = invocation.open_whole_topic(topic_name)
    with phase_progress() as progress:
        report = topic.verify(against=against, read_rate=read_rate, spark_conf=spark_conf, progress=progress)
    if not invocation.printed(report):
        for finding in report.findings:
            show([finding_line(report.topic, finding)])
        say(summary(report))
    return 0 if report.clean else FOUND_SOMETHING


def finding_line(topic: str, finding: Finding) -> str:
    """`orders-3 offset 17: record_lost: …`."""
    offset = "" if finding.offset is None else f" offset {finding.offset}"
    return (
        f"{partition_of(topic, finding.partition)}{offset}: {styled(finding.kind.value, fg='red')}: {finding.message}"
    )


def summary(report: VerifyReport) -> str:
    """One line: what was read, what it was compared with, what was found."""
    read = f"{plural(report.records, 'record')} in {plural(report.segments, 'segment')}"
    against = "and no earlier one to compare with" if report.against is None else f"against version {report.against}"
    found = "nothing lost" if report.clean else plural(len(report.findings), "finding")
    if report.more_findings:
        found = f"the first {found} of more"
    result = styled("clean" if report.clean else "NOT CLEAN", fg="green" if report.clean else "red", bold=True)
    spent = f"{format_bytes(report.bytes_read)} read in {format_duration(report.duration_ms)}"
    return f"{report.topic}: {result}, {found}: {read}, version {report.version} {against}, {spent}"
