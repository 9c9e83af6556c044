"""What a round of a live topic needs of a Pulsar cluster.

PulsarCluster ──► Hold: the exclusive subscription `__compaction`, for the whole round
              └─► look: ledgers, last message, horizon, view
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from lithify.model.message import MessageId
from lithify.ports.pulsar.views import ViewRules


@dataclass(frozen=True, slots=True)
class TopicLedger:
    """A ledger of the topic, with the entries in it that can be read."""

    ledger: int
    entries: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class TopicLook:
    """A partition as its broker describes it.

    `ledgers` has all up to the ledger of `last`. `horizon` is the last entry that a round has covered, if any has.
    `view` is the ledger that the last round published, `served` the one that the broker reads from, None if it
    has none or cannot open it. `unsettled` is older than everything that unfinished rounds may have left.
    """

    ledgers: tuple[TopicLedger, ...]
    last: MessageId | None
    horizon: MessageId | None
    view: int | None
    served: TopicLedger | None
    unsettled: int | None


class Hold(Protocol):
    """The exclusive subscription of a round: no other compaction of the partition runs while it is open."""

    @property
    def is_open(self) -> bool:
        """Whether nothing has said that it is lost. A program that was frozen finds that out late."""
        ...

    def is_confirmed(self) -> bool:
        """Asks the broker: while this ran, no other compaction of the partition had begun yet."""
        ...

    def acknowledge(self, horizon: MessageId, ledger: int) -> None:
        """Asks the broker to serve the view in `ledger` up to `horizon`. Returns before it does.

        Raises `BrokerError` if the connection is lost; the request may have got there nevertheless.
        """
        ...


class PulsarCluster(Protocol):
    """A Pulsar cluster. Every call raises `BrokerError` without an answer in time, or without the right to it."""

    def partitions(self, topic: str) -> Mapping[int, str]:
        """The names of the partitions by number, in order; of one that is not partitioned its own, as 0.

        A name of a partition is only that one. Raises `UnknownSourceError` or `InvalidNameError`.
        """
        ...

    def view_rules(self) -> ViewRules:
        """The rules by which brokers compact. Raises `RefusedError` if they may not be asked."""
        ...

    def automatic_threshold_bytes(self, topic: str) -> int:
        """The backlog at which brokers compact the topic by themselves; 0: never."""
        ...

    def hold(self, partition: str) -> AbstractContextManager[Hold]:
        """Raises `SubscriptionBusyError` while another compaction of it runs."""
        ...

    def is_compacting(self, partition: str) -> bool:
        """Whether its broker compacts it right now, as far as it knows. Raises `RefusedError` if it may not be asked.

        Between the two phases of that the subscription is free.
        """
        ...

    def look(self, partition: str) -> TopicLook: ...

    def drop_view(self, partition: str) -> bool:
        """Deletes the subscription, and the view with it, also a view that is gone. Returns whether there was one.

        Raises `BrokerError` while a compaction holds it.
        """
        ...

    def unsettled(self, partition: str) -> int | None:
        """What `note_unsettled` has stored; None without a subscription."""
        ...

    def note_unsettled(self, partition: str, ledger: int | None) -> None:
        """Stores, beside the subscription, that views may be written to ledgers newer than `ledger`; None: no more."""
        ...
