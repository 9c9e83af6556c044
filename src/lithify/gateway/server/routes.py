"""A route for each operation: arguments in, the method of the Python API called on a thread, its report out.

short   200 with the report, or a page of a list: {"items": [...], "total": n, "next": "/api/v1/...?offset=100"};
        with "failed" for what could not be read: [{"topic": ..., "code": ..., "message": ...}]
job     202 with the job and its place, or with `Accept: text/event-stream` its events, the last of which is its end
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from lithify.api.lake import Lake
from lithify.errors import BusyError, InvalidInputError, LithifyError
from lithify.gateway.access.audit import later, note
from lithify.gateway.access.callers import Caller
from lithify.gateway.operations.operation import Operation
from lithify.gateway.operations.table import OPERATIONS
from lithify.gateway.server.arguments import arguments_type, of_body, of_query
from lithify.gateway.server.jobs.following import events_of
from lithify.gateway.server.jobs.jobs import QUEUED_AT_MOST, Job, Jobs, JobState
from lithify.gateway.server.paths import name_of
from lithify.gateway.server.problems import error_json
from lithify.gateway.server.refused import refused
from lithify.gateway.server.rights import check_rights, topic_stream, visible, without_names
from lithify.gateway.server.targets import Targets
from lithify.reports.overview import CatalogOverview

PAGE, LARGEST_PAGE = 1_000, 10_000
"""Items of a list in one response, by default and at most."""
_PAGING = ("offset", "limit")


def routes(lake: Lake, jobs: Jobs, coordination_url: str | None, changed: Callable[[str], None]) -> list[Route]:
    """The routes of all operations. What they share is in the database at the URL, or where `Lake.group` has it.

    `changed` is told of the topics that they change at once.
    """
    targets = Targets(lake, coordination_url)
    return [_Endpoint(one, arguments_type(one), targets, jobs, changed).route() for one in OPERATIONS]


@dataclass(frozen=True, slots=True)
class _Endpoint:
    """One operation as HTTP has it."""

    operation: Operation
    arguments: type[msgspec.Struct]
    targets: Targets
    jobs: Jobs
    changed: Callable[[str], None]

    def route(self) -> Route:
        return Route(self.operation.path, self.answer, methods=[self.operation.method], name=self.operation.name)

    async def answer(self, request: Request) -> Response:
        place = {name: name_of(value) for name, value in request.path_params.items()}
        try:
            given = place | await self._arguments(request)
            note(
                request.scope,
                what=self.operation.name,
                topic=given.get("topic", given.get("name")),
                partition=given.get("partition"),
            )
            caller = check_rights(request.scope, self.operation, given)
            if self.operation.is_job:
                return self._begun(request, caller, given)
            return await run_in_threadpool(self._response, request, caller, given)
        except Exception as error:
            return refused(request, error, self.operation, place.get("topic"))

    async def _arguments(self, request: Request) -> dict[str, Any]:
        query = request.query_params
        if self.operation.changes:
            return of_body(self.arguments, await request.body())  # the guard has bounded it
        if self.operation.many:
            query = type(query)([(name, value) for name, value in query.multi_items() if name not in _PAGING])
        return of_query(self.arguments, query)

    def _begun(self, request: Request, caller: Caller, given: Mapping[str, Any]) -> Response:
        audited = later(request.scope)
        job = self.jobs.begin(
            self.operation.name,
            given.get("topic"),
            caller.name,
            lambda job: self._done(request, job, given),
            lambda job, state: audited(**_end(job, state)),
        )
        if job is None:
            raise BusyError(f"{QUEUED_AT_MOST} jobs wait already", hint="try again when some have ended")
        note(request.scope, job=job.id)
        where = {"Location": f"/api/v1/jobs/{job.id}"}
        if "text/event-stream" in request.headers.get("accept", ""):
            return events_of(job, where)
        return JSONResponse(job.to_json(), 202, where)

    def _response(self, request: Request, caller: Caller, given: Mapping[str, Any]) -> Response:
        one, failed = self.operation, dict[str, LithifyError]()
        result = self.targets.called(one, given, {"failed": failed.__setitem__})
        if one.changes and "topic" in given:
            self.changed(given["topic"])
        if one.many and not one.report:
            result = tuple(named.name for named in result)
        result = visible(one, result, caller)
        told = page_of(result, request) if one.many else to_json(result)
        if names := [name for name in failed if caller.may(one.role, topic_stream(name))]:
            told["failed"] = [error_json(failed[name], topic=name) for name in names]
        if isinstance(told, dict):
            note(request.scope, run=told.get("run_id"), version=told.get("version"))
        if isinstance(result, CatalogOverview):
            return Response(msgspec.json.encode(told), media_type="application/json")
        return _Ascii(told)

    def _done(self, request: Request, job: Job, given: Mapping[str, Any]) -> Any:
        """The report of a job."""
        try:
            return to_json(self.targets.called(self.operation, given, _listeners(job)))
        except LithifyError as error:
            raise without_names(error, request.scope) from error.__cause__


class _Ascii(JSONResponse):
    """Has no need of UTF-8: a word of a command line, such as the name of a file, may have half a character."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()


def _end(job: Job, state: JobState) -> dict[str, Any]:
    """What the audit log says of the end of a job."""
    report = job.report or {}
    return {
        "job": job.id,
        "state": state.value,
        "duration_ms": None if job.ended_ms is None else job.ended_ms - job.begun_ms,
        "code": None if job.error is None else job.error["code"],
        "run": report.get("run_id"),
        "version": report.get("version"),
    }


def _listeners(job: Job) -> dict[str, Any]:
    """What a method tells of its work, if it takes them."""
    return {
        "progress": job.progress,
        "notes": lambda text: job.tell("note", text=text),
        "tell": lambda what, most_ms: job.tell("wait", what=what, most_ms=most_ms),
    }


def to_json(result: Any) -> Any:
    """A report as JSON; of what is made, its info. The rows of an overview are left to `msgspec`."""
    if isinstance(result, CatalogOverview):
        return result.with_rows()
    if hasattr(result, "to_json"):
        return result.to_json()
    if hasattr(result, "info"):
        return result.info().to_json()
    return {"items": [to_json(one) for one in result]} if isinstance(result, tuple) else result


def page_of(items: Sequence[Any], request: Request) -> dict[str, Any]:
    """A part of a list. Raises `InvalidInputError`."""
    offset, limit = (_number(request, name, default) for name, default in (("offset", 0), ("limit", PAGE)))
    if not limit:
        raise InvalidInputError("limit 0 is not possible", hint=f"use 1 to {LARGEST_PAGE}")
    end = offset + min(limit, LARGEST_PAGE)
    rest = [(name, value) for name, value in request.query_params.multi_items() if name not in _PAGING]
    path = request.scope["raw_path"].partition(b"?")[0].decode("ascii")
    after = f"{path}?{urlencode([*rest, ('offset', end), ('limit', limit)])}"
    return {
        "items": [to_json(one) for one in items[offset:end]],
        "total": len(items),
        "next": after if end < len(items) else None,
    }


def _number(request: Request, name: str, default: int) -> int:
    given = request.query_params.get(name, str(default))
    if (number := whole_number(given)) is None:
        raise InvalidInputError(f"{name} {given[:20]!r} is not a number", hint="use 0 or more")
    return number


def whole_number(text: str) -> int | None:
    """A number that a request has as text; None if it is not one from 0 to 999,999,999."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None
