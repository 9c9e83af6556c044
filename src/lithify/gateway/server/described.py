"""What no operation of the table describes: jobs, events, health, problems and tokens, for the OpenAPI description."""

from __future__ import annotations

from typing import Any

from lithify.gateway.operations.operation import Operation
from lithify.gateway.server.jobs.jobs import JobState

JOB, PROBLEM = ({"$ref": f"#/components/schemas/{name}"} for name in ("Job", "Problem"))
_TEXT, _NUMBER, _OBJECT = {"type": "string"}, {"type": "integer"}, {"type": "object"}
_FAILED = {"description": "A problem.", "content": {"application/problem+json": {"schema": PROBLEM}}}
_TIME = {"type": ["integer", "null"], "description": "epoch ms"}
COMPONENTS: dict[str, Any] = {
    "Job": {
        "type": "object",
        "properties": {
            "job": _TEXT,
            "operation": _TEXT,
            "topic": {"type": ["string", "null"]},
            "who": {"type": "string", "description": "The name of the token that began it."},
            "state": {"enum": [state.value for state in JobState]},
            "begun_ms": _TIME,
            "ended_ms": _TIME,
            "progress": {
                "type": ["object", "null"],
                "description": "Of a job that runs.",
                "properties": {"phase": _TEXT, "done": _NUMBER, "total": _NUMBER},
            },
            "report": {"type": ["object", "null"], "description": "What the operation returns, once it is done."},
            "error": {"type": ["object", "null"], "description": "As the command line prints errors with --json."},
        },
    },
    "Problem": {
        "type": "object",
        "description": "RFC 9457, with the code and hint of the command line.",
        "properties": {
            "type": _TEXT,
            "title": _TEXT,
            "status": _NUMBER,
            "detail": _TEXT,
            "code": _TEXT,
            "hint": {"type": ["string", "null"]},
            "exit_code": _NUMBER,
            "topic": _TEXT,
        },
    },
}
SECURITY = {"bearer": {"type": "http", "scheme": "bearer", "description": "`lithify token create` makes one."}}
PAGING = [
    {"name": name, "in": "query", "schema": {"type": "integer", "minimum": least}, "description": text}
    for name, least, text in (("offset", 0, "Of the first item."), ("limit", 1, "Items in one response."))
]


_SLASH = "Write %2F for a slash in it."


def path_parameters(path: str) -> list[dict[str, Any]]:
    """What is in braces in a path."""
    names = [name.strip("{}") for name in path.split("/") if name.startswith("{")]
    return [
        {"name": name, "in": "path", "required": True, "description": _SLASH, "schema": {"type": "string"}}
        for name in names
    ]


def needs_role(one: Operation) -> str:
    """What a token needs."""
    return f"Needs the role `{one.role}`."


def with_problems(paths: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The same, where each operation may be answered with a problem."""
    for methods in paths.values():
        for described in methods.values():
            described["responses"].setdefault("default", _FAILED)
    return paths


def other_paths() -> dict[str, dict[str, Any]]:
    """By path, what there is by method."""
    job = [{"name": "job", "in": "path", "required": True, "schema": _TEXT}]
    last = {"name": "Last-Event-ID", "in": "header", "schema": _NUMBER, "description": "Where to continue."}
    listed = {"type": "object", "properties": {"items": {"type": "array", "items": JOB}, "total": _NUMBER}}
    return {
        "/api/v1/jobs": {"get": _get("list_jobs", "The jobs that this gateway keeps.", listed, parameters=PAGING)},
        "/api/v1/jobs/{job}": {
            "get": _get("job", "A job, with its report or error once it has ended.", JOB, parameters=job),
            "delete": {
                "operationId": "cancel_job",
                "summary": "Cancels a job: it ends at its next step, and what it has committed remains.",
                "parameters": job,
                "responses": {"202": {"description": "The job.", "content": {"application/json": {"schema": JOB}}}},
            },
        },
        "/api/v1/jobs/{job}/events": {
            "get": _get(
                "job_events",
                "The events of a job as they come: progress, note, and end with the job.",
                _TEXT,
                "text/event-stream",
                parameters=[*job, last],
            )
        },
        "/api/v1/events": {
            "get": _get("events", "What happens in the gateway and its catalog.", _TEXT, "text/event-stream")
        },
        "/healthz": {"get": _open("healthy", "200 while the process answers.")},
        "/readyz": {"get": _open("ready", "200 once all topics were read, while the catalog can be; else 503.")},
        "/metrics": {"get": _get("metrics", "The metrics in the format of Prometheus.", _TEXT, "text/plain")},
    }


def _get(
    name: str, summary: str, schema: Any, kind: str = "application/json", *, parameters: list[Any] | None = None
) -> dict[str, Any]:
    answer = {"description": "Done.", "content": {kind: {"schema": schema}}}
    told = {"operationId": name, "summary": summary, "responses": {"200": answer}}
    return {**told, "parameters": parameters} if parameters else told


def _open(name: str, summary: str) -> dict[str, Any]:
    return {**_get(name, summary, _OBJECT), "security": []}
