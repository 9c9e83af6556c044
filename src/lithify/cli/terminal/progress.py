"""Progress on a terminal: a bar per phase of a round, for an ingest or for bytes, a counter for records.

    rewrite        ━━━━━━━━━╺━━━━━━━━━━   46%  1.2 GiB of 2.6 GiB  48.1 MiB/s  0:00:25

Rates are averages since the bar began. In pipes there are no bars; that Spark starts is said there, too, on a line.
A job that waits for executors is reported in a line everywhere.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from time import monotonic
from typing import TYPE_CHECKING

from lithify.cli.terminal.output import on_terminal, printing_above, screen
from lithify.model.settings.units import format_bytes, format_duration, plural
from lithify.ports.engine import IN_BYTES, OVER, SPARK_STARTED, START_SPARK, STARTING_SPARK, WAITS
from lithify.reports.page.wording import count

if TYPE_CHECKING:
    from rich.progress import Progress as Bars

    from lithify.ports.engine import Progress

Note = Callable[[str, str], None]
"""Prints (event, text)."""


@contextmanager
def record_progress(what: str, *, shown: bool = True) -> Iterator[Callable[[int], None]]:
    """Shows a counter of records; yields a function that adds to it."""
    if not (shown and on_terminal()):
        yield lambda _records: None
        return
    with _bars() as bars:
        bar, done = Bar(bars, what), 0

        def advance(records: int) -> None:
            nonlocal done
            done += records
            bar.records(done)

        yield advance


@contextmanager
def byte_progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """Shows a bar of bytes; yields the function to call with those done and those to do."""
    if not on_terminal():
        yield lambda _done_bytes, _all_bytes: None
        return
    with _bars() as bars:
        yield Bar(bars, what).bytes


@contextmanager
def later_progress(what: str) -> Iterator[Callable[[], Bar] | None]:
    """Yields a function that begins a bar, once there is something to show; None if there is no terminal."""
    if not on_terminal():
        yield None
        return
    with _bars() as bars:
        yield lambda: Bar(bars, what)


@contextmanager
def phase_progress(note: Note) -> Iterator[Progress]:
    """Shows a bar for every reported phase; yields the function for a round to call with (phase, done, total).

    Off a terminal only the start of Spark is reported, by `note`; that it has started is reported everywhere.
    """
    began_s = monotonic()
    with ExitStack() as stack:
        bars = stack.enter_context(_bars()) if on_terminal() else None
        stack.enter_context(waits_noted(note))
        shown: dict[str, Bar] = {}

        def advance(phase: str, done: int, total: int) -> None:
            nonlocal began_s
            if phase == START_SPARK and done:
                note("spark_started", SPARK_STARTED.format(_since(began_s)))
            elif phase == START_SPARK:
                began_s = monotonic()
                if bars is None:
                    note("starting_spark", STARTING_SPARK)
            if bars is None:
                return
            bar = shown.get(phase) or Bar(bars, _NAMES.get(phase, phase.replace("_", " ")))
            shown[phase] = bar
            if phase in IN_BYTES:
                bar.bytes(done, total)
            else:
                bar.steps(done, total)
            if phase == START_SPARK and done:
                bar.hide()

        yield advance


@contextmanager
def waits_noted(note: Note) -> Iterator[None]:
    """Meanwhile `note` tells what jobs wait for, as `waiting`, and that a wait is over, as `waited`."""

    def tell(record: logging.LogRecord) -> None:
        note("waiting" if OVER.keys().isdisjoint(vars(record)) else "waited", record.getMessage())

    handler = logging.Handler(logging.INFO)
    handler.emit = tell  # type: ignore[method-assign]
    propagates, WAITS.propagate = WAITS.propagate, False  # with --debug the root's handler would print it, too
    level = WAITS.level
    WAITS.setLevel(logging.INFO)
    WAITS.addHandler(handler)
    try:
        yield
    finally:
        WAITS.removeHandler(handler)
        WAITS.setLevel(level)
        WAITS.propagate = propagates


_NAMES = {START_SPARK: "starting Spark"}


def _since(began_s: float) -> str:
    return format_duration(round((monotonic() - began_s) * 1000))


class Bar:
    """One bar, with figures beside it. Until anything is done, its end is not known and it moves to and fro."""

    def __init__(self, bars: Bars, name: str) -> None:
        self._bars, self._began_s = bars, monotonic()
        self._task = bars.add_task(name, total=None, percent="", figures="")

    def steps(self, done: int, total: int) -> None:
        self._show(done, total, f"{count(done)} of {count(total)}" if total > 1 else "")

    def bytes(self, done: int, total: int) -> None:
        if done:
            far = f"{format_bytes(done)} of {format_bytes(total)}"
            self._show(done, total, far, f"{format_bytes(self._rate(done))}/s")
        else:
            self._show(done, total, format_bytes(total))

    def records(self, records: int, done: int = 0, total: int | None = None) -> None:
        """So many records; the bar is at `done` of `total`, whose unit may be another."""
        self._show(done, total, plural(records, "record"), f"{count(self._rate(records))} records/s" if records else "")

    def hide(self) -> None:
        self._bars.update(self._task, visible=False)

    def _rate(self, done: int) -> int:
        return round(done / max(0.001, monotonic() - self._began_s))

    def _show(self, done: int, total: int | None, *figures: str) -> None:
        known = total if done or not total else None
        percent = f"{100 * done // total}%" if done and total else ""
        text = "  ".join(filter(None, figures))
        self._bars.update(self._task, completed=done, total=known, percent=percent, figures=text)


@contextmanager
def _bars() -> Iterator[Bars]:
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars
    from rich.text import Text

    shown = (
        TextColumn("{task.description:<14}"),
        BarColumn(bar_width=20),
        TextColumn("{task.fields[percent]:>4}"),
        TextColumn("{task.fields[figures]}"),
        TimeElapsedColumn(),
    )
    console = Console(file=screen())

    def print_above(text: str) -> None:
        console.print(Text.from_ansi(text), soft_wrap=True)

    # Not redirected: Rich would print on stderr what is redirected into a file by stdout, and click writes past its
    # proxies.
    bars = Bars(*shown, console=console, transient=True, redirect_stdout=False, redirect_stderr=False)
    with bars, printing_above(print_above):
        yield bars
