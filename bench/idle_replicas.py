"""The cost of a look of the replica daemon at topics that have not changed, on either side.

    python bench/idle_replicas.py [--topics 1000] [--sync-groups]

A stream of so many topics is replicated; then looks are timed that find nothing to do. The target is under a second.
With `--sync-groups` a consumer group has a position in every topic, and looks are also timed at which these are looked
at, which is every 30 seconds.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from statistics import median

import lithify
from lithify.api.wiring import groups_of
from lithify.daemons.replicas.daemon import ReplicaDaemon
from lithify.model.cursor import Cursor
from lithify.model.groups.positions import GroupTopic, Position
from lithify.model.names import LogId
from lithify.ports.leases import Lease
from shown import add_publish, shown

LOOKS = 15
LEASE_MS = 600_000


def commit_everywhere(lake: lithify.Lake) -> None:
    """A group has a position in every topic."""
    groups = groups_of(lake.warehouse, None)
    for topic in lake.topics():
        state, log = topic.state(), LogId(topic.topic_name, 0)
        groups.leases.take([Lease(GroupTopic(groups.scope, "g", topic.topic_name).partition(0), "bench", 1)], {})
        groups.commit([Position("g", log, Cursor.of(state, state.log(0), 0), False, 1)], "bench")


def look_s(daemon: ReplicaDaemon, *, syncs: bool = False) -> float:
    """One look at everything, with the passes that it begins."""
    daemon._tokens._tried_ms = None if syncs else daemon._tokens._tried_ms
    begun = time.perf_counter()
    daemon._look(ignores_waits=False)
    while not all(worker.is_idle for worker in daemon._all_workers()):
        time.sleep(0.001)
    return time.perf_counter() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--topics", type=int, default=1_000)
    parser.add_argument("--sync-groups", action="store_true")
    add_publish(parser)
    flags = parser.parse_args()
    with shown(flags) as show, tempfile.TemporaryDirectory() as folder:
        lake = lithify.open(f"{folder}/source")
        for number in range(flags.topics):
            lake.create_topic(f"many/topic{number:04}")
        lake.replicas().add("many/", f"{folder}/target", sync_groups=flags.sync_groups)
        if flags.sync_groups:
            commit_everywhere(lake)
        daemon = lake.replicas().daemon(lease_ms=LEASE_MS)
        first_s, later_s = look_s(daemon), [look_s(daemon) for _ in range(LOOKS)]
        syncing_s = [look_s(daemon, syncs=True) for _ in range(LOOKS if flags.sync_groups else 0)]
        show(
            topics=flags.topics,
            sync_groups=flags.sync_groups,
            first_check_with_copies_s=round(first_s, 1),
            idle_check_ms=round(1000 * median(later_s)),
            slowest_idle_check_ms=round(1000 * max(later_s)),
            check_of_positions_ms=round(1000 * median(syncing_s)) if syncing_s else None,
            replica_status_s=round(statuses_s(lake, flags.topics), 2),
        )


def statuses_s(lake: lithify.Lake, topics: int) -> float:
    """What `replica status` takes for all of them."""
    begun = time.perf_counter()
    assert len(lake.replicas().status()) == topics
    return time.perf_counter() - begun


if __name__ == "__main__":
    main()
