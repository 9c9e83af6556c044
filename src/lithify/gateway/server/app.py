"""The application of a gateway."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Match, Route
from starlette.types import ASGIApp

from lithify.api.lake import Lake
from lithify.coordination.leases.gateways.appends_sql import SqlAppendNotes
from lithify.errors import LithifyError
from lithify.gateway.access.audit import note
from lithify.gateway.access.hosts import SHOWN
from lithify.gateway.appends.appends import Appends
from lithify.gateway.server.health import Render, health_routes, no_metrics
from lithify.gateway.server.jobs.job_routes import job_routes
from lithify.gateway.server.jobs.jobs import Jobs
from lithify.gateway.server.live.events import Events
from lithify.gateway.server.live.page import load_page
from lithify.gateway.server.live.stream import Live
from lithify.gateway.server.live.watched import Watched, WatchedLake
from lithify.gateway.server.openapi import description
from lithify.gateway.server.paths import EncodedSlashes
from lithify.gateway.server.problems import UnknownPathError, problem_of
from lithify.gateway.server.records.append_route import AppendRoute
from lithify.gateway.server.records.read_routes import ReadRoutes
from lithify.gateway.server.routes import routes
from lithify.service.look.assessed_topic import SharedTopics


@dataclass(frozen=True, slots=True)
class Gateway:
    """What the application serves."""

    name: str
    lake: Lake
    jobs: Jobs
    events: Events = field(default_factory=Events)
    coordination_url: str | None = None
    """Of the database that gateways share; None for the default of `Lake.cleaner`."""
    metrics: Render = no_metrics
    notes: SqlAppendNotes | None = None
    """Of appends with idempotency keys; without them keys are refused."""
    topics: SharedTopics | None = None
    """What its cleaner reads of topics, so that the application need not."""


def application(gateway: Gateway) -> ASGIApp:
    """The ASGI application, which is to be behind a guard: it says what a caller may do, and who that is."""
    watched, page = Watched(gateway.lake, gateway.events, gateway.topics), load_page()
    live = Live(gateway.name, gateway.lake.warehouse.clock.new_id(), page.version, gateway.events, watched)
    lake = WatchedLake(gateway.lake.warehouse, watched)
    app = Starlette(
        routes=[
            *page.routes(),
            Route("/api/v1/events", live.answer),
            AppendRoute(lake, Appends(lake.warehouse, gateway.notes)).route(),
            *ReadRoutes(lake).routes(),
            *routes(lake, gateway.jobs, gateway.coordination_url, watched.changed),
            *job_routes(gateway.jobs),
            *health_routes(watched, gateway.metrics),
            Route("/openapi.json", _openapi),
        ],
        exception_handlers={HTTPException: _http_problem, LithifyError: _error_problem},
    )
    app.router.redirect_slashes = False
    return EncodedSlashes(app)


async def _http_problem(request: Request, error: Exception) -> Response:
    """No such path, or another method."""
    assert isinstance(error, HTTPException)
    path = bytes(request.scope["raw_path"]).decode("latin-1")[:SHOWN]
    there = [route for route in request.app.routes if route.matches(request.scope)[0] is not Match.NONE]
    methods = ", ".join(sorted({method for route in there for method in route.methods}))
    why = f"{path} takes {methods}, not {request.method}" if there else f"there is nothing at {path}"
    told = UnknownPathError(why, hint="GET /openapi.json describes what there is; write / in a name as %2F")
    note(request.scope, code=told.code)
    return problem_of(told, error.status_code, {"Allow": methods} if there else None)


async def _error_problem(request: Request, error: Exception) -> Response:
    """An error of a request that is not of an operation."""
    assert isinstance(error, LithifyError)
    note(request.scope, code=error.code)
    return problem_of(error)


def _openapi(_request: Request) -> Response:
    return JSONResponse(_description())


@lru_cache(1)
def _description() -> dict[str, Any]:
    return description()
