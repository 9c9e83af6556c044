"""The standing jobs of a gateway, made but not running yet."""

from __future__ import annotations

from lithify.api.lake import Lake
from lithify.api.wiring import COORDINATION_VARIABLE
from lithify.api.wiring.shared_place import shared_place
from lithify.coordination.leases.gateways.jobs_sql import open_standing_jobs
from lithify.daemons.stop import Stop
from lithify.errors import RefusedError
from lithify.gateway.standing.options import JobListener, StandingOptions
from lithify.gateway.standing.standing_jobs import StandingJobs


def open_jobs(
    lake: Lake, options: StandingOptions, stop: Stop, coordination_url: str | None, listener: JobListener
) -> StandingJobs | None:
    """The jobs of a lake; None if its catalog is not a database and none is named: then no job can be stored.

    They end once `stop` is asked for. A database that is named is named to the processes too. Raises `WarehouseError`
    or `CoordinationError`.
    """
    try:
        jobs = open_standing_jobs(*shared_place(lake.warehouse, coordination_url, makes=True, creates=True))
    except RefusedError:
        return None
    if coordination_url is not None:
        options = options.with_variable(COORDINATION_VARIABLE, coordination_url)
    return StandingJobs(jobs, lake.warehouse.clock, options, stop, listener)
