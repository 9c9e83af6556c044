"""Idempotency keys: a request that is sent again with the same key gets the first answer, and appends nothing (C75)."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b

from lithify.errors import InvalidInputError

LONGEST_KEY = 255
"""Characters of a key: it is stored, and part of an index."""


@dataclass(frozen=True, slots=True)
class AppendKey:
    """A key that a client has chosen for one append, and a digest of what it sends with it.

    Raises `InvalidInputError` for a key that is empty, too long, or not of printable ASCII characters.
    """

    key: str
    request: str

    def __post_init__(self) -> None:
        if not (0 < len(self.key) <= LONGEST_KEY and self.key.isascii() and self.key.isprintable()):
            raise InvalidInputError(
                f"an idempotency key has 1 to {LONGEST_KEY} printable ASCII characters",
                hint="choose a random one for each append, such as a UUID",
            )

    @classmethod
    def of(cls, key: str, *sent: bytes) -> AppendKey:
        """The key of a request with these parts: its body, and what else decides what is appended."""
        digest = blake2b(digest_size=16)
        for part in sent:
            digest.update(len(part).to_bytes(8))
            digest.update(part)
        return cls(key, digest.hexdigest())
