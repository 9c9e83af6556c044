"""The space that a topic takes: what versions name (C6), and what `sweep` can delete as none does.

The field names are the JSON keys. Bytes are compressed sizes of data files, each file counted once.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from lithify.model.settings.units import format_bytes, format_second, plural
from lithify.reports.page import Page, Table, notice
from lithify.reports.report import Report


@dataclass(frozen=True, slots=True)
class Space(Report):
    """What metadata tells of it. Files that no version names are not in it: only `sweep` lists the folder."""

    stored_bytes: int | None
    """All of the following; null if the size of earlier versions is."""
    live_bytes: int
    """Of the files that the logs name now; side by side, of the backlogs."""
    view_bytes: int
    """Bytes of the files that only the compacted views name: a file of both is live."""
    earlier_versions: int
    """How many are retained."""
    earlier_versions_bytes: int | None
    """Of the files that only these name; null while one of them is retained that an earlier Lithify closed."""
    earlier_versions_until_ms: int | None
    """The last of those files remain at least until then; null if there are none."""


@dataclass(frozen=True, slots=True)
class SweptFile:
    """A file that can be deleted, or was. `named_until_ms` is None for one that no version ever named."""

    path: str
    size_bytes: int
    modified_ms: int
    named_until_ms: int | None


@dataclass(frozen=True, slots=True)
class SweepReport(Report):
    """The files of a topic that can be deleted, or with `deleted` those that were."""

    topic: str
    deleted: bool
    files: tuple[SweptFile, ...]
    now_ms: int
    stored_bytes: int
    """Bytes of the data files that versions name: the `stored_bytes` of the topic's `Space`."""
    metadata_bytes: int
    """Of the metadata, reports and other documents that are named."""
    waiting_files: int
    """Files that no version names either, and that may not be deleted yet."""
    waiting_bytes: int
    expired_versions: tuple[int, ...] = ()
    """Versions past `versions.retention.ms` that expired, or that do with `--yes`, newest first."""

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "bytes": self.size_bytes}

    def page(self, location: str = "") -> Page:
        """Files as seen from `location`, the folder of the topic."""
        table = _sweep_table(self, location) if self.files else None
        return Page(self.topic, "sweep", table, [notice(_sweep_summary(self))])


def space_line(space: Space | None) -> str:
    """`stored 1.20 GiB of data files: 310 MiB live, 850 MiB of 3 earlier versions until 2026-01-02 at least`.

    Nothing where all is live: the sizes of the logs say that already.
    """
    if space is None or space.stored_bytes == space.live_bytes:
        return ""
    parts = [f"{format_bytes(space.live_bytes)} live"]
    if space.view_bytes:
        parts.append(f"{format_bytes(space.view_bytes)} compacted view")
    if space.earlier_versions_bytes != 0:
        parts.append(_earlier(space))
    whole = "" if space.stored_bytes is None else f"{format_bytes(space.stored_bytes)} of "
    return f"stored {whole}data files: {', '.join(parts)}"


def _earlier(space: Space) -> str:
    of, known = plural(space.earlier_versions, "earlier version"), space.earlier_versions_bytes
    size = "an unknown size" if known is None else format_bytes(known)
    until_ms = space.earlier_versions_until_ms
    return f"{size} of {of}" + ("" if until_ms is None else f" until {format_second(until_ms)} at least")


def _sweep_table(report: SweepReport, location: str) -> Table[SweptFile]:
    """The files, as seen from the folder of the topic."""
    header = ("SIZE", "WHY", "SINCE", "FILE")
    return Table(header, report.files, lambda file: _file_row(file, location), left=header[1:], wrap=False)


def _file_row(file: SweptFile, location: str) -> tuple[str, ...]:
    why = "never named" if file.named_until_ms is None else "replaced"
    since = file.modified_ms if file.named_until_ms is None else file.named_until_ms
    return format_bytes(file.size_bytes), why, format_second(since), _within(file.path, location)


def _within(path: str, location: str) -> str:
    """The path as seen from the folder of the topic."""
    return path.removeprefix(location).removeprefix(location.removeprefix("file://")).lstrip("/")


def _sweep_summary(report: SweepReport) -> str:
    """One line: what can be or was deleted, and what is stored."""
    stored = (
        f"stored {format_bytes(report.stored_bytes)} of data files, {format_bytes(report.metadata_bytes)} of metadata"
    )
    return f"{report.topic}: {_expired(report)}{_going(report)}; {stored}{_waiting(report)}"


def _expired(report: SweepReport) -> str:
    count = len(report.expired_versions)
    if not count:
        return ""
    versions = f"{plural(count, 'version')} past versions.retention.ms"
    if report.deleted:
        return f"{versions} expired; "
    return f"{versions}, which --yes expires with the files that only {'it names' if count == 1 else 'they name'}; "


def _waiting(report: SweepReport) -> str:
    if not report.waiting_files:
        return ""
    files = f"{plural(report.waiting_files, 'file')} of {format_bytes(report.waiting_bytes)}"
    return f"; {files} that no version names remain until versions.retention.ms or sweep.grace.ms has passed"


def _going(report: SweepReport) -> str:
    if not report.files:
        return "no file can be deleted"
    files = f"{plural(len(report.files), 'file')} of {format_bytes(report.size_bytes)}"
    if report.deleted:
        return f"{files} deleted"
    return f"{files} can be deleted; --yes deletes {'it' if len(report.files) == 1 else 'them'}"
