"""The Python API of standing jobs: command lines that gateways run all the time, or again and again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lithify.api.wiring.shared_place import shared_place
from lithify.errors import RefusedError
from lithify.model.jobs.command_lines import check_line
from lithify.model.jobs.definition import StandingJob, StoredJob, checked_job
from lithify.model.names import in_order, nearest
from lithify.ports.store import Warehouse
from lithify.reports.jobs import StandingJobInfo
from lithify.reports.report import Reports

if TYPE_CHECKING:
    from lithify.coordination.leases.gateways.jobs_sql import SqlStandingJobs


@dataclass(frozen=True, slots=True)
class LakeStandingJobs:
    """The standing jobs of one lake. All methods raise `RefusedError`, `WarehouseError` or `CoordinationError`."""

    warehouse: Warehouse
    coordination_url: str | None = None

    def add(
        self, name: str, arguments: Sequence[str], *, every_ms: int | None = None, paused: bool = False
    ) -> StandingJobInfo:
        """Defines a job, which a gateway begins within seconds.

        `arguments` are the words of a command line after `lithify`. Its verb is `kafka ingest`, `pulsar ingest`,
        `kafka publish`, `hydrate`, `kafka hydrate`, `replica run` or `pulsar compact`. A command that ends by itself
        needs `every_ms`, the time between the end of a run and the next run. Options are checked only when the
        command runs. Raises `InvalidInputError` or `InvalidNameError`.
        """
        check_line(arguments, every_ms)
        job = StandingJob(checked_job(name), tuple(arguments), every_ms, paused, self._now_ms())
        if not self._jobs(makes=True).add(job):
            raise RefusedError(
                f"there is a standing job {name} already", hint="choose another name, or remove that job first"
            )
        return self._info(StoredJob(job, None))

    def list(self) -> Reports[StandingJobInfo]:
        """All jobs by name, with what gateways have noted of them."""
        jobs = sorted(self._jobs().jobs(), key=lambda stored: in_order(stored.job.name))
        return Reports(map(self._info, jobs))

    def pause(self, name: str) -> StandingJobInfo:
        """Ends its process, and begins none until it is resumed."""
        return self._paused(name, paused=True)

    def resume(self, name: str) -> StandingJobInfo:
        """Undoes `pause`."""
        return self._paused(name, paused=False)

    def remove(self, name: str) -> StandingJobInfo:
        """Ends its process, and forgets it; returns what it was."""
        jobs = self._jobs()
        stored = _known(jobs, name)
        if not jobs.remove(name):
            raise _unknown(jobs, name)
        return self._info(stored)

    def _paused(self, name: str, *, paused: bool) -> StandingJobInfo:
        jobs = self._jobs()
        stored = _known(jobs, name)
        if not jobs.pause(name, paused=paused):
            raise _unknown(jobs, name)
        return self._info(replace(stored, job=replace(stored.job, paused=paused)))

    def _jobs(self, *, makes: bool = False) -> SqlStandingJobs:
        from lithify.coordination.leases.gateways.jobs_sql import open_standing_jobs

        return open_standing_jobs(*shared_place(self.warehouse, self.coordination_url, makes=makes))

    def _info(self, stored: StoredJob) -> StandingJobInfo:
        return StandingJobInfo.of(stored, self._now_ms())

    def _now_ms(self) -> int:
        return self.warehouse.clock.now_ms()


def _known(jobs: SqlStandingJobs, name: str) -> StoredJob:
    found = next((stored for stored in jobs.jobs() if stored.job.name == name), None)
    if found is None:
        raise _unknown(jobs, name)
    return found


def _unknown(jobs: SqlStandingJobs, name: str) -> RefusedError:
    known = [stored.job.name for stored in jobs.jobs()]
    there = f"the jobs are {', '.join(known[:10])}" if known else "there are none yet"
    return RefusedError(f"there is no standing job {name}", hint=nearest(name, known, there))
