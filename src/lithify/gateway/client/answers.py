"""Reports and errors out of the answers of a gateway: the classes that the Python API returns and raises."""

from __future__ import annotations

import json
from contextlib import suppress
from functools import lru_cache
from http import HTTPStatus
from typing import Any, TypeVar

import msgspec

from lithify import errors
from lithify.errors import (
    GatewayError,
    InvalidInputError,
    InvalidRecordError,
    LithifyError,
    RefusedError,
    UnknownOutcomeError,
)
from lithify.gateway.client.connection import Answer, Request

T = TypeVar("T")

PROBLEM = "application/problem+json"
_TOKEN = "pass --gateway-token-file FILE, or set $LITHIFY_GATEWAY_TOKEN; `lithify token create` makes a token"
_NOTHING_THERE = (HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED)
_VERSIONS = "compare the versions of Lithify here and on the machine of the gateway"


class ToldError(msgspec.Struct):
    """An error. A problem has the text of the error as `detail`."""

    code: str
    message: str = ""
    detail: str = ""
    hint: str | None = None
    exit_code: int = 1
    topic: str | None = None
    record: int = -1
    """Of an append, the record that is refused, from 0, for a `reason`."""
    reason: str = ""


class ToldProgress(msgspec.Struct):
    phase: str
    done: int
    total: int


class ToldJob(msgspec.Struct):
    """A job as it is now."""

    job: str
    ended_ms: int | None = None
    progress: ToldProgress | None = None
    report: dict[str, Any] | None = None
    error: ToldError | None = None


class ToldPage(msgspec.Struct):
    """A part of a list."""

    items: list[Any]
    next: str | None = None
    failed: list[ToldError] = msgspec.field(default_factory=list)


def json_of(answer: Answer, url: str) -> Any:
    """What a request that was granted returned. Raises the error that the gateway tells of, or `GatewayError`."""
    if 300 <= answer.status < 400:
        raise GatewayError(
            f"{url} redirects to {answer.headers.get('location')}, which is not followed",
            hint="use the URL of the gateway itself",
        )
    if answer.kind not in ("application/json", PROBLEM):
        raise GatewayError(
            f"{url} is not a gateway of Lithify: it answered {answer.status} with {answer.kind}", hint="correct the URL"
        )
    try:
        told = json.loads(answer.body)
    except ValueError:
        raise GatewayError(f"the gateway at {url} answered with what is not JSON", hint=_VERSIONS) from None
    if answer.status < 300:
        return told
    code = told.get("code") if isinstance(told, dict) else None
    if code is None or (answer.status in _NOTHING_THERE and code == InvalidInputError("").code):
        raise GatewayError(
            f"the gateway at {url} does not know this request: it answered {answer.status}", hint=_VERSIONS
        )
    error = error_of(told_as(ToldError, told, url))
    if answer.status == HTTPStatus.UNAUTHORIZED:
        error.hint = _TOKEN
    raise error


def done_of(request: Request, answer: Answer, url: str) -> Any:
    """What `json_of` returns; raises what it does, and `UnknownOutcomeError` for a change whose answer was cut."""
    try:
        return json_of(answer, url)
    except GatewayError as error:
        raise unless_done(error, request, answer) from None


def unless_done(error: GatewayError, request: Request, answer: Answer) -> LithifyError:
    """The error for an answer that is not understood: `UnknownOutcomeError` for a change that may have been made.

    A gateway that ends, or a proxy before it, may cut an answer anywhere, also within its head.
    """
    if not request.changes or 300 <= answer.status < 500:
        return error
    unknown = f"{error.message}; whether it did what was requested is not known"
    return UnknownOutcomeError(unknown, hint=request.look)


def told_as(kind: type[T], told: Any, url: str) -> T:
    """JSON as a class; fields that this version does not know are ignored. Raises `GatewayError`."""
    try:
        return msgspec.convert(told, kind, str_keys=True)
    except msgspec.ValidationError as error:
        raise GatewayError(
            f"the gateway at {url} answered with another {kind.__name__} than this version knows: {error}",
            hint=_VERSIONS,
        ) from None


def report_of(kind: Any, told: Any, url: str) -> Any:
    """A report of JSON. Raises `GatewayError`."""
    with suppress(AttributeError, KeyError, TypeError):  # the conversion says it better
        told = kind.fields_of(told)
    return told_as(kind, told, url)


def error_of(told: ToldError) -> LithifyError:
    """The error whose code a gateway told; of one that this version does not know, its nearest base."""
    unknown = RefusedError if told.exit_code == RefusedError.exit_code else LithifyError
    error = _by_code().get(told.code, unknown)(told.message or told.detail, hint=told.hint or "")
    if isinstance(error, InvalidRecordError):
        error.index, error.reason = told.record, told.reason
    return error


@lru_cache(1)
def _by_code() -> dict[str, type[LithifyError]]:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, LithifyError)]
    return {kind.__name__.removesuffix("Error"): kind for kind in kinds}
