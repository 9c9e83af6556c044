"""Errors that nobody foresaw, as errors of ours: for those who go on with other work (C50)."""

from __future__ import annotations

import traceback
from pathlib import PurePath

from lithify.errors import DefectError, LithifyError, UnusableEnvironmentError


def ours(error: Exception, what: object) -> LithifyError:
    """`error` itself if it is one of ours, else one about `what`: of the machine's trouble, or a `DefectError`.

    For those who go on with other work: what they catch is told, with its class and its place (C50).
    """
    if isinstance(error, LithifyError):
        return error
    reason = " ".join(str(error).split())[:TEXT_CHARACTERS]
    told = f"{what}: {type(error).__name__}{': ' if reason else ''}{reason}{_place(error)}"
    if isinstance(error, OF_THE_MACHINE):
        return UnusableEnvironmentError(told, hint="look at the memory, the disks and the network of this machine")
    return DefectError(
        told,
        hint="nobody foresaw this error: a defect, or damage that was not recognized; `lithify verify` looks closer",
    )


OF_THE_MACHINE = (OSError, MemoryError)
"""What Python raises where memory, a disk or the network fails."""

TEXT_CHARACTERS = 300
"""What is kept of the text of an error that is not ours."""


def _place(error: BaseException) -> str:
    """Where it was raised: file, line and function."""
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return ""
    last = frames[-1]
    return f" at {'/'.join(PurePath(last.filename).parts[-2:])}:{last.lineno} in {last.name}"
