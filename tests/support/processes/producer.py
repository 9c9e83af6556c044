"""A producer to be killed: appends numbered batches for ever and prints each one once acknowledged.

python producer.py WAREHOUSE TOPIC FIRST_BATCH
"""

from __future__ import annotations

import itertools
import sys

import lithify

BATCH_RECORDS = 50
KEYS = 40


def batch(number: int) -> list[lithify.Record]:
    """The records of a batch; every one of all batches has a value of its own."""
    first = number * BATCH_RECORDS
    return [
        lithify.Record(
            key=b"key-%d" % (n % KEYS),
            value=None if n % 11 == 10 else b"value-%d" % n,
            timestamp=1_700_000_000_000 + n,
        )
        for n in range(first, first + BATCH_RECORDS)
    ]


def main() -> None:
    warehouse, topic, first = sys.argv[1:4]
    orders = lithify.open(warehouse).topic(topic)
    for number in itertools.count(int(first)):
        orders.append(batch(number))
        print(number, flush=True)


if __name__ == "__main__":
    main()
