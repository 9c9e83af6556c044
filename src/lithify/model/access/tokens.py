"""Bearer tokens: their text, and what is stored of them.

    lithify_3f9c1a2b4d5e6f70_<64 hexadecimal digits>
            id               secret: 256 bits of the system's random source, of which only the SHA-256 is stored,
                             and what SCRAM needs (`scram.py`)

A secret of 256 random bits cannot be guessed, so that its hash needs neither salt nor many rounds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from hmac import compare_digest

from lithify.errors import InvalidNameError, RefusedError
from lithify.model.access.roles import Grant
from lithify.model.access.scram import ScramKeys

ID_BYTES, SECRET_BYTES = 8, 32
GRANTS_AT_MOST = 64
"""Of one token."""
DEFAULT_EXPIRY_MS = 90 * 86_400_000

_TEXT = re.compile(rf"lithify_([0-9a-f]{{{2 * ID_BYTES}}})_([0-9a-f]{{{2 * SECRET_BYTES}}})")
_NAME = re.compile(r"[A-Za-z0-9._@%-]{1,100}")


@dataclass(frozen=True, slots=True)
class Token:
    """What is stored. `name` is who has the token; times are epoch ms, and `expires_ms` is None if it never does."""

    name: str
    id: str
    secret_sha256: str
    grants: tuple[Grant, ...]
    created_ms: int
    expires_ms: int | None
    scram: ScramKeys | None = None
    """None for a token of a version that did not know SCRAM."""

    def accepts(self, secret: str) -> bool:
        """Whether that is the secret. How long it takes says nothing of the right one."""
        return compare_digest(hashed(secret), self.secret_sha256)

    def is_expired(self, now_ms: int) -> bool:
        return self.expires_ms is not None and self.expires_ms <= now_ms


def id_of_user(user: str) -> str:
    """The id of a token in the name of a user: `3f9c1a2b4d5e6f70`, or `lithify_3f9c1a2b4d5e6f70`."""
    return user.removeprefix("lithify_")


def token_text(token_id: str, secret: str) -> str:
    """What who has the token sends."""
    return f"lithify_{token_id}_{secret}"


def parse_token(text: str) -> tuple[str, str] | None:
    """The id and the secret; None for any other text."""
    match = _TEXT.fullmatch(text)
    return None if match is None else (match[1], match[2])


def hashed(secret: str) -> str:
    return sha256(secret.encode()).hexdigest()


def checked_grants(grants: Iterable[Grant]) -> tuple[Grant, ...]:
    """In order, each once. Raises `RefusedError` for none or too many."""
    distinct = tuple(sorted(set(grants)))
    if not distinct:
        raise RefusedError("a token without a grant may do nothing", hint="pass --grant GRANT")
    if len(distinct) > GRANTS_AT_MOST:
        raise RefusedError(
            f"{len(distinct)} grants: a token has at most {GRANTS_AT_MOST}",
            hint="use ROLE:* or several tokens",
        )
    return distinct


def checked_name(name: str) -> str:
    """`name` if it can be one of a token. Raises `InvalidNameError`."""
    if not _NAME.fullmatch(name):
        raise InvalidNameError(
            f"{name!r} cannot name a token", hint="use 1 to 100 letters, digits, '.', '_', '-', '%' or '@'"
        )
    return name
