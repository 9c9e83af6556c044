"""Printing: results on stdout, everything else on stderr, tables for people and JSON for scripts.

Verbs print through this module only, each text as `drawing` makes it harmless; in JSON, characters that a terminal acts
on are shown as JSON escapes them.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TextIO, cast

import click

from lithify.cli.terminal.drawing import line, results, styled, texts
from lithify.errors.redaction import redacted_json
from lithify.reports.page import Outlet, Page
from lithify.reports.page.wording import inert_json

_above: list[Callable[[str], None]] = []
"""What prints above the bars that the terminal shows now."""
_lost: dict[bool, OSError] = {}
"""Why stdout (False) or stderr (True) takes nothing any more.

It ends no work: `lithify compact orders 2>&1 | head -1` would have compacted nothing, and ended with 0.
"""


def show(lines: Iterable[str]) -> None:
    """Results for people: on stdout, each of `lines` as one line."""
    _print("\n".join(map(line, lines)))


def put(data: bytes) -> None:
    """Records on stdout as they are; `flush` sends them."""
    sys.stdout.buffer.write(data)


def flush(*, err: bool = False) -> None:
    """Sends what was printed on stdout, so that a program that reads it has it now. Raises `OSError` if nothing has."""
    if err in _lost:
        raise _lost[err]
    (sys.stderr if err else sys.stdout).flush()


def send_the_rest() -> None:
    """Sends what was printed and still waits, on stdout and stderr; drops what cannot be written."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            _discard(stream)


def discard_output() -> None:
    """Redirects stdout to /dev/null."""
    _discard(sys.stdout)


def _discard(stream: TextIO) -> None:
    """Python flushes it at exit: it would print an error, or change the exit code, of its own."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def print_json(value: Mapping[str, Any], *, err: bool = False) -> None:
    """One JSON object on a line of its own; on stderr without secrets."""
    _print(inert_json(json.dumps(redacted_json(value) if err else value)), err=err)


def say(text: str) -> None:
    """Prints a line for the user, on stderr, so that it never mixes with results."""
    _print(line(text), err=True)


def say_json(value: Mapping[str, Any]) -> None:
    """Prints an object on a line of stderr, for programs that read what people see."""
    _print(inert_json(json.dumps(redacted_json(value), ensure_ascii=False)), err=True)


def _print(text: str, *, err: bool = False) -> None:
    stream = sys.stderr if err else sys.stdout
    if _above and stream.isatty():
        _above[-1](text)
        return
    try:
        click.echo(text, err=err)
    except OSError as error:
        _lose(error, err=err)


def _lose(error: OSError, *, err: bool) -> None:
    _lost[err] = error
    _discard(sys.stderr if err else sys.stdout)


class _Screen:
    """Stderr for what draws on it. A terminal that has hung up ends no work either."""

    @property
    def encoding(self) -> str | None:
        return sys.stderr.encoding

    def isatty(self) -> bool:
        return sys.stderr.isatty()

    def write(self, text: str) -> int:
        return self._kept(lambda: sys.stderr.write(text))

    def flush(self) -> None:
        self._kept(sys.stderr.flush)

    def _kept(self, act: Callable[[], int | None]) -> int:
        try:
            return act() or 0
        except OSError as error:
            _lose(error, err=True)
            return 0


def screen() -> TextIO:
    """The stderr that bars are drawn on."""
    return cast(TextIO, _Screen())


@contextmanager
def printing_above(print_above: Callable[[str], None]) -> Iterator[None]:
    """Lets this print what is for a terminal, which shows bars meanwhile, above these."""
    _above.append(print_above)
    try:
        yield
    finally:
        _above.remove(print_above)


def say_lines(text: str) -> None:
    """Several lines, for tracebacks: lines after the first are indented, so that none looks like Lithify's own."""
    for number, one in enumerate(text.splitlines()):
        say(f"  {one}" if number else one)


class _Said(logging.Handler):
    """Prints what is logged as lines for the user."""

    def emit(self, record: logging.LogRecord) -> None:
        say(record.getMessage())


def say_warnings(log: logging.Logger) -> None:
    """Prints what this part of Lithify logs from now on, as other lines for the user."""
    if not any(isinstance(handler, _Said) for handler in log.handlers):
        log.addHandler(_Said(logging.WARNING))
        log.propagate = False  # with --debug the root prints all messages


def say_error(text: str, code: str | None) -> None:
    """Prints an error on one line: `error[UnknownTopic]: ...`. Only errors that earlier versions noted have no code."""
    name = "error:" if code is None else f"error[{code}]:"
    say(f"{styled(name, fg='red', bold=True)} {' '.join(text.split())}")


def print_page(page: Page) -> None:
    """Prints a page: its table and results on stdout, and what is said of them on stderr."""
    if lines := results(page):
        show(lines)
    for text in texts(page, Outlet.NOTICE):
        say(text)


def on_terminal() -> bool:
    """Whether progress may be drawn: stderr is a terminal."""
    return sys.stderr.isatty()
