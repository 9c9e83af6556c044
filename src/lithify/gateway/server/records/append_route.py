"""`POST /api/v1/topics/{topic}/records`: one atomic batch, answered once it has landed (C1, C75).

A client that has gone gets no answer; once its body has come whole, its records may land.
"""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from lithify.api.lake import Lake
from lithify.errors import InvalidRecordError, RefusedError
from lithify.gateway.access.audit import note
from lithify.gateway.access.middleware import APPENDS_AT_ONCE
from lithify.gateway.appends.appends import Appends
from lithify.gateway.appends.keys import AppendKey
from lithify.gateway.operations.records import APPEND, ARROW, LINES
from lithify.gateway.server.arguments import of_query
from lithify.gateway.server.paths import name_of
from lithify.gateway.server.problems import UnsupportedMediaError
from lithify.gateway.server.records.arguments import AppendQuery
from lithify.gateway.server.records.arrow_body import table_of_stream
from lithify.gateway.server.records.bodies import Bodies
from lithify.gateway.server.records.line_body import table_of_lines
from lithify.gateway.server.records.media import LINES_TOO
from lithify.gateway.server.refused import refused
from lithify.gateway.server.rights import check_rights
from lithify.service.write.append import AppendResult


@dataclass(frozen=True, slots=True)
class _Asked:
    """An append as it was requested."""

    topic: str
    media: str
    query: AppendQuery
    key: str | None


@dataclass(frozen=True, slots=True)
class AppendRoute:
    """Appends of one gateway, with threads of their own: each waits for its commit."""

    lake: Lake
    appends: Appends
    bodies: Bodies = field(default_factory=Bodies)
    threads: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(APPENDS_AT_ONCE, "append"))

    def route(self) -> Route:
        return Route(APPEND.path, self.answer, methods=[APPEND.method], name=APPEND.name)

    async def answer(self, request: Request) -> Response:
        topic = name_of(request.path_params["topic"])
        note(request.scope, what=APPEND.name, topic=topic)
        try:
            check_rights(request.scope, APPEND, {"topic": topic})
            asked = _asked(request, topic)
        except Exception as error:
            if "expect" not in request.headers:
                await _discard(request)  # a client that is sending reads no answer before it has sent
            return refused(request, error, APPEND, topic)
        try:
            async with self.bodies.body(request) as body:
                loop = asyncio.get_running_loop()
                result = await loop.run_in_executor(self.threads, self._appended, asked, body)
        except ClientDisconnect:
            return Response(status_code=400)  # nobody reads it
        except Exception as error:
            return refused(request, error, APPEND, topic)
        note(request.scope, version=result.version)
        return JSONResponse(result.to_json())

    def _appended(self, asked: _Asked, body: bytes) -> AppendResult:
        """Parses and appends, on a thread of the pool."""
        topic, ends, query = self.lake.topic(asked.topic), asked.query.ends(), asked.query
        key = None
        if asked.key is not None:
            key = AppendKey.of(asked.key, body, asked.media.encode(), json.dumps(_decisive(query)).encode())
        table, numbers = _parsed(asked, body)
        try:
            if query.keep_offsets:
                return topic.append(table, keep_offsets=True, expected_end=ends)
            return self.appends.append(topic.topic_name, table, key, ends)
        except InvalidRecordError as error:
            if error.index < 0:
                raise
            place = f"row {error.index}" if numbers is None else f"line {numbers[error.index]}"
            told = error.at(f"{place} of the body", hint="nothing was appended")
            told.index, told.reason = error.index, error.reason
            raise told from None


def _parsed(asked: _Asked, body: bytes) -> tuple[Any, list[int] | None]:
    if asked.media == ARROW:
        return table_of_stream(body), None
    return table_of_lines(body, asked.query.encodings)


def _decisive(query: AppendQuery) -> list[Any]:
    """What of the query decides what is appended: with another one, it is another request."""
    encodings = query.encodings
    return [encodings.key, encodings.value, encodings.headers, sorted(query.expected_end)]


def _asked(request: Request, topic: str) -> _Asked:
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media not in (ARROW, LINES, *LINES_TOO):
        raise UnsupportedMediaError(
            f"the body is of type {media[:60] or '(none)'}", hint=f"use Content-Type: {LINES}, or {ARROW}"
        )
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise UnsupportedMediaError("the body is compressed", hint="send it without a Content-Encoding")
    query, key = AppendQuery(**of_query(AppendQuery, request.query_params)), request.headers.get("idempotency-key")
    if query.keep_offsets and key is not None:
        raise RefusedError(
            "an append that keeps its offsets takes no Idempotency-Key",
            hint="omit it: an append that is repeated is refused, as its offsets are below the log end by then",
        )
    return _Asked(topic, ARROW if media == ARROW else LINES, query, key)


async def _discard(request: Request) -> None:
    try:
        async for _ in request.stream():
            pass
    except ClientDisconnect:
        return
