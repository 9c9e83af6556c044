"""What `kafka clean` reports. The field names are the JSON keys; bytes are of segment files."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from lithify.model.settings.units import format_bytes, plural
from lithify.reports.page import Page, Table, notice
from lithify.reports.page.wording import change, change_of, count
from lithify.reports.report import Report


@dataclass(frozen=True, slots=True)
class CleanedLog:
    """One log. Records include markers of transactions; segments, records and bytes are those below `end`.

    `end` is the first offset that the round leaves alone, by `limited_by`; with an `error` it is the one before it.
    """

    topic: str
    partition: int
    first_dirty: int = 0
    end: int = 0
    limited_by: str = ""
    segments_in: int = 0
    segments_out: int = 0
    records_in: int = 0
    records_out: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    changed: bool = False
    """Whether files were replaced; with an `error`, some may have been."""
    error: str | None = None
    error_code: str | None = None


@dataclass(frozen=True, slots=True)
class CleanReport(Report):
    """A round over the logs of a directory; of a dry run, what it would do."""

    directory: str
    logs: tuple[CleanedLog, ...]
    dry_run: bool

    @property
    def changed(self) -> bool:
        return any(log.changed for log in self.logs)

    @property
    def failed(self) -> tuple[CleanedLog, ...]:
        return tuple(log for log in self.logs if log.error is not None)

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "changed": self.changed}

    def page(self) -> Page:
        header = ("TOPIC", "PARTITION", "DIRTY", "SEGMENTS", "RECORDS", "BYTES", "RESULT")
        table = Table(header, self.logs, self._row, left=("TOPIC", "RESULT"))
        return Page(self.directory, "plan of a round" if self.dry_run else "round", table, [notice(self._summary())])

    def _row(self, log: CleanedLog) -> tuple[str, ...]:
        return (
            log.topic,
            str(log.partition),
            f"[{log.first_dirty:,}, {log.end:,})",
            change(log.segments_in, log.segments_out, count),
            change(log.records_in, log.records_out, count),
            change(log.bytes_in, log.bytes_out, format_bytes),
            self._result(log),
        )

    def _result(self, log: CleanedLog) -> str:
        if log.error is not None:
            return "FAILED, what was replaced is complete" if log.changed else "FAILED, as it was"
        if log.end <= log.first_dirty:
            return f"nothing is dirty below the {log.limited_by}"
        return "would be cleaned" if self.dry_run else "cleaned"

    def _summary(self) -> str:
        done = [log for log in self.logs if log.error is None]
        counted = change_of(sum(log.records_in for log in done), sum(log.records_out for log in done), "record")
        size = change(sum(log.bytes_in for log in done), sum(log.bytes_out for log in done), format_bytes)
        failed = f", {plural(len(self.failed), 'log')} FAILED" if self.failed else ""
        would = "; nothing was changed yet" if self.dry_run else ""
        return f"{self.directory}: {counted}, {size}{failed}{would}"
