"""Topics by names that Kafka allows: letters, digits, '.', '_' and '-', at most 249 of them.

    orders                              orders
    shop/orders                         shop.orders
    persistent://public/eu/a b          pulsar.public.eu.a_20b      it is stored as pulsar.public.eu/a%20b

Two topics may come to one name: `shop/orders`, and `shop.orders` of the default stream. Then neither is listed, so that
no client reads one for the other. Which topics are listed follows from the names of all of them alone, so that it is
the same for every gateway and every client, whatever each of these may read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from lithify.model.names import MAX_NAME_LENGTH, TopicName, in_order

_DIGEST_LENGTH: Final = 16
_AS_IN_KAFKA: Final = str.maketrans({"/": ".", "%": "_"})


@dataclass(frozen=True, slots=True)
class Clash:
    """Topics that come to the same name of Kafka, and are not listed."""

    kafka_name: str
    topics: tuple[TopicName, ...]

    def __str__(self) -> str:
        return f"{' and '.join(map(str, self.topics))}: both would be {self.kafka_name} to clients of Kafka"


@dataclass(frozen=True, slots=True)
class Listing:
    """The topics that clients see, by their names for them, in order, and those that they do not see."""

    topics: Mapping[str, TopicName]
    clashes: tuple[Clash, ...] = ()


def listed(names: Iterable[TopicName]) -> Listing:
    """The listing of all topics of a lake."""
    by_name: dict[str, list[TopicName]] = {}
    for name in sorted(set(names), key=in_order):
        by_name.setdefault(kafka_name(name), []).append(name)
    clashes = (Clash(name, tuple(topics)) for name, topics in by_name.items() if len(topics) > 1)
    return Listing({name: topics[0] for name, topics in by_name.items() if len(topics) == 1}, tuple(clashes))


def kafka_name(name: TopicName) -> str:
    """The name of a topic to clients of Kafka. One that is too long ends with a digest of all of it."""
    legal = name.stored.translate(_AS_IN_KAFKA)
    if len(legal) <= MAX_NAME_LENGTH:
        return legal
    digest = sha256(name.stored.encode()).hexdigest()[:_DIGEST_LENGTH]
    return f"{legal[: MAX_NAME_LENGTH - len(digest) - 1]}-{digest}"
