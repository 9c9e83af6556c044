"""The overview of a catalog as a table: a row per topic, the worst first."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping

from lithify.model.failure import number_of_times
from lithify.model.settings.units import format_bytes, format_duration, format_time, plural
from lithify.reports.overview import CatalogOverview, Standing, TopicOverview
from lithify.reports.round import RatesReport
from lithify.reports.tables.table import Table
from lithify.reports.tables.wording import coded, count, or_dash, when

ERROR_CHARACTERS = 240
"""Characters of an error shown; `status TOPIC` has all of it."""

_AT_REST = (Standing.WAITING, Standing.CLEAN)
_HEADER = ("TOPIC", "STATE", "LOGS", "RECORDS", "SIZE", "DIRTY", "WHY")


def overview_table(found: CatalogOverview) -> Table[TopicOverview]:
    """Its topics."""
    return Table(_HEADER, found.topics, lambda topic: _row(topic, found.now_ms), left=("TOPIC", "STATE", "WHY"))


def overview_summary(found: CatalogOverview) -> str:
    """The number of topics in each state."""
    as_of = f", as of {format_time(found.now_ms)}" if found.now_given else ""
    return f"{plural(len(found.topics), 'topic')}: {standings(found.counts())}{as_of}"


def cleaners_of(rates: RatesReport) -> str:
    """Whom rates are for: each cleaner, or all of them."""
    return "all cleaners together" if rates.shared else "each cleaner"


def rates_text(rates: RatesReport) -> str:
    """`reads at most 19.1 MiB/s, writes without limit`, for one cleaner; `read`, `write` for several."""
    ending = "" if rates.shared or rates.topic is not None else "s"
    parts = (("read", rates.read_rate_bytes), ("write", rates.write_rate_bytes))
    return ", ".join(
        f"{verb}{ending} " + ("without limit" if rate is None else f"at most {format_bytes(rate)}/s")
        for verb, rate in parts
    )


def cleaner_notes(found: CatalogOverview) -> Iterator[str]:
    """When each cleaner last looked."""
    if found.cleaners_error is not None:
        yield f"cleaners cannot be read: {found.cleaners_error}"
    for note in found.cleaners or ():
        looked = (
            f"has not completed a check since it started {when(note.started_ms, found.now_ms)}"
            if note.looked_ms is None
            else f"completed its last check {when(note.looked_ms, found.now_ms)}"
        )
        yield f"cleaner {note.cleaner} {looked} (checks every {format_duration(note.interval_ms)})"
    if found.cleaner_rates is not None:
        yield f"{cleaners_of(found.cleaner_rates)} {rates_text(found.cleaner_rates)} (`lithify throttle` changes it)"


def standings(counts: Mapping[Standing, int]) -> str:
    """How many topics are in each state: `1 due, 3 clean`."""
    return ", ".join(f"{count(number)} {standing}" for standing, number in counts.items())


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
    return f"log {topic.partition}{more}: {why}"


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
