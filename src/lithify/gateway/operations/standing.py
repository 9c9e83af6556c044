"""Standing jobs: command lines that gateways run."""

from __future__ import annotations

from lithify.gateway.operations.operation import Operation, Target
from lithify.model.access.roles import Role

_JOBS = Target.STANDING_JOBS
_INFO = "jobs:StandingJobInfo"


def _of_one(name: str, http: str) -> Operation:
    return Operation(f"{name}_standing_job", _JOBS, name, http, Role.ADMIN, _INFO)


OPERATIONS = (
    Operation("list_standing_jobs", _JOBS, "list", "GET /standing-jobs", Role.ADMIN, _INFO, many=True),
    Operation(
        "add_standing_job",
        _JOBS,
        "add",
        "POST /standing-jobs",
        Role.ADMIN,
        _INFO,
        ("name", "arguments", "every_ms", "paused"),
    ),
    _of_one("pause", "POST /standing-jobs/{name}/pause"),
    _of_one("resume", "POST /standing-jobs/{name}/resume"),
    _of_one("remove", "DELETE /standing-jobs/{name}"),
)
