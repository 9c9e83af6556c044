"""The table of tokens of gateways.

lithify_tokens   scope, name (primary key)   id   secret_sha256   grants   created_ms   expires_ms

`grants` are `ROLE:STREAM`, separated by blanks, with the stored names of streams, which have none.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, Column, MetaData, String, Table

from lithify.coordination.leases.stored_rows import unreadable
from lithify.model.access.roles import Grant, Role
from lithify.model.access.scram import ScramKeys
from lithify.model.access.tokens import Token

TOKENS = Table(
    "lithify_tokens",
    MetaData(),
    Column("scope", String, primary_key=True),
    Column("name", String, primary_key=True),
    Column("id", String, nullable=False),
    Column("secret_sha256", String, nullable=False),
    Column("grants", String, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("expires_ms", BigInteger),
)


def token_row(token: Token, scope: str) -> dict[str, Any]:
    """A token of a warehouse as a row."""
    return {
        "scope": scope,
        "name": token.name,
        "id": token.id,
        "secret_sha256": token.secret_sha256,
        "grants": " ".join(grant.stored for grant in token.grants),
        "created_ms": token.created_ms,
        "expires_ms": token.expires_ms,
    }


def token_of(row: Any, scram: ScramKeys | None) -> Token:
    """The token in a row that was `checked`, with its keys for SCRAM. Raises `CoordinationError`."""
    grants = []
    for text in row.grants.split(" "):
        role, _, stream = text.partition(":")
        if role not in [*Role] or not stream:
            raise unreadable(TOKENS, row._asdict(), TOKENS.c.grants.name)
        grants.append(Grant(Role(role), stream))
    return Token(row.name, row.id, row.secret_sha256, tuple(grants), row.created_ms, row.expires_ms, scram)
