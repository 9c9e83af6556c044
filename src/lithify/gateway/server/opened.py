"""A gateway of a lake, made but not running yet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lithify.api.lake import Lake
from lithify.api.wiring import FAIR, tasks_at_once
from lithify.api.wiring.spark_choice import SparkChoice
from lithify.gateway.server.app import Gateway, application
from lithify.gateway.server.daemon import GatewayDaemon
from lithify.gateway.server.jobs import Jobs
from lithify.gateway.server.live.events import Events
from lithify.gateway.server.own_pages import is_loopback
from lithify.gateway.server.serving import Serving, listen
from lithify.gateway.standing.opened import open_jobs
from lithify.gateway.standing.options import LEASE_MS, JobListener, StandingOptions
from lithify.reports.events import CleanerEvent

JOBS_AT_ONCE = 4
"""Beside the cleaner's rounds: they share Spark's slots."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where it listens, and with which certificate."""

    host: str
    port: int
    option: str = ""
    """What chose it, for an error."""
    cert: str | None = None
    key: str | None = None


@dataclass(frozen=True, slots=True)
class StandingGiven:
    """What standing jobs need of the command line: where the lake is, as it names it, and what gets their events."""

    place: tuple[str, ...] = ()
    tell: JobListener = lambda _event: None


def open_gateway(
    lake: Lake, name: str, address: Address, standing: StandingGiven, **cleaner: Any
) -> tuple[GatewayDaemon, str]:
    """The daemon, and where it listens; `cleaner` are the arguments of `Lake.cleaner`.

    Raises `UnusableEnvironmentError` for an address in use, and what `Lake.cleaner` raises.
    """
    listening = listen(address.host, address.port, option=address.option)
    events = Events()
    tell = cleaner.pop("tell", lambda _event: None)

    def told(event: CleanerEvent) -> None:
        events.told(event)
        tell(event)

    try:
        loop = lake.cleaner(cleaner_id=name, tell=told, **cleaner)
        options = StandingOptions(name, standing.place, lease_ms=cleaner.get("lease_ms", LEASE_MS))
        runs = open_jobs(lake, options, loop.stop, cleaner.get("coordination_url"), standing.tell)
    except BaseException:
        listening.taken.close()
        raise
    loop.reporter.progress_listener = events.proceeded
    jobs = Jobs(lake.warehouse.clock, JOBS_AT_ONCE, events.job)
    app = application(Gateway(name, lake, jobs, events, loopback=is_loopback(address.host)))
    serving = Serving(app, listening, cert=address.cert, key=address.key)
    choice = SparkChoice(conf={**FAIR, **(cleaner.get("spark_conf") or {})})

    def warm() -> None:
        from lithify.spark.session.warm import warm

        warm(choice.factory(), tasks_at_once())

    return GatewayDaemon(loop, serving, jobs, runs, warm), listening.where
