"""Holds a partition's subscription `__compaction` beside no other compaction (C55).

Pulsar's own    │ phase one │ free │ phase two │      it waits for the subscription as long as another one has it
a round                      hold ─► does the broker compact? ─► busy, and released at once
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lithify.errors import BrokerError, RefusedError, SubscriptionBusyError
from lithify.ports.pulsar.pulsar_cluster import Hold, PulsarCluster


@contextmanager
def holding(cluster: PulsarCluster, partition: str, note: Callable[[str], None]) -> Iterator[Hold]:
    """Raises `SubscriptionBusyError` while another compaction runs; `note` is told if the broker is not to be asked."""
    with cluster.hold(partition) as hold:
        is_compacting = False
        try:
            is_compacting = cluster.is_compacting(partition)
        except RefusedError as error:
            note(error.message)
        if is_compacting:
            raise SubscriptionBusyError(
                f"{partition}: its broker is compacting it",
                hint="run it again when that has ended; nothing was changed",
            )
        yield hold


def lost(name: str) -> BrokerError:
    """The error for a subscription that was lost meanwhile."""
    return BrokerError(
        f"{name}: the connection that holds its subscription __compaction was lost",
        hint="run it again; readers get the same as before",
    )
