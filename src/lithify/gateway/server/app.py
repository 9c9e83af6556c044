"""The application of a gateway."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from lithify.api.lake import Lake
from lithify.errors import LithifyError
from lithify.gateway.server.following import events_of
from lithify.gateway.server.jobs import Job, Jobs
from lithify.gateway.server.live.events import Events
from lithify.gateway.server.live.page import load_page
from lithify.gateway.server.live.stream import Live
from lithify.gateway.server.live.watched import Watched, WatchedLake
from lithify.gateway.server.openapi import description
from lithify.gateway.server.own_pages import OwnPages
from lithify.gateway.server.paths import EncodedSlashes
from lithify.gateway.server.problems import problem, problem_of
from lithify.gateway.server.routes import page_of, routes, whole_number

NO_JOB = "there is no such job here: it has ended long ago, or another gateway ran it"


@dataclass(frozen=True, slots=True)
class Gateway:
    """What the application serves."""

    name: str
    lake: Lake
    jobs: Jobs
    events: Events = field(default_factory=Events)
    loopback: bool = True
    """Whether it listens on this machine alone."""


def application(gateway: Gateway) -> ASGIApp:
    """The ASGI application."""
    watched, page = Watched(gateway.lake), load_page()
    live = Live(gateway.name, gateway.lake.warehouse.clock.new_id(), page.version, gateway.events, watched)
    app = Starlette(
        routes=[
            *page.routes(),
            Route("/api/v1/events", live.answer),
            *routes(WatchedLake(gateway.lake.warehouse, watched), gateway.jobs),
            *_job_routes(gateway.jobs),
            Route("/openapi.json", _openapi),
            Route("/healthz", _healthy),
        ],
        exception_handlers={HTTPException: _http_problem, LithifyError: _error_problem},
    )
    app.router.redirect_slashes = False
    return OwnPages(EncodedSlashes(app), loopback=gateway.loopback)


async def _http_problem(_request: Request, error: Exception) -> Response:
    """No such path, or another method."""
    assert isinstance(error, HTTPException)
    hint = "GET /openapi.json describes what there is"
    return problem(error.status_code, error.detail, hint, headers=error.headers)


async def _error_problem(_request: Request, error: Exception) -> Response:
    """An error of a request that is not of an operation."""
    assert isinstance(error, LithifyError)
    return problem_of(error)


def _openapi(_request: Request) -> Response:
    return JSONResponse(_description())


@lru_cache(1)
def _description() -> dict[str, Any]:
    return description()


async def _healthy(_request: Request) -> Response:
    return JSONResponse({"status": "ok"})


def _job_routes(jobs: Jobs) -> list[Route]:
    def job_of(request: Request) -> Job:
        job = jobs.job(request.path_params["job"])
        if job is None:
            raise HTTPException(404, NO_JOB)
        return job

    def all_jobs(request: Request) -> Response:
        return JSONResponse(page_of(jobs.all(), request))

    async def one(request: Request) -> Response:
        return JSONResponse(job_of(request).to_json())

    async def follow(request: Request) -> Response:
        return events_of(job_of(request), {}, whole_number(request.headers.get("last-event-id", "")) or 0)

    async def cancel(request: Request) -> Response:
        job = job_of(request)
        jobs.cancel(job)
        return JSONResponse(job.to_json(), 202)

    return [
        Route("/api/v1/jobs", all_jobs),
        Route("/api/v1/jobs/{job}", one),
        Route("/api/v1/jobs/{job}/events", follow),
        Route("/api/v1/jobs/{job}", cancel, methods=["DELETE"]),
    ]
