"""Ledgers of views that no broker serves, from rounds that were killed or failed (C55).

    before a ledger is made     note: the newest ledger of the topic,      stored beside the subscription
                                or the one before the view that is served
    round ended well            no note
    round was killed            the note stays ──► the next round deletes the views in newer ledgers but the served one

Ids of ledgers only grow, so a leftover is newer than the note. One may also be the view before, which a broker that
ends after it has begun to serve the next never deletes. Only the holder of the subscription deletes any, and
only those that were there when the broker last confirmed it. Pulsar's own compaction makes its ledger before it
releases the subscription between its phases, so no round begins while the broker says that it compacts. None that is
deleted belongs to another compaction then, but to one that the broker does not know of (C55).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from lithify.ports.pulsar.pulsar_cluster import Hold, PulsarCluster, TopicLook
from lithify.ports.pulsar.views import ViewLedgers

OpenViewLedgers = Callable[[], AbstractContextManager[ViewLedgers]]
"""Connects to BookKeeper."""


@dataclass(frozen=True, slots=True)
class Leftovers:
    """Deletes leftovers of partitions whose subscription the caller holds. Calls raise `BrokerError`."""

    cluster: PulsarCluster
    open_ledgers: OpenViewLedgers

    def note(self, partition: str, look: TopicLook) -> int:
        """Notes that views may be written from now on; returns a ledger that all of them are newer than."""
        newest = max(one.ledger for one in look.ledgers)
        before_view = newest if look.view is None else look.view - 1
        since = min(newest, before_view, newest if look.unsettled is None else look.unsettled)
        if since != look.unsettled:
            self.cluster.note_unsettled(partition, since)
        return since

    def delete(self, partition: str, hold: Hold, since: int) -> tuple[int, ...]:
        """Deletes ledgers of views newer than `since` that the broker neither serves nor has stored as served.

        None if `hold` is lost. Raises `DamagedError` if the view that is served is gone.
        """
        with self.open_ledgers() as ledgers:
            newer = ledgers.newer_than(partition, since)
            look = self.cluster.look(partition)  # after the list: a view that is served since is among its ledgers
            used = {look.view, None if look.served is None else look.served.ledger}
            left = tuple(one.ledger for one in newer if one.ledger not in used)
            if not hold.is_confirmed():
                return ()
            for ledger in left:
                ledgers.delete(ledger)
        return left

    def delete_all(self, partition: str, since: int) -> None:
        """Deletes all ledgers of views newer than `since`.

        Only where the view is gone: none of them is served, and no compaction can end.
        """
        with self.open_ledgers() as ledgers:
            for one in ledgers.newer_than(partition, since):
                ledgers.delete(one.ledger)

    def delete_one(self, ledger: int) -> None:
        """Deletes a ledger that the broker was never asked to serve."""
        with self.open_ledgers() as ledgers:
            ledgers.delete(ledger)

    def settled(self, partition: str) -> None:
        """Notes that no ledger is left behind."""
        self.cluster.note_unsettled(partition, None)
