"""Logins of Kafka's clients: the tokens of the gateway, as passwords of SASL."""

from __future__ import annotations

from dataclasses import dataclass

from lithify.api.wiring.tokens import new_nonce
from lithify.gateway.access.authentication import Authentication
from lithify.gateway.access.callers import ANYONE, LOCAL, Caller
from lithify.gateway.access.token_cache import TokenCache
from lithify.gateway.listening.guarded import Callers
from lithify.gateway.listening.listen import Listening
from lithify.kafka_server.requests.context import Caller as KafkaCaller
from lithify.kafka_server.requests.context import Known
from lithify.model.access.scram import Mechanism

LOGIN = "kafka-login"
"""In the audit log."""


@dataclass(frozen=True, slots=True)
class KafkaLogins:
    """Who may ask on one address. For one event loop."""

    authentication: Authentication
    cache: TokenCache | None
    who: Callers
    unnamed: Caller | None
    """Who asks without a login."""

    def without_token(self) -> Caller | None:
        return self.unnamed

    async def by_token(self, token: str) -> Caller | None:
        """Who has the token. Raises `CoordinationError`."""
        caller = await self.authentication.of_token(token)
        return caller if isinstance(caller, Caller) else None

    async def by_name(self, user: str, mechanism: Mechanism) -> Known | None:
        """Who has the token of that id, and how a proof is checked. Raises `CoordinationError`."""
        token = None if self.cache is None else await self.cache.find(user)
        if token is None or token.is_expired(self.who.tokens.clock.now_ms()):
            return None
        keys = None if token.scram is None else token.scram.of(mechanism)
        return Known(Caller(token.name, token.grants, token.id), keys)

    def new_nonce(self) -> str:
        return new_nonce()

    def failed(self, address: str) -> bool:
        return self.who.strangers.failed(address, LOGIN)

    async def is_valid(self, caller: KafkaCaller) -> bool:
        """Whether its token is neither revoked nor expired. Raises `CoordinationError`."""
        if not isinstance(caller, Caller) or caller.token_id is None or self.cache is None:
            return True
        token = await self.cache.find(caller.token_id)
        return token is not None and not token.is_expired(self.who.tokens.clock.now_ms())


def kafka_logins(listening: Listening, who: Callers) -> KafkaLogins:
    """The logins of an address. Call it on the event loop that asks."""
    tokens, clock, is_loopback = who.tokens, who.tokens.clock, listening.address.is_loopback
    cache = None if tokens.stored is None else TokenCache(tokens.stored.all, lambda: clock.monotonic_ms() / 1000)
    authentication = Authentication(cache, clock.now_ms, needs_token=listening.needs_token, is_loopback=is_loopback)
    unnamed = None if listening.needs_token else LOCAL if is_loopback else ANYONE
    return KafkaLogins(authentication, cache, who, unnamed)
