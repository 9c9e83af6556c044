"""The guard of a gateway, put together for one warehouse and one address."""

from __future__ import annotations

from dataclasses import dataclass

from lithify.api.wiring.tokens import tokens_of
from lithify.coordination.leases.gateways.tokens_sql import SqlTokens
from lithify.errors import RefusedError
from lithify.gateway.access.audit import Audit
from lithify.gateway.access.authentication import Authentication
from lithify.gateway.access.failures import Failures
from lithify.gateway.access.hosts import AllowedHosts
from lithify.gateway.access.middleware import Access, Application, Guard, KindOf, Limits
from lithify.gateway.access.strangers import Strangers
from lithify.gateway.access.token_cache import TokenCache
from lithify.gateway.listening.listen import Listening
from lithify.ports.clock import Clock
from lithify.ports.store import Warehouse


@dataclass(frozen=True, slots=True)
class GatewayTokens:
    """The tokens of a warehouse; `stored` is None where there is no database for them."""

    stored: SqlTokens | None
    clock: Clock

    @property
    def usable(self) -> int | None:
        """How many have not expired. Raises `CoordinationError`."""
        if self.stored is None:
            return None
        now_ms = self.clock.now_ms()
        return sum(not token.is_expired(now_ms) for token in self.stored.all())


@dataclass(frozen=True, slots=True)
class Callers:
    """Who may ask a gateway, by tokens, and those who fail to say who they are."""

    tokens: GatewayTokens
    strangers: Strangers


def gateway_tokens(warehouse: Warehouse, coordination_url: str | None) -> GatewayTokens:
    """The tokens of a warehouse. Raises `WarehouseError`, or `CoordinationError` for an invalid URL."""
    try:
        return GatewayTokens(tokens_of(warehouse, coordination_url, makes=True), warehouse.clock)
    except RefusedError:  # its catalog is not a database, and none is named
        return GatewayTokens(None, warehouse.clock)


def strangers_at(clock: Clock, audit: Audit | None = None) -> Strangers:
    """Those who fail to say who they are to one gateway."""
    return Strangers(Failures(lambda: clock.monotonic_ms() / 1000), clock.now_ms, audit)


def guarded(  # noqa: PLR0913 - what a gateway is started with, by name
    application: Application,
    listening: Listening,
    tokens: GatewayTokens,
    *,
    hosts: AllowedHosts,
    kind_of: KindOf,
    strangers: Strangers | None = None,
    limits: Limits | None = None,
) -> Guard:
    """The application behind a guard: an ASGI application for one event loop."""
    clock = tokens.clock
    strangers = strangers or strangers_at(clock)
    cache = None if tokens.stored is None else TokenCache(tokens.stored.all, lambda: clock.monotonic_ms() / 1000)
    authentication = Authentication(
        cache, clock.now_ms, needs_token=listening.needs_token, is_loopback=listening.address.is_loopback
    )
    failures, audit = strangers.failures, strangers.audit
    access = Access(authentication, failures, clock.now_ms, hosts, kind_of, limits or Limits(), audit)
    return Guard(application, access)
