"""`lithify replica verify`: holds replicas against their sources, or against what they say themselves."""

from __future__ import annotations

import click

from lithify.cli import parameters
from lithify.cli.invocation import Invocation, verb
from lithify.cli.rounds.verify import FOUND_SOMETHING, finding_line
from lithify.cli.terminal.output import plural, say, show, styled
from lithify.cli.terminal.progress import byte_progress
from lithify.model.settings.units import format_bytes, format_duration
from lithify.reports.replicas import ReplicaVerification


@verb("verify")
@click.argument("what", metavar="NAME|TOPIC")
@parameters.coordination_url
def verify(invocation: Invocation, what: str, coordination_url: str | None) -> int:
    """Compare a replica with its source, or check it alone if the source is gone.

    With the NAME of a replica, in the warehouse of its source: every topic of it against its source, the same
    files with the same bytes. With a TOPIC that is a replica, in the warehouse that it is in: every file is
    read whole, its pages and counts are checked against what the replica says that it has. Prints every
    finding; exit code 3 if there is one.

    \b
    Examples:
      lithify replica verify orders-to-backup
      lithify replica verify orders --warehouse /srv/backup
    """
    replicas = invocation.open_lake().replicas(coordination_url=coordination_url)
    with byte_progress("reading") as progress:
        reports = replicas.verify(what, tell=progress)
    if not invocation.printed(*reports):
        for report in reports:
            for finding in report.findings:
                show([finding_line(report.topic, finding)])
            say(_summary(report))
    return 0 if all(report.clean for report in reports) else FOUND_SOMETHING


def _summary(report: ReplicaVerification) -> str:
    """One line: what was read, what it was held against, what was found."""
    result = styled("clean" if report.clean else "NOT CLEAN", fg="green" if report.clean else "red", bold=True)
    against = "by itself" if report.source_version is None else f"against version {report.source_version} of its source"
    found = "" if report.clean else f", {'more than ' if report.more_findings else ''}{len(report.findings)} findings"
    read = f"{plural(report.records, 'record')} in {plural(report.files, 'file')}"
    spent = f"{format_bytes(report.bytes_read)} read in {format_duration(report.duration_ms)}"
    return f"{report.topic}: {result}{found}: {read}, version {report.replica_version} {against}, {spent}"
