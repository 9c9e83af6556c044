"""The jobs of a gateway over HTTP: each is seen by callers that may do what it does."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from lithify.gateway.access.audit import note
from lithify.gateway.access.callers import Caller, caller_of
from lithify.gateway.operations.table import BY_NAME
from lithify.gateway.server.jobs.following import events_of
from lithify.gateway.server.jobs.jobs import Job, Jobs
from lithify.gateway.server.problems import UnknownPathError
from lithify.gateway.server.rights import topic_stream
from lithify.gateway.server.routes import page_of, whole_number

NO_JOB = "there is no such job here: it has ended long ago, or another gateway ran it"
JOBS = "/api/v1/jobs"


def job_routes(jobs: Jobs) -> list[Route]:
    """The list of jobs, one, its events, and its end."""

    def job_of(request: Request) -> Job:
        job = jobs.job(request.path_params["job"])
        if job is None or not _may_see(caller_of(request.scope), job):
            raise UnknownPathError(NO_JOB, hint=f"GET {JOBS} lists those that there are")
        return job

    def all_jobs(request: Request) -> Response:
        caller = caller_of(request.scope)
        return JSONResponse(page_of([job for job in jobs.all() if _may_see(caller, job)], request))

    async def one(request: Request) -> Response:
        return JSONResponse(job_of(request).to_json())

    async def follow(request: Request) -> Response:
        return events_of(job_of(request), {}, whole_number(request.headers.get("last-event-id", "")) or 0)

    async def cancel(request: Request) -> Response:
        job = job_of(request)
        note(request.scope, what="cancel", topic=job.topic, job=job.id)
        jobs.cancel(job)
        return JSONResponse(job.to_json(), 202)

    return [
        Route(JOBS, all_jobs),
        Route(f"{JOBS}/{{job}}", one),
        Route(f"{JOBS}/{{job}}/events", follow),
        Route(f"{JOBS}/{{job}}", cancel, methods=["DELETE"]),
    ]


def _may_see(caller: Caller, job: Job) -> bool:
    return caller.may(BY_NAME[job.operation].role, topic_stream(job.topic))
