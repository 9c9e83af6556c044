"""Unexpected exceptions as `LithifyError`s: of other work (C50), and of reading what is stored (C48)."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePath

from lithify.errors import DamagedError, DefectError, LithifyError, UnusableEnvironmentError
from lithify.errors.redaction import one_line


def as_lithify_error(error: Exception, what: object) -> LithifyError:
    """`error` itself if it is a `LithifyError`, else one about `what` with its class, text and place (C50).

    An `OSError`, `MemoryError` or `ImportError` becomes an `UnusableEnvironmentError`, all others a `DefectError`.
    """
    if isinstance(error, LithifyError):
        return error
    reason = one_line(str(error), TEXT_CHARACTERS)
    message = f"{what}: {type(error).__name__}{': ' if reason else ''}{reason}{_place(error)}"
    if isinstance(error, OF_THE_MACHINE):
        installed = isinstance(error, ImportError)
        hint = NOT_INSTALLED if installed else "check the memory, the disks and the network of this machine"
        return UnusableEnvironmentError(message, hint=hint)
    return DefectError(
        message,
        hint="run `lithify verify`: this is a defect of Lithify, or damage that it did not recognize",
    )


@contextmanager
def readable(what: str) -> Iterator[None]:
    """Turns every failure to read stored JSON into a `DamagedError` that names it."""
    try:
        yield
    except (LithifyError, ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise DamagedError(f"{what} cannot be read: {error!r}", hint="restore it; nothing was changed") from error


OF_THE_MACHINE = (OSError, MemoryError, ImportError)
"""What Python raises when memory, a disk, the network or what is installed fails."""

NOT_INSTALLED = "run `lithify doctor` to find the broken part; install Lithify again with its requirements"

TEXT_CHARACTERS = 300
"""How much of an exception's own text is kept."""


def _place(error: BaseException) -> str:
    """File, line and function that raised it."""
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return ""
    last = frames[-1]
    return f" at {'/'.join(PurePath(last.filename).parts[-2:])}:{last.lineno} in {last.name}"
