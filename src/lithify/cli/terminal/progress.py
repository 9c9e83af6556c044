"""Progress on a terminal: a bar per phase of a round or for bytes, a counter for records. Nothing in pipes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lithify.cli.terminal.output import on_terminal

if TYPE_CHECKING:
    from lithify.ports.engine import Progress


@contextmanager
def record_progress(what: str) -> Iterator[Callable[[int], None]]:
    """Shows a counter of records; yields a function that adds to it."""
    if not on_terminal():
        yield lambda _records: None
        return
    from rich.console import Console
    from rich.progress import Progress as Bars
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    shown = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        TextColumn("{task.completed:,.0f} records"),
        TimeElapsedColumn(),
    )
    with Bars(*shown, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(what, total=None)
        yield lambda records: bars.advance(task, records)


@contextmanager
def byte_progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """Shows a bar of bytes; yields the function to call with those done and those to do."""
    if not on_terminal():
        yield lambda _done_bytes, _all_bytes: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    shown = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(binary_units=True), TimeRemainingColumn())
    with Bars(*shown, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(what, total=None)
        yield lambda done_bytes, all_bytes: bars.update(task, completed=done_bytes, total=all_bytes)


@contextmanager
def phase_progress() -> Iterator[Progress]:
    """Shows a bar for every reported phase; yields the function for a round to call with (phase, done, total)."""
    if not on_terminal():
        yield lambda _phase, _done, _total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TaskID, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    shown = (TextColumn("{task.description:<14}"), BarColumn(), TextColumn("{task.fields[steps]}"), TimeElapsedColumn())
    with Bars(*shown, console=Console(stderr=True), transient=True) as bars:
        starting = bars.add_task("starting Spark", total=None, steps="")
        tasks: dict[str, TaskID] = {}

        def advance(phase: str, done: int, total: int) -> None:
            bars.update(starting, visible=False)
            if phase not in tasks:
                tasks[phase] = bars.add_task(phase.replace("_", " "), total=None, steps="")
            # A phase of one step has no middle: its bar moves to and fro until it is done.
            known = total if total > 1 or done == total else None
            bars.update(tasks[phase], completed=done, total=known, steps=f"{done}/{total}" if total > 1 else "")

        yield advance
