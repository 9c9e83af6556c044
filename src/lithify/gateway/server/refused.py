"""What a request that fails is answered with."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from lithify.errors.defects import as_lithify_error
from lithify.gateway.access.audit import note
from lithify.gateway.operations.operation import Operation
from lithify.gateway.server.problems import problem_of
from lithify.gateway.server.rights import without_names


def refused(request: Request, error: Exception, operation: Operation, topic: str | None) -> Response:
    """The problem, whose code the audit log has as well; without names that the caller may not see."""
    told = without_names(as_lithify_error(error, operation.name), request.scope)
    note(request.scope, code=told.code)
    return problem_of(told, topic=topic)
