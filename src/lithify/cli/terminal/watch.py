"""Repeats a look: redrawn in place on a terminal, appended in a pipe, one object each as JSON."""

from __future__ import annotations

import sys
import textwrap
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from lithify.cli.terminal.drawing import faint, line, width
from lithify.cli.terminal.output import flush, print_json, say, say_error, show
from lithify.errors import LithifyError
from lithify.errors.defects import as_lithify_error
from lithify.model.settings.units import format_duration, format_time


@dataclass(frozen=True, slots=True)
class Frame:
    """The result of one look."""

    lines: Sequence[str]
    """For people, on stdout."""
    notes: Sequence[str]
    """For people, on stderr."""
    whole: Mapping[str, Any]
    """As one JSON object."""
    values: Sequence[Mapping[str, Any]]
    """As JSON, an object a line."""
    code: int = 0
    """The exit code of a single look."""


def watch(look: Callable[[], Frame], interval_ms: int, *, as_json: bool) -> NoReturn:
    """Repeats the look until interrupted. The error of a failed look is printed, and the next one is tried."""
    if as_json:
        _print_each(look, interval_ms, _print_whole, _print_json_error)
    if not sys.stdout.isatty():
        _print_each(look, interval_ms, _print_lines, lambda error: say_error(str(error), error.code))
    _draw_in_place(look, interval_ms)


def pause(interval_ms: int) -> None:
    time.sleep(interval_ms / 1000)


def _print_each(
    look: Callable[[], Frame], interval_ms: int, show: Callable[[Frame], None], fail: Callable[[LithifyError], None]
) -> NoReturn:
    while True:
        match _tried(look):
            case Frame() as frame:
                show(frame)
            case error:
                fail(error)
        flush()
        pause(interval_ms)


def _print_json_error(error: LithifyError) -> None:
    print_json({"error": str(error), "error_code": error.code})


def _print_whole(frame: Frame) -> None:
    print_json(frame.whole)


def _print_lines(frame: Frame) -> None:
    show([_now(), *frame.lines, ""])
    for note in frame.notes:
        say(note)


def _draw_in_place(look: Callable[[], Frame], interval_ms: int) -> NoReturn:
    """Draws on the alternate screen, with the notes on top, as the bottom may be cut.

    Under an error it shows the last successful look; the last screen remains in the terminal.
    """
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    every = f"every {format_duration(interval_ms)}, Ctrl-C to end"
    shown: list[str] = []
    seen: Sequence[str] = ()
    live = Live(Text("checking ..."), console=Console(), screen=True, auto_refresh=False)
    try:
        with live:
            while True:
                match _tried(look):
                    case Frame() as frame:
                        seen = [*frame.notes, "", *frame.lines]
                        shown = [faint(f"{_now()}, {every}"), *seen]
                    case error:
                        shown = [
                            faint(f"{_now()}, {every}"),
                            *textwrap.wrap(f"error[{error.code}]: {error}", width()),
                            "",
                            *seen,
                        ]
                text = Text.from_ansi("\n".join(map(line, shown)), no_wrap=True, overflow="ellipsis")
                live.update(text, refresh=True)
                pause(interval_ms)
    finally:
        show(shown)


def _tried(look: Callable[[], Frame]) -> Frame | LithifyError:
    """The result of a look, or its error."""
    try:
        return look()
    except Exception as error:  # any error may be gone at the next look
        return as_lithify_error(error, "the check")


def _now() -> str:
    return format_time(time.time_ns() // 1_000_000)
