"""`lithify gateway run`: a cleaner that can be asked over HTTP."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from lithify.cli.cleaner.options import cleaner_options
from lithify.cli.cleaner.run import begun_daemon, run_to_end
from lithify.cli.cleaner.voice import CleanerVoice
from lithify.cli.gateway.options import GatewayAsked, gateway_options
from lithify.cli.invocation import Invocation, verb
from lithify.cli.terminal.drawing import accented
from lithify.cli.terminal.progress import waits_noted
from lithify.errors import UnusableEnvironmentError
from lithify.errors.extras import GATEWAY, KAFKA_FILES

if TYPE_CHECKING:
    from lithify.gateway.process.daemon import GatewayDaemon
    from lithify.reports.jobs.job_events import JobEvent


@verb("run")
@gateway_options
@cleaner_options
def run(
    invocation: Invocation,
    gateway: GatewayAsked,
    **given: Any,
) -> int:
    """Run a gateway: a cleaner with a page and an HTTP API.

    It compacts all topics of the catalog, as `lithify cleaner run` does, shows them on a page, and answers
    requests under /api/v1; /openapi.json describes them. It keeps a Spark session, so that rounds that are
    requested start at once. It also runs its share of the standing jobs (`lithify gateway job`).

    Other machines reach it only with tokens (`lithify token create`) and TLS. Any number of gateways and
    cleaners may run on one catalog: they share the work through leases in a SQL database. SIGTERM ends it
    within 10 seconds, without loss of data.

    \b
    Examples:
      lithify gateway run
      lithify gateway run --catalog prod --name gateway-1 --threads 2
      lithify gateway run --listen 0.0.0.0:7660 --tls-certificate g.pem \\
          --tls-key g.key
      lithify gateway run --kafka-listen 127.0.0.1:9092
      curl http://127.0.0.1:7660/api/v1/status
    """
    _check_installed(gateway)
    voice = CleanerVoice(invocation, gateway.name, endless=True)

    def tell_job(event: JobEvent) -> None:
        invocation.tell(event, accented(event.line()), endless=True)

    def begin() -> GatewayDaemon:
        from lithify.gateway.process.opened import open_gateway

        options = gateway.options(invocation.place_options(), tell_job)
        daemon = open_gateway(invocation.open_lake(), options, tell=voice.tell, **given)
        for warning in daemon.warnings:
            invocation.note("warning", warning)
        invocation.note("listening", f"listening on {daemon.url}", url=daemon.url)
        if daemon.kafka is not None:
            kafka = daemon.kafka
            text = f"listening for Kafka's clients on {kafka.listens}"
            invocation.note("listening", text, bootstrap_servers=kafka.address)
        return daemon

    daemon = begun_daemon(begin, voice.tell_fact, once=False)
    if daemon is None:
        return 0
    with waits_noted(lambda kind, text: voice.tell_fact(kind, {"text": text})):
        return run_to_end(invocation, daemon, once=False, failed=lambda: False)


def _check_installed(gateway: GatewayAsked) -> None:
    """Raises `UnusableEnvironmentError` with the extra to install."""
    if any(find_spec(package) is None for package in ("starlette", "uvicorn", "prometheus_client")):
        raise UnusableEnvironmentError("a gateway needs packages that are not installed", hint=f"install: {GATEWAY}")
    if gateway.kafka is not None and find_spec("aiokafka") is None:
        raise UnusableEnvironmentError(
            "--kafka-listen needs aiokafka, which is not installed", hint=f"install: {KAFKA_FILES}"
        )
