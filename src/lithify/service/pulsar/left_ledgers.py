"""Ledgers of views that rounds left and no later round finds: their topic, or the note of them, was deleted (C55).

    all ledgers that rounds made
      ├─► BookKeeper has no ledger of the topic itself ─► the cluster does not find the topic            gone
      └─► compacted up to a ledger that the topic has ─► hold its subscription ─► not served, no note    unserved

The topic is read after the list. If it does not exist then, nothing could serve a ledger of the list, and a topic
that is created later begins without a view. BookKeeper is read as well, since the topic may belong to another cluster
that shares it, or the admin interface may belong to another cluster.

If a ledger is compacted up to an entry in a ledger of the topic, it belongs to this topic, and not to one of the same
name in another cluster. Ids of ledgers are unique in a BookKeeper. This proves nothing in the BookKeeper of another
cluster, so `living` topics are checked only if the cluster itself has returned its BookKeeper. While the subscription
is held, no round or compaction of the topic runs. A frozen one is not confirmed any more and publishes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from lithify.errors import DamagedError, InvalidNameError, SubscriptionBusyError, UnknownSourceError
from lithify.ports.pulsar.pulsar_cluster import PulsarCluster, TopicLook
from lithify.ports.pulsar.views import RoundLedger, ViewLedgers
from lithify.reports.pulsar.leftovers import LeftLedger, LeftoversReport
from lithify.service.pulsar.holding import holding, lost
from lithify.service.pulsar.leftovers import OpenViewLedgers

ByPartition = Mapping[str, Sequence[RoundLedger]]


def left_ledgers(
    cluster: PulsarCluster, open_ledgers: OpenViewLedgers, *, delete: bool, living: bool = True
) -> LeftoversReport:
    """Lists or deletes them. Raises `BrokerError`, even if a request is forbidden for only one of the topics."""
    notes: list[str] = []
    with open_ledgers() as ledgers:
        made: dict[str, list[RoundLedger]] = {}
        for one in ledgers.of_rounds():
            made.setdefault(one.partition, []).append(one)
        gone = {name for name in sorted(made.keys() - ledgers.with_messages(made)) if _is_gone(cluster, name)}
        there = {name: some for name, some in sorted(made.items()) if name not in gone} if living else {}
        search = _Search(cluster, ledgers, delete, notes.append)
        waiting = search.waiting(there)
        left = [LeftLedger(one.ledger, one.partition, one.run_id) for name in gone for one in made[name]]
        search.deleted(left)
        left += [one for name, some in waiting.items() for one in search.unserved(name, some)]
    if not living:
        notes.append("with --metadata-url only ledgers of deleted topics are searched for")
    return LeftoversReport(tuple(sorted(left, key=lambda one: one.ledger)), deleted=delete, notes=tuple(notes))


@dataclass(frozen=True, slots=True)
class _Search:
    cluster: PulsarCluster
    ledgers: ViewLedgers
    delete: bool
    note: Callable[[str], None]

    def waiting(self, made: ByPartition) -> ByPartition:
        """By partition, what may be left there, as far as that can be seen without its subscription."""
        by_partition = {}
        for name, some in made.items():
            if (look := self._look(name)) is None or not (left := _unserved(look, some)):
                continue
            if look.horizon is None:
                self.note(
                    f"{name}: {len(left)} of its ledgers may be left, but it has no subscription __compaction with "
                    "which to check: run `lithify pulsar compact`, then this again"
                )
                continue
            by_partition[name] = left
        return by_partition

    def unserved(self, name: str, made: Sequence[RoundLedger]) -> list[LeftLedger]:
        """Those that are left of a partition, deleted if that is wanted, beside no compaction of it."""
        try:
            with holding(self.cluster, name, self.note) as hold:
                look = self._look(name)
                left = [] if look is None else _unserved(look, made)
                if not hold.is_confirmed():
                    raise lost(name)
                return self.deleted([LeftLedger(one.ledger, name, one.run_id, gone=False) for one in left])
        except (SubscriptionBusyError, UnknownSourceError) as error:
            self.note(error.message)
            return []

    def deleted(self, left: list[LeftLedger]) -> list[LeftLedger]:
        for one in left if self.delete else ():
            self.ledgers.delete(one.ledger)
        return left

    def _look(self, name: str) -> TopicLook | None:
        try:
            return self.cluster.look(name)
        except (UnknownSourceError, InvalidNameError):  # of another cluster, or deleted since
            return None
        except DamagedError as error:
            self.note(error.message)
            return None


def _unserved(look: TopicLook, made: Collection[RoundLedger]) -> list[RoundLedger]:
    """The ledgers of a partition that nothing serves; none if a round has to settle them, as it left a note."""
    if look.unsettled is not None:
        return []
    used = {look.view, None if look.served is None else look.served.ledger}
    its_own = {one.ledger for one in look.ledgers}
    return [one for one in made if one.ledger not in used and one.horizon.ledger in its_own]


def _is_gone(cluster: PulsarCluster, partition: str) -> bool:
    try:
        cluster.partitions(partition)
    except UnknownSourceError:
        return True
    return False
