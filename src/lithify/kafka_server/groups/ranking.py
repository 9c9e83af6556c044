"""Which of the live gateways leads a partition, and which coordinates a group: the same answer at all of them.

Rendezvous hashing: each gateway has a weight for each key, and the heaviest is chosen. So one that comes or goes moves
only the keys that it gets or had.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b

_NODES = 2**30
"""Java clients use the ids above for the connections to their coordinators."""


@dataclass(frozen=True, slots=True, order=True)
class Gateway:
    """A gateway as clients reach it. It has the same node id after a restart."""

    host: str
    port: int

    @property
    def node_id(self) -> int:
        return _number(f"{self.host}:{self.port}".encode(), 4) % _NODES


def heaviest(key: str, gateways: Iterable[Gateway]) -> Gateway:
    """The gateway for a key. Raises `ValueError` if there is none."""
    return max(gateways, key=lambda gateway: (_number(f"{gateway.host}:{gateway.port} {key}".encode(), 8), gateway))


def _number(text: bytes, size: int) -> int:
    return int.from_bytes(blake2b(text, digest_size=size).digest(), "big")
