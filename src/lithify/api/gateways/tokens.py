"""The Python API of tokens: who may do what through a gateway."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lithify.api.wiring.tokens import new_secret, tokens_of
from lithify.errors import RefusedError
from lithify.model.access.roles import parse_grant
from lithify.model.access.scram import scram_keys
from lithify.model.access.tokens import (
    DEFAULT_EXPIRY_MS,
    Token,
    checked_grants,
    checked_name,
    hashed,
    token_text,
)
from lithify.model.names import in_order, nearest
from lithify.ports.store import Warehouse
from lithify.reports.gateway.tokens import NewToken, TokenInfo
from lithify.reports.report import Reports

if TYPE_CHECKING:
    from lithify.coordination.leases.gateways.tokens_sql import SqlTokens


@dataclass(frozen=True, slots=True)
class LakeTokens:
    """The tokens with which gateways of one lake are asked."""

    warehouse: Warehouse
    coordination_url: str | None = None

    def create(self, name: str, grants: Iterable[str], *, expires_ms: int | None = DEFAULT_EXPIRY_MS) -> NewToken:
        """A new token, whose text is in this value only: what is stored does not tell it.

        `name` is who has it, `grants` are `ROLE:STREAM` or `ROLE`, and it expires `expires_ms` from now, or never with
        None. Raises `RefusedError`, such as for a name that a token has, `InvalidNameError`, `WarehouseError` or
        `CoordinationError`.
        """
        given = checked_grants(map(parse_grant, grants))
        if expires_ms is not None and expires_ms <= 0:
            raise RefusedError(f"a token cannot expire in {expires_ms} ms", hint="pass a duration above zero, or None")
        now_ms = self.warehouse.clock.now_ms()
        token_id, secret = new_secret()
        expiry_ms = None if expires_ms is None else now_ms + expires_ms
        text = token_text(token_id, secret)
        keys = scram_keys(token_id, text)
        token = Token(checked_name(name), token_id, hashed(secret), given, now_ms, expiry_ms, keys)
        if not tokens_of(self.warehouse, self.coordination_url, makes=True).add(token):
            raise RefusedError(
                f"there is a token {name} already", hint=f"choose another name, or run `lithify token revoke {name}`"
            )
        return NewToken(**TokenInfo.of(token, now_ms).to_json(), token=text)

    def infos(self) -> Reports[TokenInfo]:
        """All tokens by name, also expired ones, without their secrets."""
        now_ms = self.warehouse.clock.now_ms()
        tokens = sorted(self._stored().all(), key=lambda token: in_order(token.name))
        return Reports(TokenInfo.of(token, now_ms) for token in tokens)

    def revoke(self, name: str) -> TokenInfo:
        """Removes a token: gateways refuse it within 10 seconds. Raises `RefusedError` if there is none."""
        stored = self._stored()
        tokens = {token.name: token for token in stored.all()}
        if name not in tokens:
            raise RefusedError(
                f"there is no token {name}", hint=nearest(name, tokens, "`lithify token list` prints all")
            )
        stored.remove(name)
        return TokenInfo.of(tokens[name], self.warehouse.clock.now_ms())

    def _stored(self) -> SqlTokens:
        return tokens_of(self.warehouse, self.coordination_url)
