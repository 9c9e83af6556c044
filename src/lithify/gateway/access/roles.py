"""What a token may do."""

from __future__ import annotations

from enum import StrEnum


class Role(StrEnum):
    """After MapR's permissions of a stream."""

    LOOK = "look"
    CONSUME = "consume"
    PRODUCE = "produce"
    TOPIC = "topic"
    ADMIN = "admin"
