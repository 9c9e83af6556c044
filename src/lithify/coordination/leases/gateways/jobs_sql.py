"""Standing jobs in an SQL database: the catalog's, or one that the gateways name.

    lithify_standing_jobs         scope, name (primary key)   arguments   every_ms   ...   gateway   running   since_ms
    lithify_standing_job_leases   name (primary key)          owner       beats

The first job creates the table: who only reads needs no right to create any. What is noted of a job is stored only in
the row of that very job. So a gateway that has not yet seen its removal brings nothing back, and writes nothing into a
later job of the same name.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from functools import cached_property
from typing import Any

from sqlalchemy import Connection, Engine, and_, delete, func, select, update

from lithify.coordination.leases.lease_transactions import Transactions, has_table, make_table, required_database
from lithify.coordination.leases.sql_coordination import SqlCoordination
from lithify.coordination.leases.stored_rows import checked, unreadable
from lithify.coordination.leases.tables.jobs import JOB_LEASES, JOBS
from lithify.errors import RefusedError
from lithify.model.formats.warehouse_scope import WarehouseScope
from lithify.model.jobs.definition import JobState, StandingJob, StoredJob
from lithify.ports.leases import Coordination

MOST_JOBS = 500
"""Of one warehouse."""


class SqlStandingJobs:
    """The standing jobs of one warehouse. Every method raises `CoordinationError` when the database cannot be used."""

    def __init__(self, transactions: Transactions, scope: str) -> None:
        self._transactions, self._scope = transactions, scope

    @property
    def scope(self) -> str:
        """The warehouse, as names of leases have it."""
        return self._scope

    @cached_property
    def leases(self) -> Coordination:
        """The leases of gateways, of all warehouses that share the database."""
        return SqlCoordination(self._transactions, table=JOB_LEASES)

    def make_leases(self) -> None:
        """Makes the table of leases if there is none, as in a database that was recreated."""
        self._transactions.done(lambda connection: make_table(connection, JOB_LEASES))

    def jobs(self) -> tuple[StoredJob, ...]:
        """All jobs by name. Creates nothing."""
        wanted = select(JOBS).where(JOBS.c.scope == self._scope).order_by(JOBS.c.name)

        def read(connection: Connection) -> Sequence[Any]:
            return connection.execute(wanted).all() if has_table(connection, JOBS) else ()

        return tuple(map(_stored, checked(self._transactions.done(read), JOBS)))

    def add(self, job: StandingJob) -> bool:
        """Stores a new job; False if its name is taken. Raises `RefusedError` if there are too many."""
        row = _row(job) | {"scope": self._scope}
        insert = self._transactions.insert_into(JOBS).values(row).on_conflict_do_nothing()
        of_scope = select(func.count()).select_from(JOBS).where(JOBS.c.scope == self._scope)
        columns = [JOBS.c[name] for name in row]

        def add(connection: Connection) -> bool:
            make_table(connection, JOBS)
            connection.execute(insert)
            if connection.execute(of_scope).scalar_one() > MOST_JOBS:
                raise RefusedError(f"there are {MOST_JOBS} standing jobs already", hint="remove one first")
            # Compared, not counted: a transaction that is done twice finds its own row.
            stored = connection.execute(select(*columns).where(self._named(job.name))).one()
            return dict(stored._mapping) == row

        return self._transactions.done(add)

    def pause(self, name: str, *, paused: bool) -> bool:
        """Pauses or resumes a job; False if there is none."""

        def pause(connection: Connection) -> bool:
            if not has_table(connection, JOBS):
                return False
            return connection.execute(update(JOBS).where(self._named(name)).values(paused=paused)).rowcount > 0

        return self._transactions.done(pause)

    def remove(self, name: str) -> bool:
        """Forgets a job and what is noted of it; False if there is none."""

        found = False

        def remove(connection: Connection) -> bool:
            nonlocal found  # by the first of two, if its commit was done and its answer lost
            if has_table(connection, JOBS):
                found |= connection.execute(delete(JOBS).where(self._named(name))).rowcount > 0
            return found

        return self._transactions.done(remove)

    def note(self, states: Sequence[tuple[StandingJob, JobState]]) -> None:
        """Replaces what is noted of these jobs, in one transaction; not of those that are removed."""
        ordered = sorted(states, key=lambda one: one[0].name)

        def note(connection: Connection) -> None:
            for job, state in ordered:
                same = and_(self._named(job.name), JOBS.c.created_ms == job.created_ms)
                connection.execute(update(JOBS).where(same).values(asdict(state)))

        if ordered:
            with self._transactions.many_rows:
                self._transactions.done(note)

    def _named(self, name: str) -> Any:
        return and_(JOBS.c.scope == self._scope, JOBS.c.name == name)


def open_standing_jobs(url: str | None, catalogs: Engine | None, scope: WarehouseScope) -> SqlStandingJobs:
    """The standing jobs of a warehouse, in the database at `url`, else in the catalog's own; connects to none yet.

    Raises `RefusedError` if there is no database that processes share, `CoordinationError` for an invalid URL.
    """
    need = "standing jobs need an SQL database that gateways share"
    return SqlStandingJobs(required_database(url, catalogs, scope.where, need), scope.name)


def _row(job: StandingJob) -> dict[str, Any]:
    return asdict(job) | {"arguments": json.dumps(job.arguments)}


def _stored(row: Any) -> StoredJob:
    given = dict(row._mapping)
    try:
        arguments = json.loads(row.arguments)
    except (ValueError, RecursionError):
        arguments = None
    if not isinstance(arguments, list) or not all(isinstance(word, str) for word in arguments):
        raise unreadable(JOBS, given, JOBS.c.arguments.name)
    job = StandingJob(row.name, tuple(arguments), row.every_ms, row.paused, row.created_ms)
    if row.gateway is None:
        return StoredJob(job, None)
    for column in ("running", "since_ms", "seen_ms", "failures"):
        if given[column] is None:
            raise unreadable(JOBS, given, column)
    state = {name: given[name] for name in JobState.__dataclass_fields__}
    return StoredJob(job, JobState(**state))
