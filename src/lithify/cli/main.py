"""The program `lithify`: its exit codes, and the one place that turns errors into text.

    0  done                         2  wrong usage or refused input
    1  failed                       3  finished, with findings        130  interrupted

Verbs import heavy libraries only when they run, so that `--help` is fast.
"""

from __future__ import annotations

import logging
import os
import sys
import traceback
from collections.abc import Sequence

import click

from lithify.cli.completing.shells import complete_if_asked
from lithify.cli.invocation import INTERRUPTED, Invocation
from lithify.cli.terminal.output import discard_output, flush, put, say_lines, send_the_rest, show
from lithify.cli.terminal.stopping import end_in_time, leave
from lithify.cli.verbs import lithify_group
from lithify.errors import DefectError, LithifyError, UnusableEnvironmentError
from lithify.errors.defects import NOT_INSTALLED, OF_THE_MACHINE
from lithify.errors.words import of_the_command_line

_STDIN, _STDOUT, _STDERR = range(3)


_PRINTING = frozenset(function.__code__ for function in (click.echo, put, flush))
_LIBRARIES = logging.NullHandler()
USAGE = "Usage"
"""The code of wrong usage, which is found before a verb runs."""


def main() -> None:
    """The entry point of the program."""
    _open_closed_streams()
    os.environ.setdefault("PYTHONSAFEPATH", "1")  # for Spark's Python workers: the json.py of this folder is not theirs
    invocation = Invocation()
    if complete_if_asked(lithify_group, invocation):
        leave(0)
    end_in_time(invocation.say_ending, invocation.say_interrupted)
    leave(run(sys.argv[1:], invocation))


def _open_closed_streams() -> None:
    """Opens standard streams that the parent has closed: stdin reads as empty, and output is discarded.

    Else the next file that is opened, a segment or the catalog, would get the number of a closed stream, and
    output of a library or of Spark's process would be written into it.
    """
    for number in (_STDIN, _STDOUT, _STDERR):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free
    sys.stdout = sys.stdout or os.fdopen(_STDOUT, "w")
    sys.stderr = sys.stderr or os.fdopen(_STDERR, "w")


@of_the_command_line()
def run(arguments: Sequence[str], invocation: Invocation | None = None) -> int:
    """Runs one command line and returns its exit code."""
    invocation = invocation or Invocation()
    # Log messages of libraries are hidden, as users get one line (py4j would print tracebacks of an
    # interrupt). `--debug` shows them.
    logging.getLogger().addHandler(_LIBRARIES)
    code = 0
    try:
        code = _invoked(arguments, invocation)
        flush()
        return code
    except (KeyboardInterrupt, click.Abort):
        invocation.say_interrupted()
        send_the_rest()
        return INTERRUPTED
    except Exception as error:
        if isinstance(error, BrokenPipeError) and _is_of_printing(error):
            discard_output()  # the reader has closed the pipe, as `| head` does, which is no failure
            return code
        if invocation.debug:
            say_lines(traceback.format_exc())
        invocation.json = invocation.json or "--json" in arguments  # wrong usage may have ended the parsing before it
        return _failed(error, invocation, code)


def _invoked(arguments: Sequence[str], invocation: Invocation) -> int:
    try:
        with lithify_group.make_context("lithify", list(arguments), obj=invocation) as context:
            code = lithify_group.invoke(context)
    except click.exceptions.Exit as done:  # --help and --version
        return done.exit_code
    except click.exceptions.NoArgsIsHelpError as asked:
        show(asked.format_message().splitlines())
        return 0
    return code if isinstance(code, int) else 0


def _failed(error: Exception, invocation: Invocation, done: int) -> int:
    """Prints the error on one line with its code and the next step; returns the exit code.

    Where only the printing of a verb that has ended with `done` failed, that stands unless it is 0.
    """
    match error:
        case click.UsageError():
            path = error.ctx.command_path if error.ctx else "lithify"
            kind, text, hint, code = USAGE, error.format_message().rstrip("."), f"see `{path} --help`", error.exit_code
        case LithifyError():
            kind, text, hint, code = error.code, error.message, error.hint, error.exit_code
        case OSError() if _is_of_printing(error):
            text = f"stdout: the output cannot be written: {error.strerror}"
            hint = "free space or print elsewhere; changes that the command has made remain"
            kind, code = UnusableEnvironmentError("").code, done or 1
        case _:  # a defect, or an unexpected failure of the machine
            kind = (UnusableEnvironmentError if isinstance(error, OF_THE_MACHINE) else DefectError)("").code
            text, hint, code = f"{type(error).__name__}: {error}", "add `--debug` to see where", 1
            hint = NOT_INSTALLED if isinstance(error, ImportError) else hint
    invocation.say_failure(text, hint, kind, code)
    send_the_rest()
    return code


def _is_of_printing(error: OSError) -> bool:
    """Whether it was raised by writing to stdout, and not by what a verb did."""
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    return frame.f_code in _PRINTING
