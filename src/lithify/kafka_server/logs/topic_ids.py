"""The id of a topic to clients of Kafka: a UUID made of its identity, so that a recreated topic has another one."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from hashlib import sha256
from itertools import count
from typing import Final

_VERSION, _VARIANT = 0x80, 0x80
"""Of a UUID that its maker defines (RFC 9562). So it is neither of the two small numbers that Kafka has reserved."""
_BYTES: Final = 16


def topic_id(identity: str) -> bytes:
    """The 16 bytes of it. Kafka's tools take a text that begins with '-' for an option, so none does."""
    return next(made for n in count() if not urlsafe_b64encode(made := _made(f"{identity} {n}")).startswith(b"-"))


def _made(text: str) -> bytes:
    made = bytearray(sha256(text.encode()).digest()[:_BYTES])
    made[6] = made[6] & 0x0F | _VERSION
    made[8] = made[8] & 0x3F | _VARIANT
    return bytes(made)
