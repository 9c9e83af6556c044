"""`lithify cleaner run`: automatic compaction (C28, C29, C31)."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import click

from lithify.cli.cleaner.options import cleaner_options
from lithify.cli.cleaner.voice import CleanerVoice
from lithify.cli.invocation import Invocation, verb
from lithify.cli.metrics_options import MetricsAsked, in_turn, metrics_options
from lithify.cli.terminal.progress import waits_noted
from lithify.cli.terminal.starting import TellBeginning, begun, on_signals
from lithify.errors.defects import as_lithify_error

if TYPE_CHECKING:
    from lithify.daemons.stop import Stop


@verb("run")
@click.option("--once", is_flag=True, help="Run what is due now, then end; sweep only where versions expire.")
@click.option("--id", "cleaner_id", metavar="ID", help="Unique id of this process. Default: host name and process id.")
@cleaner_options
@metrics_options
def run(invocation: Invocation, once: bool, metrics: MetricsAsked, **given: Any) -> int:
    """Compact all topics of the catalog continuously.

    Every interval it checks all topics. It compacts topics past max.compaction.lag.ms first, then the
    dirtiest; small topics share a Spark job. Retention, sweep and the expiry of versions have intervals
    of their own. A failed log is retried after a delay that grows with each failure. After 8 failures in
    a row it is quarantined: `lithify quarantine list` shows it, and after `lithify quarantine release`
    it is retried.

    Any number of cleaners may run on one catalog: they share the work through leases in a SQL
    database. SIGTERM ends it within 10 seconds, without loss of data.

    \b
    Examples:
      lithify cleaner run
      lithify cleaner run --threads 4 --read-rate 100MB/s
      lithify cleaner run --catalog prod --id cleaner-1 --json >> cleaner.log
      lithify cleaner run --metrics-port 9464
      lithify cleaner run --once
    """
    voice = CleanerVoice(invocation, given["cleaner_id"], endless=not once)
    with metrics.served() as meter:
        from lithify.metrics.cleaner_metrics import CleanerMetrics

        measured = CleanerMetrics(meter, given["interval_ms"])
        tell = in_turn(measured.event, voice.tell)
        loop = begun_daemon(lambda: invocation.open_lake().cleaner(**given, tell=tell), voice.tell_fact, once=once)
        if loop is None:
            return 0
        measured.watch(loop.figures)
        with waits_noted(lambda kind, text: voice.tell_fact(kind, {"text": text})):
            return run_to_end(invocation, loop, once=once, failed=lambda: once and voice.has_failed)


class Daemon(Protocol):
    """What runs until it is stopped: the loop of a cleaner, or one that keeps replicas up to date."""

    @property
    def stop(self) -> Stop: ...

    def run(self, *, once: bool) -> bool:
        """Whether all its threads have ended."""
        ...


D = TypeVar("D", bound=Daemon)


def begun_daemon(begin: Callable[[], D], tell: TellBeginning, *, once: bool) -> D | None:
    """The daemon that `begin` makes, which signals stop from then on; None if one came before.

    Unless it is to end by `once`, it waits for as long as what it needs is away.
    """

    def stoppable() -> D:
        daemon = begin()
        _stop_on_signals(daemon.stop)
        return daemon

    return begun(stoppable, tell, waits=not once)


def run_to_end(invocation: Invocation, daemon: Daemon, *, once: bool, failed: Callable[[], bool]) -> int:
    """Returns the exit code. It is 1 even if the daemon has ended in order, if what it did `failed`."""
    try:
        ended = daemon.run(once=once)
    except OSError as error:
        daemon.stop.fail(as_lithify_error(error, "its events cannot be written"))
        ended = True
    if daemon.stop.failed:
        invocation.say_error(daemon.stop.reason, daemon.stop.code)
    code = 1 if daemon.stop.failed or failed() else 0
    if not ended:  # a thread that hangs in a request to a store must not delay the end of the process
        os._exit(code)
    return code


def _stop_on_signals(stop: Stop) -> None:
    """The first signal stops the cleaner in order, a second one abandons running rounds at once."""

    def handle(number: int, _frame: FrameType | None) -> None:
        if stop.asked.is_set():
            stop.gives_up.set()
        stop.ask(signal.Signals(number).name)

    on_signals(handle)
