"""What an ingest has copied, as a table."""

from __future__ import annotations

from collections.abc import Sequence

from lithify.model.settings.units import format_duration
from lithify.reports.ingest import IngestReport
from lithify.reports.tables.table import Table
from lithify.reports.tables.wording import count


def ingest_table(reports: Sequence[IngestReport]) -> Table[IngestReport]:
    """A topic in each row."""
    header = ("SOURCE", "TOPIC", "BATCHES", "RECORDS", "RECORDS/S", "TIME")
    return Table(header, reports, _row, left=("SOURCE", "TOPIC"))


def _row(report: IngestReport) -> tuple[str, ...]:
    figures = map(count, (report.batches, report.records, round(report.records_per_s)))
    return report.source, report.topic, *figures, format_duration(report.duration_ms)
