"""The ledgers of views in a cluster's BookKeeper (`ports/pulsar/views.py`)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from lithify.errors import InvalidNameError
from lithify.ports.pulsar.views import RoundLedger, ViewLedger
from lithify.pulsar.bookkeeper import LedgerWriter, MetadataStore
from lithify.pulsar.client import Admin, ClientConfig
from lithify.pulsar.client.names import TopicName


@dataclass(frozen=True, slots=True)
class LiveViewLedgers:
    """See `ports.pulsar.views.ViewLedgers`."""

    ledgers: LedgerWriter

    def newer_than(self, partition: str, ledger: int) -> tuple[ViewLedger, ...]:
        return tuple(ViewLedger(one.ledger, one.run_id or None) for one in self.ledgers.of(partition, ledger + 1))

    def of_rounds(self) -> tuple[RoundLedger, ...]:
        return tuple(RoundLedger(*one) for one in self.ledgers.of_rounds())

    def with_messages(self, partitions: Collection[str]) -> frozenset[str]:
        managed = dict[str, str]()
        there = set[str]()
        for partition in partitions:
            try:
                managed[TopicName.parsed(partition).managed_ledger] = partition
            except InvalidNameError:
                there.add(partition)
        return frozenset(there.union(managed[name] for name in self.ledgers.managed_ledgers() if name in managed))

    def delete(self, ledger: int) -> None:
        self.ledgers.delete(ledger)


def opened_by(open_ledgers: Callable[[], LedgerWriter]) -> Callable[[], AbstractContextManager[LiveViewLedgers]]:
    """Opens them by what opens BookKeeper's."""

    @contextmanager
    def opened() -> Iterator[LiveViewLedgers]:
        with open_ledgers() as ledgers:
            yield LiveViewLedgers(ledgers)

    return opened


def metadata_store(config: ClientConfig, url: str | None) -> MetadataStore:
    """The one at a URL, or if that is None the one that the admin interface tells. Raises `BrokerError`."""
    return MetadataStore.of(Admin(config).internal_configuration()) if url is None else MetadataStore.at(url)
