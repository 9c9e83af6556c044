"""What committing positions of a group takes in an SQLite file: one position, and 1,000 in one transaction.

    python bench/group_commits.py

The targets are below 5 ms and below 100 ms. The file is on the disk of the temporary folder, and
every commit is on disk when it returns.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

from lithify.coordination.leases.database import engine_at
from lithify.coordination.leases.groups_sql import SqlGroups
from lithify.coordination.leases.lease_transactions import Transactions
from lithify.model.cursor import Cursor
from lithify.model.groups.positions import GroupTopic, Position
from lithify.model.names import LogId, TopicName
from lithify.ports.leases import Lease
from shown import add_publish, shown

TOPIC = TopicName("default", "orders")
OWNER = "bench"


def positions(count: int, offset: int) -> list[Position]:
    return [Position("g", LogId(TOPIC, p), Cursor("id", 0, offset, 1), False, offset) for p in range(count)]


def median_ms(groups: SqlGroups, count: int, times: int) -> float:
    """The median of so many commits of so many positions each."""
    taken = []
    for offset in range(times):
        begun = time.perf_counter()
        assert not groups.commit(positions(count, offset), OWNER)
        taken.append((time.perf_counter() - begun) * 1000)
    return round(statistics.median(taken), 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=100, help="commits of each kind")
    add_publish(parser)
    asked = parser.parse_args()
    times = asked.times
    with shown(asked) as show, tempfile.TemporaryDirectory() as folder:
        groups = SqlGroups(Transactions(engine_at(f"sqlite:///{Path(folder)}/catalog.db")), "bench")
        part = GroupTopic("bench", "g", TOPIC)
        groups.leases.take([Lease(part.partition(p), OWNER, 1) for p in range(1_000)], {})
        groups.commit(positions(1_000, 0), OWNER)
        for count in (1, 1_000):
            show(positions=count, commit_ms=median_ms(groups, count, times))


if __name__ == "__main__":
    main()
