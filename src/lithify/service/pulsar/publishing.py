"""Has a broker serve a view, and finds out whether it does (C55).

    acknowledge ──► the broker opens the ledger, serves it, stores the cursor, deletes the ledger of the earlier view
         │
         ▼ look, until it serves the ledger and the cursor names it     published
           nothing by the deadline                                      unknown: nothing is deleted

A ledger may be deleted only as long as the request was not sent: the broker would serve a ledger that is gone.
"""

from __future__ import annotations

from dataclasses import dataclass

from lithify.errors import LithifyError, UnknownOutcomeError
from lithify.model.message import MessageId
from lithify.ports.clock import Clock
from lithify.ports.pulsar.cluster import Hold, PulsarCluster, TopicLook

PUBLISHED_WITHIN_MS = 60_000
LOOK_S = 0.1
LONGEST_PAUSE_S = 2.0


@dataclass(frozen=True, slots=True)
class Publisher:
    """Publishes views of partitions."""

    cluster: PulsarCluster
    clock: Clock

    def publish(self, partition: str, hold: Hold, horizon: MessageId, ledger: int) -> TopicLook:
        """The partition once the broker serves the view in `ledger`. Raises `UnknownOutcomeError`."""
        reason = ""
        try:
            hold.acknowledge(horizon, ledger)
        except LithifyError as error:  # the request may have got there before the connection was lost
            reason = f": {error.message}"
        deadline_ms, pause_s = self.clock.monotonic_ms() + PUBLISHED_WITHIN_MS, LOOK_S
        while True:
            found = self._look(partition)
            if isinstance(found, TopicLook):
                if found.view == ledger and found.served is not None and found.served.ledger == ledger:
                    return found
            else:
                reason = f": {found.message}"
            if self.clock.monotonic_ms() >= deadline_ms:
                raise UnknownOutcomeError(
                    f"{partition}: the broker was asked to serve ledger {ledger} and does not say that it does{reason}",
                    hint="nothing was deleted; the next round finds out, and deletes the ledger if nobody reads it",
                )
            self.clock.sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    def _look(self, partition: str) -> TopicLook | LithifyError:
        try:
            return self.cluster.look(partition)
        except LithifyError as error:
            return error
