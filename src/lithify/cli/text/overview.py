"""The overview of a catalog as text: a line per topic, the worst first."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Mapping

from lithify.cli.terminal.output import coded, columns, count, plural, when
from lithify.model.failure import number_of_times
from lithify.model.settings.units import format_bytes, format_duration, format_time
from lithify.reports.overview import CatalogOverview, Standing, TopicOverview
from lithify.reports.round import RatesReport

SHOWN = 50
"""Topics shown without `--all`."""

ERROR_CHARACTERS = 240
"""Characters of an error shown; `status TOPIC` has all of it."""

_AT_REST = (Standing.WAITING, Standing.CLEAN)
_HEADER = ("TOPIC", "STATE", "LOGS", "RECORDS", "SIZE", "DIRTY", "WHY")


def overview_lines(found: CatalogOverview, *, everything: bool = False) -> list[str]:
    """A line per topic; nothing if there is none."""
    shown = found.topics if everything else found.topics[:SHOWN]
    if not shown:
        return []
    return columns(_HEADER, [_row(topic, found.now_ms) for topic in shown], left=("TOPIC", "STATE", "WHY"))


def no_topics(where: str) -> str:
    """What is said of an empty warehouse; `where` is its place."""
    return f"no topics yet in {where} (`lithify topic create` makes one)"


def overview_notes(found: CatalogOverview, where: str, *, everything: bool = False) -> list[str]:
    """The number of topics not shown, the number in each state, and the cleaners."""
    if not found.topics:
        return [no_topics(where), *_cleaner_notes(found)]
    notes = []
    hidden = () if everything else found.topics[SHOWN:]
    if hidden:
        left = CatalogOverview(hidden, found.now_ms).counts()
        notes.append(f"and {count(len(hidden))} more: {_counted(left)} (`--all` shows them)")
    as_of = f", as of {format_time(found.now_ms)}" if found.now_given else ""
    notes.append(f"{plural(len(found.topics), 'topic')}: {_counted(found.counts())}{as_of}")
    return [*notes, *_cleaner_notes(found)]


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


def _cleaner_notes(found: CatalogOverview) -> Iterator[str]:
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


def _counted(counts: Mapping[Standing, int]) -> str:
    return ", ".join(f"{count(number)} {standing}" for standing, number in counts.items())


def _row(topic: TopicOverview, now_ms: int) -> tuple[str, ...]:
    return (
        topic.topic,
        topic.state if topic.state in _AT_REST else topic.state.upper(),
        _or_dash(topic.logs, count),
        _or_dash(topic.records, count),
        _or_dash(topic.bytes, format_bytes),
        "-" if topic.dirty_ratio is None else f"{topic.dirty_ratio:.2f}",
        _why(topic, now_ms),
    )


def _or_dash(number: int | None, text: Callable[[int], str]) -> str:
    return "-" if number is None else text(number)


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
