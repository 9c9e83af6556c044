"""A kept version, for people and scripts: what `lithify versions` prints. Bytes compressed, times epoch ms."""

from __future__ import annotations

from dataclasses import dataclass

from lithify.model.log import KeptVersion, TopicState, Verb
from lithify.reports.report import Report


@dataclass(frozen=True, slots=True)
class VersionReport(Report):
    """A kept version: what it holds, and the commit that closed it."""

    topic: str
    version: int
    closed_ms: int
    closed_by: str
    """The run of that commit: of a round, the `run_id` of its report."""
    verb: Verb
    records: int
    bytes: int
    view_records: int | None
    view_bytes: int | None
    """Of the compacted views; null where there is none."""
    files_stay_until_ms: int
    """Its files stay at least until then, also if the version expires before (C6)."""


def version_report(kept: KeptVersion, state: TopicState, versions_retention_ms: int) -> VersionReport:
    """The report of a kept version, whose state is `state`."""
    views = [log.view.volume for log in state.logs if log.view is not None]
    return VersionReport(
        topic=str(state.name),
        version=kept.version,
        closed_ms=kept.closed_ms,
        closed_by=kept.closed_by,
        verb=kept.verb,
        records=sum(log.volume.records for log in state.logs),
        bytes=sum(log.volume.size_bytes for log in state.logs),
        view_records=sum(view.records for view in views) if views else None,
        view_bytes=sum(view.size_bytes for view in views) if views else None,
        files_stay_until_ms=kept.closed_ms + versions_retention_ms,
    )
