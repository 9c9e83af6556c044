"""What an ingest prints, from whatever system it copies, and how it ends."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from threading import Event
from types import FrameType
from typing import TYPE_CHECKING, Any, Protocol

from lithify.cli.invocation import Invocation
from lithify.cli.terminal.output import drawn, flush, say, say_json, show
from lithify.cli.terminal.stopping import end_spark
from lithify.errors import RefusedError
from lithify.model.settings.units import format_duration
from lithify.reports.tables.wording import count

if TYPE_CHECKING:
    from lithify.reports.ingest import Hole, IdHole, IngestBatch, IngestReport, TellBatch

SPARK_ENDS_WITHIN_S = 2.0
"""The time for Spark's orderly end, which usually takes less; then it is killed."""


def stop_on_signals() -> Event:
    """After a signal the running batch is abandoned or committed, the last one. A second signal ends the program."""
    stopped = Event()

    def handle(number: int, _frame: FrameType | None) -> None:
        if stopped.is_set():  # a copy can be killed at any moment (C6)
            end_spark(0)
            os._exit(128 + number)
        stopped.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handle)
    return stopped


def told(invocation: Invocation) -> TellBatch:
    """Prints every batch that is committed."""

    def tell(batch: IngestBatch) -> None:
        if invocation.printed(batch):
            flush()
        elif batch.records:
            say(_batch_line(batch))

    return tell


class Note(Protocol):
    """What is said besides results, in an ingest and in other work with a cluster."""

    @property
    def text(self) -> str: ...

    def to_json(self) -> Mapping[str, Any]: ...


def noted(invocation: Invocation) -> Callable[[Note], None]:
    """Prints every note on stderr, as results go to stdout; with `--json` as a JSON object on a line."""

    def note(said: Note) -> None:
        if invocation.json:
            say_json(said.to_json())
        else:
            say(said.text)

    return note


def ended(invocation: Invocation, reports: tuple[IngestReport, ...], *, stopped: bool) -> int:
    """Prints the reports; returns the exit code: 2 if all topics were refused. After a signal it ends Spark as well."""
    _print(invocation, reports)
    if stopped:
        end_spark(SPARK_ENDS_WITHIN_S)
    if reports and all(report.refused for report in reports):
        return RefusedError.exit_code
    return 1 if any(report.error is not None for report in reports) else 0


def _batch_line(batch: IngestBatch) -> str:
    from lithify.reports.ingest import lag_text

    rate = count(round(1000 * batch.records / max(1, batch.duration_ms)))
    took = f"{count(batch.records)} records in {format_duration(batch.duration_ms)} ({rate}/s)"
    return f"{batch.source} → {batch.topic}: {took}, {lag_text(batch.logs)}"


def _print(invocation: Invocation, reports: tuple[IngestReport, ...]) -> None:
    from lithify.reports.tables.ingest import ingest_table

    if invocation.printed(*reports):
        return
    show(drawn(ingest_table(reports)))
    for report in reports:
        for hole in report.holes:
            say(f"{report.topic}[{hole.partition}]: {_gone(hole)} were never copied")
        if report.error is not None:
            invocation.say_error(f"{report.source}: {report.error}", report.error_code)


def _gone(hole: Hole | IdHole) -> str:
    from lithify.reports.ingest import Hole

    if isinstance(hole, Hole):
        return f"offsets {hole.start_offset} to {hole.end_offset - 1}"
    after = "" if hole.after is None else f"after {hole.after} and "
    return f"entries {after}before {hole.before.replace(':-1', ':0')}, if there were any,"
