"""All that is answered: a handler for each API, by its key, and the versions that clients are told of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lithify.kafka_protocol.codec import API_VERSIONS
from lithify.kafka_protocol.table import apis
from lithify.kafka_server.requests.configs import describe_configs
from lithify.kafka_server.requests.context import Handler
from lithify.kafka_server.requests.epochs import offset_for_leader_epoch
from lithify.kafka_server.requests.fetch import fetch
from lithify.kafka_server.requests.groups.handlers import GROUP_HANDLERS
from lithify.kafka_server.requests.list_offsets import list_offsets
from lithify.kafka_server.requests.login import authenticate, handshake
from lithify.kafka_server.requests.metadata import describe_cluster, metadata
from lithify.kafka_server.requests.refused import produce

HANDLERS: Final[Mapping[int, Handler]] = {
    0: produce,
    1: fetch,
    2: list_offsets,
    3: metadata,
    17: handshake,
    23: offset_for_leader_epoch,
    32: describe_configs,
    36: authenticate,
    60: describe_cluster,
    **GROUP_HANDLERS,
}
BEFORE_LOGIN: Final = frozenset({API_VERSIONS, 17, 36})
_NARROWER: Final = {
    2: (1, 10),  # 11 asks for offsets of a tier that has a state of its own (KIP-1023)
    17: (1, 1),  # after version 0 a client sends its token without a header
}
_TOLD: Final = {
    17: (0, 1),  # as brokers do: librdkafka 2.0 takes a server without version 0 for one without SASL
}


def versions() -> dict[int, tuple[int, int]]:
    """The first and last version of each API that is answered."""
    table = apis()
    return {key: _NARROWER.get(key, (table[key].first, table[key].last)) for key in sorted({*HANDLERS, API_VERSIONS})}


def told_versions() -> dict[int, tuple[int, int]]:
    """Those that clients are told of."""
    return {**versions(), **_TOLD}
