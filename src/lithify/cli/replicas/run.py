"""`lithify replica run`: the daemon that makes the copies and keeps them up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from lithify.cli import parameters
from lithify.cli.cleaner.run import begun_daemon, run_to_end
from lithify.cli.invocation import Invocation, verb
from lithify.cli.metrics_options import MetricsAsked, in_turn, metrics_options
from lithify.cli.parameters import DurationType
from lithify.cli.terminal.drawing import accented
from lithify.ports.leases import LEAST_LEASE_MS

if TYPE_CHECKING:
    from lithify.daemons.replicas.daemon import ReplicaDaemon
    from lithify.reports.replicas.replica_events import ReplicaEvent


@verb("run")
@click.option("--once", is_flag=True, help="End once every replica has caught up or failed.")
@click.option(
    "--threads",
    type=click.IntRange(1, 64),
    metavar="N",
    default=4,
    show_default=True,
    help="Number of topics copied at once to each target.",
)
@click.option(
    "--interval",
    "interval_ms",
    type=DurationType(),
    default="2s",
    show_default=True,
    help="Time between checks for work.",
)
@click.option("--id", "daemon_id", metavar="ID", help="Unique id of this process. Default: host name and process id.")
@click.option(
    "--lease",
    "lease_ms",
    type=DurationType(LEAST_LEASE_MS),
    default="30s",
    show_default=True,
    help="How long a daemon may be silent before others take over its topics.",
)
@parameters.coordination_url
@metrics_options
def run(invocation: Invocation, once: bool, coordination_url: str | None, metrics: MetricsAsked, **given: Any) -> int:
    """Keep the replicas of the warehouse up to date, continuously.

    Every interval it checks what has changed, and copies it: files first, then one commit that makes the
    replica equal to its source. A topic that fails is retried after a delay that grows with each failure,
    up to two minutes. A target that does not answer does not delay the others. Changes by replica add,
    edit, pause and remove take effect within seconds.

    Any number of daemons may run on one warehouse: they share the topics through leases in a SQL database.
    SIGTERM ends it within 10 seconds, and nothing half copied is ever seen. With --once it ends with 1 if a
    replica failed.

    \b
    Examples:
      lithify replica run
      lithify replica run --once
      lithify replica run --catalog prod --json >> replicas.log
    """

    def tell(event: ReplicaEvent) -> None:
        invocation.tell(event, accented(event.line()), endless=not once)

    def tell_beginning(kind: str, facts: Mapping[str, Any]) -> None:
        from lithify.api.wiring import machine
        from lithify.api.wiring.system_clock import SystemClock
        from lithify.reports.replicas.replica_events import ReplicaEvent, ReplicaEventKind

        name = given["daemon_id"] or machine()
        tell(ReplicaEvent(ReplicaEventKind(kind), SystemClock().now_ms(), name, facts=facts))

    with metrics.served() as meter:
        from lithify.metrics.replica_metrics import ReplicaMetrics

        measured = ReplicaMetrics(meter)

        def begin() -> ReplicaDaemon:
            replicas = invocation.open_lake().replicas(coordination_url=coordination_url)
            return replicas.daemon(**given, tell=in_turn(measured.event, tell))

        daemon = begun_daemon(begin, tell_beginning, once=once)
        if daemon is None:
            return 0
        measured.watch(daemon.figures)
        return run_to_end(invocation, daemon, once=once, failed=lambda: daemon.failed)
