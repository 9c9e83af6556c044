"""`GET /api/v1/topics/{topic}/records` and `GET /api/v1/topics/{topic}/table`.

records            all up to the end of the version, as they are read
records?max=100    a page: `Link: <...>; rel="next"` names the next one, `Lithify-Cursor` the place where it begins
table              the latest record of every live key; `key=` of one
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from urllib.parse import urlencode

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from lithify.api.lake import Lake
from lithify.api.topic import Topic
from lithify.columnar.segment.schema import schema_of
from lithify.errors import RefusedError
from lithify.gateway.access.audit import note
from lithify.gateway.access.middleware import READS_AT_ONCE
from lithify.gateway.operations.operation import Operation
from lithify.gateway.operations.records import READ, TABLE
from lithify.gateway.server.arguments import of_query
from lithify.gateway.server.paths import name_of
from lithify.gateway.server.records.arguments import ReadQuery, TableQuery, point_of
from lithify.gateway.server.records.media import Form, encoded, form_of
from lithify.gateway.server.records.reading import Page, TopicReading
from lithify.gateway.server.records.streamed import Pieces, RecordsResponse
from lithify.gateway.server.refused import refused
from lithify.gateway.server.rights import check_rights


@dataclass(frozen=True, slots=True)
class ReadRoutes:
    """Reads of one gateway, with threads of their own."""

    lake: Lake
    threads: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(READS_AT_ONCE, "read"))

    def routes(self) -> list[Route]:
        routes = [
            Route(one.path, answer, methods=[one.method], name=one.name)
            for one, answer in ((READ, self.records), (TABLE, self.table))
        ]
        for route in routes:  # HEAD would read all of it
            route.methods = {"GET"}
        return routes

    async def records(self, request: Request) -> Response:
        async def answer(topic: Topic) -> Response:
            query = ReadQuery(**of_query(ReadQuery, request.query_params))
            form = form_of(request.headers.get("accept", ""), topic.name, query.encodings)
            if query.max is None:
                _check_end_is_seen(request)
                return await self._streamed(form, lambda: _all_records(topic, query, form))
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self.threads, _page, topic, query, form, request)

        return await _answered(request, READ, self.lake, answer)

    async def table(self, request: Request) -> Response:
        async def answer(topic: Topic) -> Response:
            query = TableQuery(**of_query(TableQuery, request.query_params))
            _check_end_is_seen(request)
            form = form_of(request.headers.get("accept", ""), topic.name, query.encodings)
            return await self._streamed(form, lambda: _table(topic, query, form))

        return await _answered(request, TABLE, self.lake, answer)

    async def _streamed(self, form: Form, opened: Callable[[], Iterator[bytes]]) -> Response:
        pieces = Pieces(_opened(opened), self.threads)
        try:
            first = await pieces.first()
        except BaseException:
            pieces.close()
            raise
        return RecordsResponse(pieces, first, form)


def _check_end_is_seen(request: Request) -> None:
    """Raises `RefusedError` for HTTP/1.0, where the end of the connection is the end of the body.

    So records that a gateway was killed over, or whose token was revoked, would look like all of them.
    """
    if request.scope["http_version"] == "1.0":
        raise RefusedError(
            "the request is HTTP/1.0, by which nobody sees that a stream of records was cut",
            hint="send HTTP/1.1, from nginx with `proxy_http_version 1.1`, or read records in pages, with max",
        )


def _opened(opened: Callable[[], Iterator[bytes]]) -> Iterator[bytes]:
    """Opened by the thread that reads the first piece."""
    yield from opened()


def _all_records(topic: Topic, query: ReadQuery, form: Form) -> Iterator[bytes]:
    reading = TopicReading(topic, query)
    return encoded(form, schema_of(reading.state.settings), (part.table for part in reading.parts()))


def _table(topic: Topic, query: TableQuery, form: Form) -> Iterator[bytes]:
    if query.at is not None and query.version is not None:
        raise RefusedError("at selects the version itself and cannot be combined with version")
    at = None if query.at is None else point_of("at", query.at)
    batches = topic.table_batches(version=query.version, at=at, partition=query.partition, key=query.key_bytes())
    return encoded(form, schema_of(topic.state().settings), (batch.to_arrow() for batch in batches))


def _page(topic: Topic, query: ReadQuery, form: Form, request: Request) -> Response:
    reading = TopicReading(topic, query)
    page = reading.page(query.max or 0)
    body = b"".join(encoded(form, schema_of(reading.state.settings), iter(page.tables)))
    return Response(body, headers={"Cache-Control": "no-store", **_links(page, request)}, media_type=form.media)


def _links(page: Page, request: Request) -> dict[str, str]:
    if page.next is None:
        return {}
    cursor = page.next.text()
    rest = [(name, value) for name, value in request.query_params.multi_items() if name != "cursor"]
    path = request.scope["raw_path"].partition(b"?")[0].decode("ascii")
    link = {"Link": f'<{path}?{urlencode([*rest, ("cursor", cursor)])}>; rel="next"'} if page.is_full else {}
    return {"Lithify-Cursor": cursor, **link}


async def _answered(
    request: Request, operation: Operation, lake: Lake, answer: Callable[[Topic], Awaitable[Response]]
) -> Response:
    """The answer for the topic of the path, or the problem."""
    name = name_of(request.path_params["topic"])
    note(request.scope, what=operation.name, topic=name)
    try:
        check_rights(request.scope, operation, {"topic": name})
        return await answer(await run_in_threadpool(lake.topic, name))
    except Exception as error:
        return refused(request, error, operation, name)
