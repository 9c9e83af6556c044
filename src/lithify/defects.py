"""Unexpected exceptions as `LithifyError`s, for code that goes on with other work (C50)."""

from __future__ import annotations

import traceback
from pathlib import PurePath

from lithify.errors import DefectError, LithifyError, UnusableEnvironmentError


def as_lithify_error(error: Exception, what: object) -> LithifyError:
    """`error` itself if it is a `LithifyError`, else one about `what` with its class, text and place (C50).

    An `OSError` or `MemoryError` becomes an `UnusableEnvironmentError`, all others a `DefectError`.
    """
    if isinstance(error, LithifyError):
        return error
    reason = " ".join(str(error).split())[:TEXT_CHARACTERS]
    told = f"{what}: {type(error).__name__}{': ' if reason else ''}{reason}{_place(error)}"
    if isinstance(error, OF_THE_MACHINE):
        return UnusableEnvironmentError(told, hint="look at the memory, the disks and the network of this machine")
    return DefectError(
        told,
        hint="an unexpected error: a defect of Lithify, or damage that it did not recognize; run `lithify verify`",
    )


OF_THE_MACHINE = (OSError, MemoryError)
"""What Python raises when memory, a disk or the network fails."""

TEXT_CHARACTERS = 300
"""How much of an exception's own text is kept."""


def _place(error: BaseException) -> str:
    """File, line and function that raised it."""
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return ""
    last = frames[-1]
    return f" at {'/'.join(PurePath(last.filename).parts[-2:])}:{last.lineno} in {last.name}"
