"""The table of what SCRAM needs of tokens of gateways. Tokens of earlier versions have no row.

lithify_token_scram   scope, token_id (primary key)   sha256_stored_key   sha256_server_key   sha512_…   in hexadecimal
"""

from __future__ import annotations

import re
from typing import Any

from sqlalchemy import Column, MetaData, String, Table

from lithify.coordination.leases.stored_rows import unreadable
from lithify.model.access.scram import KeyPair, ScramKeys

SCRAM_KEYS = Table(
    "lithify_token_scram",
    MetaData(),
    Column("scope", String, primary_key=True),
    Column("token_id", String, primary_key=True),
    Column("sha256_stored_key", String, nullable=False),
    Column("sha256_server_key", String, nullable=False),
    Column("sha512_stored_key", String, nullable=False),
    Column("sha512_server_key", String, nullable=False),
)


def scram_row(keys: ScramKeys, token_id: str, scope: str) -> dict[str, str]:
    """The keys of a token of a warehouse as a row."""
    return {
        "scope": scope,
        "token_id": token_id,
        "sha256_stored_key": keys.sha_256.stored_key.hex(),
        "sha256_server_key": keys.sha_256.server_key.hex(),
        "sha512_stored_key": keys.sha_512.stored_key.hex(),
        "sha512_server_key": keys.sha_512.server_key.hex(),
    }


def scram_keys_of(row: Any) -> ScramKeys:
    """The keys in a row that was `checked`. Raises `CoordinationError` for what no hash is."""
    first, second = (KeyPair(_key(row, f"{name}_stored_key"), _key(row, f"{name}_server_key")) for name in _BYTES)
    return ScramKeys(first, second)


_BYTES = {"sha256": 32, "sha512": 64}


def _key(row: Any, column: str) -> bytes:
    text, digits = getattr(row, column), 2 * _BYTES[column.partition("_")[0]]
    if not re.fullmatch(f"[0-9a-f]{{{digits}}}", text):
        raise unreadable(SCRAM_KEYS, row._asdict(), column)
    return bytes.fromhex(text)
