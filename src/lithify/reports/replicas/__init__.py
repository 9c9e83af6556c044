"""What is reported of replicas. The field names are the JSON keys; times are epoch ms, sizes bytes."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from lithify.errors import LithifyError
from lithify.model.finding import Finding, FindingKind
from lithify.model.settings.units import format_bytes, format_duration, plural
from lithify.reports.page import Page, notice
from lithify.reports.report import Report
from lithify.reports.verification import finding_lines, verdict


@dataclass(frozen=True, slots=True)
class MirrorReport(Report):
    """What one copy from a source to its replica did."""

    topic: str
    source_version: int
    """The version of the source that was copied."""
    replica_version: int
    """The version of the source that the replica has now: that one, or a later one that another copy has committed."""
    version: int
    """The replica's own version."""
    changed: bool
    stopped: bool
    """It was asked to stop before it had all files, so nothing was committed; the next copy uses what it has copied."""
    files_copied: int
    bytes_copied: int
    files_reused: int
    """Files that earlier, interrupted copies had left in the replica's folder."""
    bytes_reused: int
    files_removed: int
    """Files that the replica's newest version stopped naming."""
    duration_ms: int


@dataclass(frozen=True, slots=True)
class ReplicaLag(Report):
    """How far a replica is behind its source."""

    topic: str
    source_version: int
    replica_version: int | None
    """The version of the source that the replica has; None if there is no replica yet, 0 before its first copy."""
    lag_records: int
    """Records of the files that the replica lacks."""
    lag_bytes: int
    """The size of these files."""
    source_clock_ms: int | None
    """The time of the source's newest commit, as far as it is trusted (C46)."""

    @property
    def caught_up(self) -> bool:
        return self.source_version == self.replica_version


@dataclass(frozen=True, slots=True)
class ReplicaVerification(Report):
    """What is wrong with a replica, by itself or against its source: file by file and count by count."""

    topic: str
    version: int
    """The replica's own version."""
    replica_version: int
    """The version of the source that it says it has."""
    source_version: int | None
    """The version of the source that it was held against: the same one, if the source still has it. Null: none."""
    findings: tuple[Finding, ...]
    more_findings: bool
    files: int
    records: int
    bytes_read: int
    """On both sides."""
    duration_ms: int

    @classmethod
    def failed(cls, topic: str, error: LithifyError) -> ReplicaVerification:
        """The verification of a topic which could not be verified, as one of several."""
        finding = Finding(0, FindingKind.NOT_VERIFIED, str(error))
        return cls(topic, 0, 0, None, (finding,), False, 0, 0, 0, 0)

    @property
    def clean(self) -> bool:
        return not self.findings

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "clean": self.clean}

    def page(self) -> Page:
        source = "by itself" if self.source_version is None else f"against version {self.source_version} of its source"
        findings = "" if self.clean else f", {'more than ' if self.more_findings else ''}{len(self.findings)} findings"
        read = f"{plural(self.records, 'record')} in {plural(self.files, 'file')}"
        spent = f"{format_bytes(self.bytes_read)} read in {format_duration(self.duration_ms)}"
        text = f"{findings}: {read}, version {self.replica_version} {source}, {spent}"
        lines = [notice(f"{self.topic}: ", verdict(clean=self.clean), text), *finding_lines(self.topic, self.findings)]
        return Page(self.topic, "verification of a replica", lines=lines)


@dataclass(frozen=True, slots=True)
class PromoteReport(Report):
    """A replica that is a topic of its own from `version` on."""

    topic: str
    version: int
    source: str
    """The warehouse of what it was a replica of."""
    source_version: int
    """The version of the source that it has."""
    now_ms: int
