"""Calls of the Python API as requests, by the table of operations.

    call(truncate, {"topic": "orders"}, 0, 900)  ─►  POST .../topics/orders/truncate {"partition": 0, "to": 900}

Arguments without a value are left out: their defaults are the method's. Those that the table does not accept, such as a
Spark session, could only be taken by the machine of the gateway, and are refused.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from lithify.errors import RefusedError
from lithify.gateway.client.answers import ToldError, ToldPage, done_of, error_of, report_of, told_as
from lithify.gateway.client.connection import Connection, Request
from lithify.gateway.operations.operation import Operation, Target
from lithify.model.cursor import AtTime
from lithify.model.message import MessageId
from lithify.reports.report import Reports

Listener = Callable[..., None]

ITEMS = 10_000
"""Of a list, in one request."""
_LISTENERS = {"progress": "progress", "notes": "note", "tell": "wait"}
"""Arguments that are told of the work meanwhile, and the events with which a job tells it."""
_FAILED = "failed"
DIRECTLY = "run it where the warehouse can be reached, with --warehouse or --catalog instead of --gateway"


@dataclass(frozen=True, slots=True)
class Gateway:
    """Calls operations."""

    connection: Connection

    def call(self, operation: Operation, place: Mapping[str, str], *args: Any, **more: Any) -> Any:
        """What the method of the Python API returns; raises what it raises, and what the connection raises."""
        given = _by_name(operation, place, args, more)
        listeners = {_LISTENERS[name]: given.pop(name) for name in _LISTENERS if name in given}
        failed = given.pop(_FAILED, None)
        _check_accepted(operation, place, given)
        path = path_of(operation, {**place, **{name: str(given.pop(name)) for name in _in_path(operation, place)}})
        given = {name: plain(value) for name, value in given.items() if value is not None}
        if operation.is_job:
            return self._done(operation, self._request(operation, path, given, place), listeners)
        if operation.many:
            return self._listed(operation, path, given, failed)
        told = self._told(self._request(operation, path, given, place))
        return self._result(operation, told)

    def _request(self, operation: Operation, path: str, given: Mapping[str, Any], place: Mapping[str, str]) -> Request:
        if operation.changes:
            return Request(operation.method, path, json.dumps(given).encode(), _look(operation, place))
        return Request(operation.method, path + query(given))

    def _told(self, request: Request) -> Any:
        return done_of(request, self.connection.ask(request), self._url)

    def _listed(self, operation: Operation, path: str, given: Mapping[str, Any], failed: Listener | None) -> Any:
        """All pages of a list; `failed` gets the items that could not be read, as their names and errors."""
        items: list[Any] = []
        errors: dict[str, ToldError] = {}
        has_more = True
        while has_more:
            told = self._told(Request("GET", path + query({**given, "offset": len(items), "limit": ITEMS})))
            page = told_as(ToldPage, told, self._url)
            items += page.items
            errors |= {str(one.topic): one for one in page.failed}
            has_more = page.next is not None and bool(page.items)
        for name, error in errors.items():
            if failed is None:
                raise error_of(error)
            failed(name, error_of(error))
        return self._result(operation, {"items": items})

    def _done(self, operation: Operation, request: Request, listeners: Mapping[str, Listener]) -> Any:
        """The report of a job that has ended."""
        from lithify.gateway.client.jobs import Job

        job = Job(self.connection, request, listeners, commits=operation.call == "compact").ended()
        report = None if job.report is None else self._result(operation, job.report)
        if job.error is not None:
            if report is not None:  # of a round: it says why each log failed
                report.unless_all_failed()
            raise error_of(job.error)
        return report

    def _result(self, operation: Operation, told: Any) -> Any:
        kind = operation.report_class()
        is_list = isinstance(told, dict) and told.keys() == {"items"}
        if kind is None:
            return tuple(told["items"]) if is_list else told
        if is_list:
            return Reports(report_of(kind, one, self._url) for one in told["items"])
        return report_of(kind, told, self._url)

    @property
    def _url(self) -> str:
        return self.connection.address.url


def refusal(what: str) -> RefusedError:
    """What is said of what a gateway cannot do."""
    return RefusedError(f"{what} is not available through a gateway", hint=DIRECTLY)


def _by_name(
    operation: Operation, place: Mapping[str, str], args: Sequence[Any], more: Mapping[str, Any]
) -> dict[str, Any]:
    """All arguments by name: the table has them in the order of the method's signature."""
    names = dict.fromkeys((*_in_path(operation, place), *operation.accepts))
    if len(args) > len(names):
        raise refusal(f"an argument of `{operation.call}`")
    return {**dict(zip(names, args, strict=False)), **more}


def _in_path(operation: Operation, place: Mapping[str, str]) -> list[str]:
    """Arguments that the path has, beside the names of the object."""
    names = (part[1:-1] for part in operation.path.split("/") if part.startswith("{"))
    return [name for name in names if name not in place]


def path_of(operation: Operation, names: Mapping[str, str]) -> str:
    parts = (quote(names[part[1:-1]], safe="") if part.startswith("{") else part for part in operation.path.split("/"))
    return "/".join(parts)


def _check_accepted(operation: Operation, place: Mapping[str, str], given: dict[str, Any]) -> None:
    """Drops arguments without a value that the table does not accept. Raises `RefusedError` for those with one."""
    for name in given.keys() - {*operation.accepts, *_in_path(operation, place)}:
        if given.pop(name):
            raise refusal(f"--{name.replace('_', '-')}")


def plain(value: Any) -> Any:
    """An argument as JSON has it."""
    match value:
        case AtTime(epoch_ms):
            return f"@{epoch_ms}"
        case MessageId():
            return str(value)
        case bytes():
            return b64encode(value).decode()
        case Mapping():
            return dict(value)
        case tuple() | list():
            return list(value)
        case _:
            return value


def query(given: Mapping[str, Any]) -> str:
    pairs = {name: str(value).lower() if isinstance(value, bool) else value for name, value in given.items()}
    return f"?{urlencode(pairs, doseq=True)}" if pairs else ""


def _look(operation: Operation, place: Mapping[str, str]) -> str:
    """How to find out what a request has done."""
    if operation.of is Target.STANDING_JOBS:
        return "`lithify gateway job list` shows what was done"
    match place:
        case {"topic": name}:
            return f"`lithify history {name}` and `lithify status {name}` show what was done"
        case {"stream": name}:
            return f"`lithify stream info {name}` shows what was done"
        case {"group": name}:
            return f"`lithify group describe {name}` shows what was done"
        case _:
            return "`lithify topic list` and `lithify status` show what was done"
