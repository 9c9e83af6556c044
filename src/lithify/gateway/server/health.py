"""What monitors ask: whether the gateway lives, whether it can serve, and its metrics.

/healthz    200 while the process answers
/readyz     200 once the catalog was read, and as long as it can be; else 503
/metrics    in the format of Prometheus; needs the role `look` for all streams
"""

from __future__ import annotations

from collections.abc import Callable

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from lithify.gateway.access.callers import require
from lithify.gateway.server.live.watched import Watched
from lithify.model.access.roles import Role

Render = Callable[[str], tuple[bytes, str]]
"""By the header `Accept`: the metrics, and their type."""


def no_metrics(_accept: str) -> tuple[bytes, str]:
    return b"", "text/plain"


def health_routes(watched: Watched, metrics: Render) -> list[Route]:
    async def ready(_request: Request) -> Response:
        if watched.is_due and not watched.is_looking:  # else it needs no thread, of which there may be none
            await run_in_threadpool(watched.try_look)
        if watched.has_looked and watched.error is None:
            return JSONResponse({"status": "ok"})
        why = "the catalog cannot be read" if watched.has_looked else "all topics are being read for the first time"
        return JSONResponse({"status": why}, 503, {"Retry-After": "5"})

    def measured(request: Request) -> Response:
        require(request.scope, Role.LOOK)
        content, kind = metrics(request.headers.get("accept", ""))
        return Response(content, headers={"Content-Type": kind})

    return [Route("/healthz", _healthy), Route("/readyz", ready), Route("/metrics", measured)]


async def _healthy(_request: Request) -> Response:
    return JSONResponse({"status": "ok"})
