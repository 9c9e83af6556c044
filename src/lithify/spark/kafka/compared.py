"""Single records of a topic, to be compared, which a consumer of the JVM reads: one for each partition (C72)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from lithify.errors import BrokerError
from lithify.model.sources.source import Signs, signs_of


def signs_at(
    consumer: Any, places: Mapping[int, Any], offsets: Mapping[int, int], polls: Iterable[Any]
) -> Mapping[int, Signs]:
    """By partition those of the record at its offset, where there is one.

    `consumer` is assigned `places`, the partitions; `polls` are what it gets, one after the other, and as
    many as are worth waiting for. Raises `BrokerError` where they do not tell: there may be another record.
    """
    for p, place in places.items():
        consumer.seek(place, offsets[p])
    left, found = dict(places), dict[int, Signs]()
    for fetched in polls:
        for p, place in [*left.items()]:
            records = fetched.records(place)
            first = None if records.isEmpty() else records.get(0)
            if first is not None and int(first.offset()) == offsets[p]:
                found[p] = signs_of(int(first.timestamp()), first.key(), first.value())
            if int(consumer.position(place)) > offsets[p]:
                del left[p]
        if not left:
            return found
        consumer.pause(fetched.partitions())
    silent = next(iter(left))
    raise BrokerError(
        f"Kafka has not told what {places[silent]} has at offset {offsets[silent]}, where the copy has its last record",
        hint="nothing was lost; start it again",
    )
