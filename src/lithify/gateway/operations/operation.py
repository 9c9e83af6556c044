"""One thing that can be asked of a gateway: a method of the Python API, and how HTTP names it.

    Operation("compact", TOPIC, "compact", "POST /topics/{topic}/rounds", Role.TOPIC, "rounds.round:RoundReport", ...)

    POST /api/v1/topics/orders/rounds {"partitions": [0]}  ─►  lake.topic("orders").compact(partitions=[0])

The signature of the method gives names, types and defaults of the arguments, its docstring the description.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pkgutil import resolve_name
from typing import Any

from lithify.model.access.roles import Role

PREFIX = "/api/v1"


class Target(StrEnum):
    """Whose method it is, by the name of the class in the Python API."""

    LAKE = "lake:Lake"
    TOPIC = "topic:Topic"
    STREAM = "stream:Stream"
    GROUP = "groups:Group"
    REPLICAS = "replicas:LakeReplicas"
    STANDING_JOBS = "gateways.standing_jobs:LakeStandingJobs"


@dataclass(frozen=True, slots=True)
class Operation:
    """`accepts` are the arguments that may be given, by name; those in the path are given by it."""

    name: str
    of: Target
    call: str
    http: str
    """`METHOD /path`, below `/api/v1`."""
    role: Role
    report: str
    """`module:class` below `lithify.reports`; empty where nothing, or only names, are returned."""
    accepts: tuple[str, ...] = ()
    many: bool = False
    """Whether it returns a list, which is sent in pages."""
    is_job: bool = False
    """Whether it may take long: it runs as a job, whose events tell of its progress."""
    by_stream: bool = False
    """Whether a caller that has the role for some streams gets what is in them; else it needs it for all."""
    topics: tuple[str, ...] = ("topic",)
    """Arguments that name topics: the caller needs the role for their streams."""
    streams: tuple[str, ...] = ("stream",)
    """Arguments that name streams."""

    @property
    def method(self) -> str:
        return self.http.partition(" ")[0]

    @property
    def path(self) -> str:
        """As Starlette and OpenAPI write it."""
        return PREFIX + self.http.partition(" ")[2]

    @property
    def changes(self) -> bool:
        """Whether it may change something."""
        return self.method != "GET"

    def report_class(self) -> Any:
        """The class of what is returned; of a list, of its items. None without one."""
        return resolve_name(f"lithify.reports.{self.report}") if self.report else None

    def function(self) -> Any:
        """The method of the Python API. Imports it."""
        return resolve_name(f"lithify.api.{self.of}.{self.call}")
