"""Where the tokens of gateways are, and the random source of their secrets and of logins."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from lithify.api.wiring.shared_place import shared_place
from lithify.model.access.tokens import ID_BYTES, SECRET_BYTES
from lithify.ports.store import Warehouse

if TYPE_CHECKING:
    from lithify.coordination.leases.gateways.tokens_sql import SqlTokens


NONCE_BYTES = 24


def tokens_of(warehouse: Warehouse, url: str | None, *, makes: bool = False) -> SqlTokens:
    """The tokens of a warehouse, as `open_tokens` does; the default of `url` is `$LITHIFY_COORDINATION_URL`.

    Who is to create tokens, or to run a gateway, `makes` the warehouse and the identity under which they are stored.
    Raises `RefusedError`, `WarehouseError` or `CoordinationError`.
    """
    from lithify.coordination.leases.gateways.tokens_sql import open_tokens

    return open_tokens(*shared_place(warehouse, url, makes=makes, creates=makes))


def new_secret() -> tuple[str, str]:
    """A new id and a new secret of a token."""
    return secrets.token_hex(ID_BYTES), secrets.token_hex(SECRET_BYTES)


def new_nonce() -> str:
    """What a client is sent once, to sign it."""
    return secrets.token_urlsafe(NONCE_BYTES)
