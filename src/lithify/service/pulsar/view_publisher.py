"""Has a broker serve a view, and finds out whether it does (C55).

    acknowledge ──► the broker opens the ledger, serves it, stores the cursor, deletes the ledger of the earlier view
         │
         ▼ look, until it serves the ledger and the cursor names it     published
           the topic is not there; or by the deadline its cursor         never served: the ledger is deleted
           nothing else by the deadline                                 unknown: nothing is deleted

A ledger may be deleted only as long as the request was not sent: else the broker would serve a deleted ledger. It may
also be deleted when the broker has nothing any more that could serve it.
"""

from __future__ import annotations

from dataclasses import dataclass

from lithify.errors import BrokerError, LithifyError, UnknownOutcomeError, UnknownSourceError
from lithify.model.message import MessageId
from lithify.ports.clock import Clock
from lithify.ports.pulsar.pulsar_cluster import Hold, PulsarCluster, TopicLook

PUBLISHED_WITHIN_MS = 60_000
LOOK_S = 0.1
LONGEST_PAUSE_S = 2.0


@dataclass(frozen=True, slots=True)
class NeverServed:
    """No broker serves the view, or ever will."""

    error: LithifyError


@dataclass(frozen=True, slots=True)
class Publisher:
    """Publishes views of partitions."""

    cluster: PulsarCluster
    clock: Clock

    def publish(self, partition: str, hold: Hold, horizon: MessageId, ledger: int) -> TopicLook | NeverServed:
        """The partition once the broker serves the view in `ledger`. Raises `UnknownOutcomeError`."""
        reason = ""
        try:
            hold.acknowledge(horizon, ledger)
        except LithifyError as error:  # the request may have got there before the connection was lost
            reason = f": {error.message}"
        deadline_ms, pause_s = self.clock.monotonic_ms() + PUBLISHED_WITHIN_MS, LOOK_S
        while True:
            look = self._look(partition)
            match look:
                case TopicLook(view=view, served=served) if view == ledger and served and served.ledger == ledger:
                    return look
                case UnknownSourceError() if not hold.is_confirmed():  # the others are not to wait for it
                    return NeverServed(_gone(partition, "the topic was deleted"))
                case LithifyError():
                    reason = f": {look.message}"
            if self.clock.monotonic_ms() >= deadline_ms:
                if _has_no_cursor(look, ledger) and not hold.is_confirmed():
                    return NeverServed(_gone(partition, "its subscription __compaction was deleted"))
                raise UnknownOutcomeError(
                    f"{partition}: the broker was requested to serve ledger {ledger} and does not report that it "
                    f"does{reason}",
                    hint="run it again: the next round checks this, and deletes the ledger if it is not served; "
                    "nothing was deleted",
                )
            self.clock.sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    def _look(self, partition: str) -> TopicLook | LithifyError:
        try:
            return self.cluster.look(partition)
        except LithifyError as error:
            return error


def _has_no_cursor(look: TopicLook | LithifyError, ledger: int) -> bool:
    """Whether the broker serves another ledger or none, and has no cursor that could name this one."""
    if not isinstance(look, TopicLook) or look.horizon is not None:
        return False
    return look.served is None or look.served.ledger != ledger


def _gone(partition: str, what: str) -> LithifyError:
    return BrokerError(
        f"{partition}: {what} before the broker served the new compacted view, whose ledger was deleted",
        hint="run it again if the topic exists again",
    )
