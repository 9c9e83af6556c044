"""Topics by names that Kafka allows: letters, digits, '.', '_' and '-', at most 249 of them.

    orders                              orders
    shop/orders                         shop.orders
    persistent://public/eu/a b          pulsar.public.eu.a_20b      it is stored as pulsar.public.eu/a%20b

With `.compacted` behind it a name means the compacted data of a topic side by side (C33). A client has to ask for it:
it is not among the listed topics, so that one that subscribes to a pattern does not read every record twice. A topic
that has such a name itself is meant by it.

Two topics may come to one name: `shop/orders`, and `shop.orders` of the default stream. Then neither is listed, so that
no client reads one for the other. Which topics are listed follows from the names of all of them alone, so that it is
the same for every gateway and every client, whatever each of these may read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final

from lithify.model.names import DEFAULT_STREAM, MAX_NAME_LENGTH, TopicName, in_order

_DIGEST_LENGTH: Final = 16
_COMPACTED: Final = ".compacted"
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
    nameable: Mapping[str, TopicName] = field(default_factory=dict)
    """All names by which a client may ask for a topic: those, and others for views.

    Whether a topic has a view does not follow from names: a name may be here of one that there is not.
    """

    def is_compacted(self, name: str) -> bool:
        """Whether a client asks so for the compacted data of a topic."""
        return name in self.nameable and name not in self.topics


def listed(names: Iterable[TopicName]) -> Listing:
    """The listing of all topics of a lake."""
    by_name: dict[str, list[TopicName]] = {}
    for name in sorted(set(names), key=in_order):
        by_name.setdefault(kafka_name(name), []).append(name)
    clashes = (Clash(name, tuple(topics)) for name, topics in by_name.items() if len(topics) > 1)
    topics = {name: topics[0] for name, topics in by_name.items() if len(topics) == 1}
    compacted = {kafka_name(topic, compacted=True): topic for topic in topics.values()}
    nameable = {name: topic for name, topic in compacted.items() if name not in by_name} | topics
    return Listing(topics, tuple(clashes), nameable)


def may_be_of(name: str, stream: str) -> bool:
    """Whether a topic of a stream, by its stored name, may have that name.

    One with dots is taken for a topic of another stream than `default`, though topics of this may have dots.
    """
    if stream == DEFAULT_STREAM:
        return "." not in name.removesuffix(_COMPACTED)
    return name.startswith(f"{stream.translate(_AS_IN_KAFKA)}.")


def kafka_name(name: TopicName, *, compacted: bool = False) -> str:
    """The name of a topic to clients of Kafka, or of what is compacted in it.

    One that is too long has a digest of all of it at its end.
    """
    legal, suffix = name.stored.translate(_AS_IN_KAFKA), _COMPACTED if compacted else ""
    if len(legal) + len(suffix) <= MAX_NAME_LENGTH:
        return legal + suffix
    digest = sha256(name.stored.encode()).hexdigest()[:_DIGEST_LENGTH]
    return f"{legal[: MAX_NAME_LENGTH - len(digest) - len(suffix) - 1]}-{digest}{suffix}"
