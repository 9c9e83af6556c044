"""What `verify` found: every finding named, with the log, offset and file it is about (C8)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from lithify.model.finding import Finding
from lithify.model.names import partition_of
from lithify.model.settings.units import format_bytes, format_duration, plural
from lithify.reports.page import Accent, Line, Page, notice, result
from lithify.reports.report import Report

FINDINGS_KEPT = 1_000
"""Findings that one verification names; it says so if there were more."""


@dataclass(frozen=True, slots=True)
class VerifyReport(Report):
    """The result of a verification. `against` is None if no earlier version is retained."""

    topic: str
    version: int
    against: int | None
    findings: tuple[Finding, ...]
    more_findings: bool
    records: int
    segments: int
    bytes_read: int
    duration_ms: int

    @property
    def clean(self) -> bool:
        return not self.findings

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "clean": self.clean}

    def page(self) -> Page:
        read = f"{plural(self.records, 'record')} in {plural(self.segments, 'segment')}"
        earlier = "and no earlier one to compare with" if self.against is None else f"against version {self.against}"
        findings = "nothing lost" if self.clean else plural(len(self.findings), "finding")
        if self.more_findings:
            findings = f"the first {findings} of more"
        spent = f"{format_bytes(self.bytes_read)} read in {format_duration(self.duration_ms)}"
        text = f", {findings}: {read}, version {self.version} {earlier}, {spent}"
        lines = [notice(f"{self.topic}: ", verdict(clean=self.clean), text), *finding_lines(self.topic, self.findings)]
        return Page(self.topic, "verification", lines=lines)


def verdict(*, clean: bool) -> Accent:
    """Whether it is as it should be."""
    return Accent("clean", "green", bold=True) if clean else Accent("NOT CLEAN", "red", bold=True)


def finding_lines(topic: str, findings: Iterable[Finding]) -> Iterator[Line]:
    """`orders-3 offset 17: record_lost: …`."""
    for finding in findings:
        offset = "" if finding.offset is None else f" offset {finding.offset}"
        where = f"{partition_of(topic, finding.partition)}{offset}: "
        yield result(where, Accent(finding.kind.value, "red"), f": {finding.message}")
