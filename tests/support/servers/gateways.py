"""A gateway's application behind its guard, without a cleaner, as tests serve it."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from starlette.types import ASGIApp

from lithify.api.lake import Lake
from lithify.api.wiring.appends import append_notes_of
from lithify.gateway.access.audit import Audit
from lithify.gateway.access.hosts import AllowedHosts
from lithify.gateway.listening.bound import BoundSocket, bind
from lithify.gateway.listening.guarded import GatewayTokens, gateway_tokens, guarded, strangers_at
from lithify.gateway.listening.listen import ListenAddress, Listening
from lithify.gateway.process.serving import Serving
from lithify.gateway.server.app import Gateway, application
from lithify.gateway.server.jobs.jobs import Jobs
from lithify.gateway.server.kinds import kind_of
from lithify.gateway.server.live.events import Events

_ENDING = ThreadPoolExecutor(4, "gateways that end")


def bound_port(port: int = 0) -> BoundSocket:
    """A port of this machine, by default one that is free."""
    return bind(ListenAddress("127.0.0.1", port))


def guarded_gateway(gateway: Gateway, *, needs_token: bool = False, audit: Audit | None = None) -> ASGIApp:
    """Its application, which lets all in unless it `needs_token`."""
    listening = Listening(ListenAddress("127.0.0.1", 0), needs_token)
    tokens = (
        gateway_tokens(gateway.lake.warehouse, None)
        if needs_token
        else GatewayTokens(None, gateway.lake.warehouse.clock)
    )
    strangers = strangers_at(gateway.lake.warehouse.clock, audit)
    return guarded(application(gateway), listening, tokens, hosts=AllowedHosts(), kind_of=kind_of, strangers=strangers)


@contextmanager
def serving_gateway(
    lake: Lake, *, needs_token: bool = False, audit: Audit | None = None, port: int = 0, frees_port: bool = False
) -> Iterator[str]:
    """Its URL, while it is served.

    Nothing waits for its server to end, unless another is to have its port: uvicorn looks ten times a second whether it
    has to, and waits once more.
    """
    events = Events()
    jobs, bound = Jobs(lake.warehouse.clock, 2, events.job), bound_port(port)
    gateway = Gateway("g1", lake, jobs, events, notes=append_notes_of(lake.warehouse, None))
    serving = Serving(guarded_gateway(gateway, needs_token=needs_token, audit=audit), bound)
    serving.start()
    try:
        yield f"http://{bound.address}"
    finally:
        jobs.close()
        ending = _ENDING.submit(serving.close)
        if frees_port:
            ending.result()
