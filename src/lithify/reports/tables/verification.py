"""What `verify` found, in words: a line for each finding, and a summary of one line."""

from __future__ import annotations

from lithify.model.names import partition_of
from lithify.model.settings.units import format_bytes, format_duration, plural
from lithify.reports.replicas import ReplicaVerification
from lithify.reports.verification import Finding, VerifyReport


def finding_text(topic: str, finding: Finding, kind: str) -> str:
    """`orders-3 offset 17: record_lost: …`; `kind` as it is to be drawn."""
    offset = "" if finding.offset is None else f" offset {finding.offset}"
    return f"{partition_of(topic, finding.partition)}{offset}: {kind}: {finding.message}"


def verdict(report: VerifyReport | ReplicaVerification) -> str:
    """Whether it is as it should be."""
    return "clean" if report.clean else "NOT CLEAN"


def verify_summary(report: VerifyReport, result: str) -> str:
    """One line: what was read, what it was compared with, what was found; `result` is the verdict as it is drawn."""
    read = f"{plural(report.records, 'record')} in {plural(report.segments, 'segment')}"
    against = "and no earlier one to compare with" if report.against is None else f"against version {report.against}"
    found = "nothing lost" if report.clean else plural(len(report.findings), "finding")
    if report.more_findings:
        found = f"the first {found} of more"
    spent = f"{format_bytes(report.bytes_read)} read in {format_duration(report.duration_ms)}"
    return f"{report.topic}: {result}, {found}: {read}, version {report.version} {against}, {spent}"


def replica_summary(report: ReplicaVerification, result: str) -> str:
    """One line: what was read, what it was held against, what was found; `result` is the verdict as it is drawn."""
    against = "by itself" if report.source_version is None else f"against version {report.source_version} of its source"
    found = "" if report.clean else f", {'more than ' if report.more_findings else ''}{len(report.findings)} findings"
    read = f"{plural(report.records, 'record')} in {plural(report.files, 'file')}"
    spent = f"{format_bytes(report.bytes_read)} read in {format_duration(report.duration_ms)}"
    return f"{report.topic}: {result}{found}: {read}, version {report.replica_version} {against}, {spent}"
