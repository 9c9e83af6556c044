"""A cluster for rounds: what the admin interface and the brokers tell of a partition, as one value.

compaction's status    whether the broker compacts it itself
internalStats          ledgers, the cursor of __compaction, the compacted ledger that the broker has open
last message id        of the broker that owns the partition
subscription's properties   the note of rounds that did not end
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from lithify.errors import BrokerError, DamagedError, RefusedError
from lithify.model.message import MessageId
from lithify.ports.pulsar.pulsar_cluster import Hold, TopicLedger, TopicLook
from lithify.ports.pulsar.views import ViewRules
from lithify.pulsar.client import Admin, ClientConfig, Cluster, Subscription
from lithify.pulsar.client.broker_refusals import TransientBrokerError
from lithify.pulsar.client.names import TopicName

COMPACTION: Final = "__compaction"
VIEW: Final = "CompactedTopicLedger"
"""The property of the cursor that names the compacted ledger; Pulsar's name, as the one above."""
NOTE: Final = "lithify.unsettled-since"
NO_LEDGER: Final = "NoSuchLedgerExists"
RUNNING: Final = "RUNNING"
BY_EVENT_TIME: Final = "EventTimeCompactionServiceFactory"


@dataclass(frozen=True, slots=True)
class CompactionHold:
    """See `ports.pulsar.cluster.Hold`."""

    subscription: Subscription

    @property
    def is_open(self) -> bool:
        return self.subscription.is_open

    def is_confirmed(self) -> bool:
        return self.subscription.is_confirmed()

    def acknowledge(self, horizon: MessageId, ledger: int) -> None:
        self.subscription.acknowledge(horizon, {VIEW: ledger})


@dataclass(frozen=True, slots=True)
class LiveCluster:
    """See `ports.pulsar.cluster.PulsarCluster`."""

    config: ClientConfig

    @property
    def _admin(self) -> Admin:
        return Admin(self.config)

    def partitions(self, topic: str) -> Mapping[int, str]:
        name = TopicName.parsed(topic)
        count = self._admin.partitions(str(name))  # also says whether a partition is there
        if name.partition >= 0:
            return {name.partition: str(name)}
        return {number: str(name.of_partition(number)) for number in range(count)} or {0: str(name)}

    def view_rules(self) -> ViewRules:
        try:
            configuration = self._admin.runtime_configuration()
        except TransientBrokerError:
            raise
        except BrokerError as error:
            raise RefusedError(
                f"the broker does not report the rules of its compaction: {error.message}",
                hint="give --order, and --retain-null-key or --drop-null-key, as in its broker.conf",
            ) from error
        retains = str(configuration.get("topicCompactionRetainNullKey", "false")).lower() == "true"
        by_event_time = str(configuration.get("compactionServiceFactoryClassName", "")).endswith(BY_EVENT_TIME)
        return ViewRules(retains, "event-time" if by_event_time else "publish")

    def automatic_threshold_bytes(self, topic: str) -> int:
        return self._admin.compaction_threshold(topic) or 0

    @contextmanager
    def hold(self, partition: str) -> Iterator[Hold]:
        with Cluster(self.config).subscribe(partition, COMPACTION, compacted=True) as subscription:
            yield CompactionHold(subscription)

    def is_compacting(self, partition: str) -> bool:
        try:
            return bool(self._admin.compaction_status(partition).get("status") == RUNNING)
        except TransientBrokerError:
            raise
        except BrokerError as error:
            raise RefusedError(
                f"it is unknown whether the broker compacts {partition} itself at the moment: {error.message}"
            ) from error

    def look(self, partition: str) -> TopicLook:
        last = Cluster(self.config).last_id(partition)  # first, so that the ledgers are all up to it
        try:
            stats = self._admin.internal_stats(partition)
        except BrokerError as error:
            if NO_LEDGER not in error.message:
                raise
            raise DamagedError(
                f"{partition}: its compacted ledger is lost, so the broker cannot report on the topic",
                hint="drop the compacted view with `lithify pulsar uncompact`: its readers fail too",
            ) from error
        cursors = stats.get("cursors")
        cursor = cursors.get(COMPACTION) if isinstance(cursors, dict) else None
        unsettled = None if cursor is None else self._unsettled(partition)
        try:
            return _looked(stats, cursor, last, unsettled)
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise BrokerError(f"{partition}: its internal statistics do not have Pulsar's form: {error!r}") from error

    def drop_view(self, partition: str) -> bool:
        admin = self._admin
        if COMPACTION not in admin.subscriptions(partition):
            return False
        had_view = _has_view(admin, partition)
        admin.delete_subscription(partition, COMPACTION)
        admin.unload(partition)  # else the broker still looks for a ledger that was gone before
        return had_view

    def unsettled(self, partition: str) -> int | None:
        return self._unsettled(partition) if COMPACTION in self._admin.subscriptions(partition) else None

    def note_unsettled(self, partition: str, ledger: int | None) -> None:
        admin = self._admin
        properties = admin.subscription_properties(partition, COMPACTION)
        properties.pop(NOTE, None)
        if ledger is not None:
            properties[NOTE] = str(ledger)
        admin.set_subscription_properties(partition, COMPACTION, properties)

    def _unsettled(self, partition: str) -> int | None:
        note = self._admin.subscription_properties(partition, COMPACTION).get(NOTE)
        try:
            return None if note is None else int(note)
        except ValueError as error:
            raise BrokerError(
                f"{partition}: the property {NOTE} of {COMPACTION} is {note!r}, which is not a ledger"
            ) from error


def _has_view(admin: Admin, partition: str) -> bool:
    """Whether a compaction has published one: the subscription also remains of a first one that did not end."""
    try:
        cursors = admin.internal_stats(partition)["cursors"]
        return VIEW in cursors[COMPACTION]["properties"]
    except BrokerError as error:
        if NO_LEDGER not in error.message:
            raise
        return True
    except (LookupError, TypeError) as error:
        raise BrokerError(f"{partition}: its internal statistics do not have Pulsar's form: {error!r}") from error


def _looked(
    stats: Mapping[str, Any], cursor: Mapping[str, Any] | None, last: MessageId | None, unsettled: int | None
) -> TopicLook:
    ledgers = [_ledger(one) for one in stats["ledgers"]]
    if ledgers and not ledgers[-1].entries:  # the one that is written to is listed as empty
        entries, size = int(stats["currentLedgerEntries"]), int(stats["currentLedgerSize"])
        ledgers[-1] = TopicLedger(ledgers[-1].ledger, entries, size)
    served = _ledger(stats["compactedLedger"])
    view = None if cursor is None else cursor["properties"].get(VIEW)
    return TopicLook(
        ledgers=tuple(ledgers),
        last=last,
        horizon=None if cursor is None else _position(cursor["markDeletePosition"]),
        view=None if view is None else int(view),
        served=None if served.ledger < 0 else served,
        unsettled=unsettled,
    )


def _ledger(stats: Mapping[str, Any]) -> TopicLedger:
    return TopicLedger(int(stats["ledgerId"]), int(stats["entries"]), int(stats["size"]))


def _position(text: str) -> MessageId:
    ledger, entry = text.split(":")
    return MessageId(int(ledger), int(entry))
