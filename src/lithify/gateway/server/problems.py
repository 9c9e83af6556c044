"""Errors as problem details (RFC 9457), with what the JSON of the command line has for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.responses import JSONResponse

from lithify.errors import (
    AccessDeniedError,
    BusyError,
    ConflictError,
    CoordinationError,
    FencedError,
    InsufficientSpaceError,
    InvalidInputError,
    InvalidRecordError,
    LithifyError,
    LogTruncatedError,
    NothingToUndoError,
    RefusedError,
    TopicExistsError,
    UnknownGroupError,
    UnknownStreamError,
    UnknownTopicError,
    UnknownVersionError,
    UnusableEnvironmentError,
    VersionSweptError,
    WarehouseError,
)


class UnknownPathError(InvalidInputError):
    """There is nothing at the path of a request, or it does not take the method."""


class UnsupportedMediaError(InvalidInputError):
    """The body of a request is of a type that it does not take."""


_STATUS: tuple[tuple[tuple[type[LithifyError], ...], int], ...] = (
    ((UnknownTopicError, UnknownStreamError, UnknownGroupError, UnknownVersionError, UnknownPathError), 404),
    ((TopicExistsError, FencedError, NothingToUndoError, ConflictError), 409),
    ((AccessDeniedError,), 403),
    ((UnsupportedMediaError,), 415),
    ((LogTruncatedError, VersionSweptError), 410),
    ((RefusedError,), 400),
    ((BusyError, WarehouseError, CoordinationError, UnusableEnvironmentError), 503),
    ((InsufficientSpaceError,), 507),
)
"""The first that fits."""
RETRY_S = 5


def status_of(error: LithifyError) -> int:
    """The status of HTTP for an error."""
    return next((status for kinds, status in _STATUS if isinstance(error, kinds)), 500)


def error_json(error: LithifyError, **place: Any) -> dict[str, Any]:
    """As the command line prints it with `--json`."""
    where = {name: value for name, value in place.items() if value is not None}
    return {
        "code": error.code,
        "message": error.message,
        "hint": error.hint or None,
        "exit_code": error.exit_code,
        **where,
    }


def problem_of(
    error: LithifyError, status: int | None = None, headers: Mapping[str, str] | None = None, **place: Any
) -> JSONResponse:
    """The response for an error, by default with the status of its class."""
    told = error_json(error, **place)
    if isinstance(error, InvalidRecordError) and error.index >= 0:
        told |= {"record": error.index, "reason": error.reason}
    if isinstance(error, BusyError):
        headers = {"Retry-After": str(RETRY_S)}
    status = status or status_of(error)
    body = {"type": "about:blank", "title": error.code, "status": status, "detail": told.pop("message"), **told}
    return JSONResponse(body, status, headers, media_type="application/problem+json")
