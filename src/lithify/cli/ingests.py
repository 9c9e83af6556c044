"""What an ingest prints, from whatever system it copies, and how it ends."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import Event
from types import FrameType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from lithify.cli.invocation import Invocation
from lithify.cli.metrics_options import MetricsAsked, in_turn
from lithify.cli.terminal.output import print_page, say, say_json
from lithify.cli.terminal.progress import Bar, later_progress, record_progress
from lithify.cli.terminal.starting import begun
from lithify.cli.terminal.stopping import end_spark
from lithify.errors import RefusedError
from lithify.waits.deadline import ENDING

if TYPE_CHECKING:
    from lithify.api.lake import Lake
    from lithify.reports.ingest import IngestBatch, IngestNote, IngestReport

T = TypeVar("T")

SPARK_ENDS_WITHIN_S = 2.0
"""The time for Spark's orderly end, which usually takes less; then it is killed."""


def stop_on_signals() -> Event:
    """After a signal the running batch is abandoned or committed, the last one. A second signal ends the program."""
    stopped = Event()
    ENDING.clear()

    def handle(number: int, _frame: FrameType | None) -> None:
        if stopped.is_set():  # a copy can be killed at any moment (C6)
            end_spark(0)
            os._exit(128 + number)
        stopped.set()
        ENDING.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handle)
    return stopped


def run_ingest(invocation: Invocation, copy: Callable[..., tuple[IngestReport, ...]], given: Mapping[str, Any]) -> int:
    """Ingests by `copy`, a verb of the lake, with the options `given`; prints its notes. Returns the exit code.

    A continuous one waits for as long as the catalog is away.
    """
    continuous: bool = given["continuous"]

    def open_lake() -> Lake:
        lake = invocation.open_lake()
        if continuous:
            lake.warehouse.store.topics()
        return lake

    asked: MetricsAsked = given["metrics"]
    how = {name: value for name, value in given.items() if name != "metrics"}
    with asked.served() as meter:
        from lithify.metrics.copy_metrics import IngestMetrics

        measured = IngestMetrics(meter)
        beginning = begun_copy(invocation, open_lake, waits=continuous, notes=measured.note)
        if beginning is None:
            return 0
        lake, stopped = beginning
        invocation.standing = "what was copied is committed, and the same command continues there"
        with telling(invocation, continuous=continuous) as says:
            tell, notes = in_turn(measured.batch, says.batch), in_turn(measured.note, says.note)
            reports = copy(lake, **how, tell=tell, notes=notes, stops=stopped.is_set)
        return ended(invocation, reports, stopped=stopped.is_set())


def begun_copy(
    invocation: Invocation,
    begin: Callable[[], T],
    *,
    waits: bool,
    notes: Callable[[IngestNote], object],
) -> tuple[T, Event] | None:
    """What `begin` returns, and what is set once the copy is to stop; None if a signal came before.

    If it `waits`, `begin` is called again for as long as what it needs is away. `notes` gets its notes too.
    """

    def tell(kind: str, facts: Mapping[str, Any]) -> None:
        from lithify.reports.events import EventKind, event_text
        from lithify.reports.ingest import IngestNote

        text = f"{facts['reason']}: ended before it began" if kind == "stopped" else event_text(EventKind(kind), facts)
        in_turn(notes, noted(invocation))(IngestNote("outage" if kind == "trouble" else kind, text))

    return begun(lambda: (begin(), stop_on_signals()), tell, waits=waits)


class Note(Protocol):
    """What is said besides results, in an ingest and in other work with a cluster."""

    @property
    def text(self) -> str: ...

    def to_json(self) -> Mapping[str, Any]: ...


def noted(invocation: Invocation) -> Callable[[Note], None]:
    """Prints every note on stderr, as results go to stdout; with `--json` as a JSON object on a line."""

    def print_note(note: Note) -> None:
        if invocation.json:
            say_json(note.to_json())
        else:
            say(note.text)

    return print_note


@contextmanager
def counted(what: str, stopped: Event | None) -> Iterator[tuple[Callable[[int], None], Callable[[], bool]]]:
    """What is to be called with the records of a copy to draw them, and whether it is to end.

    A continuous copy draws none, and ends when `stopped` is set.
    """
    if stopped is not None:
        yield lambda _records: None, stopped.is_set
        return
    with record_progress(what) as tell:
        yield tell, lambda: False


class Telling:
    """Prints an ingest's reports; on a terminal it draws a bar as well, of what there was to copy at the beginning."""

    def __init__(self, invocation: Invocation, begin_bar: Callable[[], Bar] | None, *, continuous: bool) -> None:
        self._invocation, self._begin_bar, self._continuous = invocation, begin_bar, continuous
        self._bar: Bar | None = None
        self._records = 0
        self._behind: dict[str, tuple[int | None, int | None]] = {}
        """By topic, its lag at the beginning and now; None where it is not known."""

    def batch(self, batch: IngestBatch) -> None:
        """Prints a batch that was committed."""
        self._invocation.tell(batch, batch.text if batch.records else "", endless=self._continuous)
        self._records += batch.records
        self._drawn(batch.topic, batch.lag)

    def note(self, note: IngestNote) -> None:
        """Prints a note of the ingest."""
        noted(self._invocation)(note)
        if note.event == "begins" and note.topic is not None:
            self._drawn(note.topic, note.lag)

    def _drawn(self, topic: str, lag: int | None) -> None:
        if self._begin_bar is None:
            return
        self._bar = self._bar or self._begin_bar()  # not before, so that the rate is that of the copying
        at_first, _ = self._behind.get(topic, (lag, lag))
        self._behind[topic] = (at_first, lag)
        known = [(first, now) for first, now in self._behind.values() if first is not None and now is not None]
        if self._continuous or len(known) < len(self._behind):  # it has no end, or one that the source does not tell
            self._bar.records(self._records)
        else:
            self._bar.records(self._records, sum(max(0, first - now) for first, now in known), sum(f for f, _ in known))


@contextmanager
def telling(invocation: Invocation, *, continuous: bool) -> Iterator[Telling]:
    with later_progress("copying") as begin_bar:
        yield Telling(invocation, begin_bar, continuous=continuous)


def ended(invocation: Invocation, reports: tuple[IngestReport, ...], *, stopped: bool) -> int:
    """Prints the reports; returns the exit code: 2 if all topics were refused. After a signal it ends Spark as well."""
    _print(invocation, reports)
    if stopped:
        end_spark(SPARK_ENDS_WITHIN_S)
    if reports and all(report.refused for report in reports):
        return RefusedError.exit_code
    return 1 if any(report.error is not None for report in reports) else 0


def _print(invocation: Invocation, reports: tuple[IngestReport, ...]) -> None:
    from lithify.reports.ingest import IngestReport

    if invocation.printed(*reports):
        return
    if begun := tuple(report for report in reports if not report.refused):
        print_page(IngestReport.listed(begun))
    for report in reports:
        for loss in report.losses():
            say(loss)
        if report.error is not None:
            names_it = report.error.startswith((report.topic, report.source))
            invocation.say_error(report.error if names_it else f"{report.source}: {report.error}", report.error_code)
