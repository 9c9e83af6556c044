"""A few records of a topic, to be compared, which a consumer of the JVM reads: one range for each partition (C72)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from lithify.errors import BrokerError
from lithify.model.sources.source import Signs, signs_of


def signs_between(
    consumer: Any,
    places: Mapping[int, Any],
    ranges: Mapping[int, tuple[int, int]],
    polls: Iterable[Any],
    listed: Callable[[list[Any]], Any],
) -> Mapping[int, Mapping[int, Signs]]:
    """By partition and offset the signs of the records in its range.

    `consumer` is assigned `places`, the partitions. `polls` are what it gets, one after the other, up to the number
    that is worth waiting for. `listed` makes a list of the JVM. Raises `BrokerError` if they do not show it: there may
    be another record.
    """
    for p, place in places.items():
        consumer.seek(place, ranges[p][0])
    left, signs = dict(places), {p: dict[int, Signs]() for p in places}
    for fetched in polls:
        for p, place in [*left.items()]:
            records = fetched.records(place)
            for record in map(records.get, range(records.size())):
                if int(record.offset()) >= ranges[p][1]:
                    break
                signs[p][int(record.offset())] = signs_of(int(record.timestamp()), record.key(), record.value())
            if int(consumer.position(place)) >= ranges[p][1]:
                consumer.pause(listed([left.pop(p)]))
        if not left:
            return signs
    silent = next(iter(left))
    raise BrokerError(
        f"Kafka did not report what {places[silent]} has at offset {ranges[silent][0]}, which is compared with the "
        "copy",
        hint="nothing was lost; start it again",
    )
