"""`lithify gateway run`: a cleaner that can be asked over HTTP."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import click

from lithify.cli.cleaner.options import cleaner_options
from lithify.cli.cleaner.run import begun_daemon, run_to_end
from lithify.cli.cleaner.voice import CleanerVoice
from lithify.cli.invocation import Invocation, verb
from lithify.cli.parameters import AddressType
from lithify.cli.terminal.drawing import accented
from lithify.cli.terminal.progress import waits_noted
from lithify.errors import RefusedError, UnusableEnvironmentError
from lithify.errors.extras import GATEWAY

if TYPE_CHECKING:
    from lithify.gateway.server.daemon import GatewayDaemon
    from lithify.reports.jobs.job_events import JobEvent


@verb("run")
@click.option(
    "--listen",
    type=AddressType(host=None, least_port=0),
    metavar="HOST:PORT",
    default="127.0.0.1:7660",
    show_default=True,
    help="The address of the API.",
)
@click.option("--name", metavar="NAME", help="Unique name of this gateway. Default: host name and process id.")
@cleaner_options
def run(invocation: Invocation, listen: tuple[str, int], name: str | None, **given: Any) -> int:
    """Run a gateway: a cleaner with an HTTP API.

    It compacts all topics of the catalog, as `lithify cleaner run` does, and answers requests under
    /api/v1; /openapi.json describes them. It keeps a Spark session, so that rounds that are requested start
    at once. It also runs its share of the standing jobs (`lithify gateway job`).

    Any number of gateways and cleaners may run on one catalog: they share the work through leases in a
    SQL database. SIGTERM ends it within 10 seconds, without loss of data.

    \b
    Examples:
      lithify gateway run
      lithify gateway run --catalog prod --name gateway-1 --threads 2
      curl http://127.0.0.1:7660/api/v1/status
    """
    if name is not None and not name.strip():
        raise RefusedError("--name is empty", hint="omit it to use the host name and the process id")
    if find_spec("starlette") is None or find_spec("uvicorn") is None:
        raise UnusableEnvironmentError("a gateway needs packages that are not installed", hint=f"install: {GATEWAY}")
    voice = CleanerVoice(invocation, name, endless=True)

    def tell_job(event: JobEvent) -> None:
        invocation.tell(event, accented(event.line()), endless=True)

    def begin() -> GatewayDaemon:
        from lithify.api.wiring import machine
        from lithify.gateway.server.opened import Address, StandingGiven, open_gateway

        lake = invocation.open_lake()
        standing = StandingGiven(invocation.place_options(), tell_job)
        address = Address(*listen, option="--listen")
        daemon, where = open_gateway(lake, name or machine(), address, standing, tell=voice.tell, **given)
        invocation.note("listening", f"listening on http://{where}", url=f"http://{where}")
        return daemon

    daemon = begun_daemon(begin, voice.tell_fact, once=False)
    if daemon is None:
        return 0
    with waits_noted(lambda kind, text: voice.tell_fact(kind, {"text": text})):
        return run_to_end(invocation, daemon, once=False, failed=lambda: False)
