"""A catalog at a glance: what `lithify status` prints without a topic. The field names are the JSON keys."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from lithify.model.cleaner_note import CleanerNote
from lithify.model.failure import number_of_times
from lithify.model.settings.units import format_bytes, format_duration, format_time, plural
from lithify.reports.page import Page, Table, aside, notice
from lithify.reports.page.wording import coded, count, or_dash, when
from lithify.reports.report import Report
from lithify.reports.rounds.rate_limits import RatesReport, cleaners_of, rates_text


class Standing(StrEnum):
    """The state of a log or a topic, the worst first."""

    UNREADABLE = "unreadable"
    QUARANTINED = "quarantined"
    """Its rounds failed too often; cleaners skip it until it is released (C31)."""
    OVERDUE = "overdue"
    """Past `max.compaction.lag.ms` (C29)."""
    FAILING = "failing"
    """Its last round failed, and it will be retried."""
    DUE = "due"
    WAITING = "waiting"
    """It is dirty and not due, or something in it will expire."""
    CLEAN = "clean"
    """There is nothing to do until the next commit."""


@dataclass(frozen=True, slots=True)
class LogStanding:
    """One log. If it is not due, its ratio also counts bytes above the horizon as dirty."""

    partition: int
    standing: Standing
    why: str
    overdue_ms: int
    due_at_ms: int | None
    dirty_ratio: float
    failures: int
    error: str | None
    error_code: str | None = None


@dataclass(frozen=True, slots=True)
class TopicOverview(Report):
    """One topic, by its worst log: from `state` to `error` the figures are of that log.

    Null in a topic that cannot be read. The ratio is null as well if nothing is compacted. Bytes compressed, times
    epoch ms.
    """

    topic: str
    state: Standing
    partition: int | None = None
    why: str | None = None
    """Why the log is due, or why not."""
    overdue_ms: int = 0
    due_at_ms: int | None = None
    """When the clock alone makes it due, if it will: not before this time."""
    dirty_ratio: float | None = None
    failures: int = 0
    """Failures of its rounds in a row (C31)."""
    error: str | None = None
    """Why the last of them failed, or why the topic cannot be read."""
    error_code: str | None = None
    logs: int | None = None
    logs_in_state: int | None = None
    records: int | None = None
    bytes: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Its fields are flat, and there are thousands of it: `asdict` would copy each value."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class CatalogOverview(Report):
    """All topics, the worst first."""

    topics: tuple[TopicOverview, ...]
    now_ms: int
    now_given: bool = False
    cleaners: tuple[CleanerNote, ...] | None = None
    """The cleaners of the catalog, and when each last looked; None if that cannot be read."""
    cleaners_error: str | None = None
    """Why the cleaners could not be read."""
    cleaner_rates: RatesReport | None = None
    """The rates of the cleaners; None is unlimited, or their own."""

    def counts(self) -> dict[Standing, int]:
        """The number of topics in each state, the worst first; states without topics are left out."""
        states = [topic.state for topic in self.topics]
        return {standing: states.count(standing) for standing in Standing if standing in states}

    def to_json(self) -> dict[str, Any]:
        return {**self.with_rows(), "topics": [topic.to_json() for topic in self.topics]}

    def with_rows(self) -> dict[str, Any]:
        """The same, but topics are not JSON yet: of thousands `msgspec` makes it faster than from their `to_json`."""
        return {
            "now_ms": self.now_ms,
            "now_given": self.now_given,
            "counts": {standing.value: number for standing, number in self.counts().items()},
            "topics": self.topics,
            "cleaners": None if self.cleaners is None else [asdict(note) for note in self.cleaners],
            "cleaners_error": self.cleaners_error,
            "cleaner_rates": None if self.cleaner_rates is None else self.cleaner_rates.to_json(),
        }

    def page(self) -> Page:
        summary = notice(_summary(self)) if self.topics else aside("no topics yet")
        table = Table(_HEADER, self.topics, lambda topic: _row(topic, self.now_ms), left=("TOPIC", "STATE", "WHY"))
        notes = [*map(notice, _cleaner_notes(self))]
        return Page("topics, the worst first", "", table if self.topics else None, [summary, *notes])


ERROR_CHARACTERS = 240
"""Characters of an error shown; `status TOPIC` has all of it."""


_AT_REST = (Standing.WAITING, Standing.CLEAN)
_HEADER = ("TOPIC", "STATE", "PARTITIONS", "RECORDS", "SIZE", "DIRTY", "WHY")


def standings(counts: Mapping[Standing, int]) -> str:
    """How many topics are in each state: `1 due, 3 clean`."""
    return ", ".join(f"{count(number)} {standing}" for standing, number in counts.items())


def _summary(overview: CatalogOverview) -> str:
    """The number of topics in each state."""
    as_of = f", as of {format_time(overview.now_ms)}" if overview.now_given else ""
    return f"{plural(len(overview.topics), 'topic')}: {standings(overview.counts())}{as_of}"


def _cleaner_notes(overview: CatalogOverview) -> Iterator[str]:
    """When each cleaner last looked."""
    if overview.cleaners_error is not None:
        yield f"cleaners cannot be read: {overview.cleaners_error}"
    for note in overview.cleaners or ():
        looked = (
            f"has not completed a check since it started {when(note.started_ms, overview.now_ms)}"
            if note.looked_ms is None
            else f"completed its last check {when(note.looked_ms, overview.now_ms)}"
        )
        yield f"cleaner {note.cleaner} {looked} (checks every {format_duration(note.interval_ms)})"
    rates = overview.cleaner_rates
    if rates is not None:
        yield f"{cleaners_of(rates)} {rates_text(rates)} (`lithify throttle` changes it)"


def _row(topic: TopicOverview, now_ms: int) -> tuple[str, ...]:
    return (
        topic.topic,
        topic.state if topic.state in _AT_REST else topic.state.upper(),
        or_dash(topic.logs, count),
        or_dash(topic.records, count),
        or_dash(topic.bytes, format_bytes),
        "-" if topic.dirty_ratio is None else f"{topic.dirty_ratio:.2f}",
        _why(topic, now_ms),
    )


def _why(topic: TopicOverview, now_ms: int) -> str:
    """The reason for the state of its worst log, and the number of other logs in that state."""
    why = "; ".join(_reasons(topic, now_ms))
    if topic.logs is None or topic.logs == 1 or topic.state in _AT_REST:
        return why
    more = f" and {topic.logs_in_state - 1} more" if topic.logs_in_state and topic.logs_in_state > 1 else ""
    return f"partition {topic.partition}{more}: {why}"


def _reasons(topic: TopicOverview, now_ms: int) -> Iterator[str]:
    if topic.error is not None:
        error = textwrap.shorten(coded(topic.error, topic.error_code), ERROR_CHARACTERS, placeholder=" ...")
        yield f"failed {number_of_times(topic.failures)}: {error}" if topic.failures else error
    if topic.overdue_ms:
        yield f"{format_duration(topic.overdue_ms)} overdue"
    elif topic.state is Standing.WAITING and topic.due_at_ms is not None:
        yield f"due in {format_duration(topic.due_at_ms - now_ms)}"
    elif topic.why is not None and topic.error is None:
        yield topic.why
