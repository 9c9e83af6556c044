"""Opens BookKeeper's ledgers where it is called: in the driver, or in a task on another machine."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lithify.errors import ConnectorError
from lithify.model.stored_file import local_folder
from lithify.pulsar.bookkeeper import (
    JavaParts,
    LedgerReader,
    LedgerWriter,
    MetadataStore,
    Replication,
    TopicLedgers,
)
from lithify.pulsar.client import Admin, ClientConfig, TopicReader
from lithify.pulsar.rounds.entry_reader import EntryReader
from lithify.spark.session.java import find_java
from lithify.spark.session.spark_home import SPARK_HOME, installed_spark

JARS_VARIABLE = "LITHIFY_PULSAR_JARS"


@dataclass(frozen=True, slots=True)
class LedgerOpener:
    """Calls start a JVM with the jars in a folder, which is at the same place on all machines."""

    jars: Path
    store: MetadataStore
    replication: Replication

    def __call__(self) -> LedgerWriter:
        """Raises `JavaNotFoundError`, `ConnectorError`, `BrokerError` or `UnusableEnvironmentError`."""
        return LedgerWriter(_parts(self.jars), self.store, self.replication)


READING = (
    "managedLedgerDigestType",
    "managedLedgerPassword",
    "exposingBrokerEntryMetadataToClientEnabled",
    "transactionCoordinatorEnabled",
)
"""What of a broker's configuration reading from bookies needs."""


@dataclass(frozen=True, slots=True)
class LiveReaders:
    """Makes readers of partitions, in tasks. `broker` is its configuration, None if it is not told to this role.

    Many small entries come from bookies, since a broker sends 20,000 of them in a second at most.
    """

    config: ClientConfig
    opener: LedgerOpener
    broker: Mapping[str, Any] | None = field(repr=False)

    @classmethod
    def of(cls, config: ClientConfig, opener: LedgerOpener, broker: Mapping[str, Any] | None) -> LiveReaders:
        return cls(config, opener, broker and {name: broker[name] for name in READING if name in broker})

    def __call__(self, partition: str, small_entries: bool) -> EntryReader:
        """Raises `BrokerError`."""
        if small_entries and self.broker is not None:
            ledgers = TopicLedgers.of(Admin(self.config).internal_stats(partition), self.broker)
            if ledgers is not None:
                return LedgerReader(_parts(self.opener.jars), self.opener.store, ledgers)
        return TopicReader(self.config, partition)


def find_parts(given: str | None) -> JavaParts:
    """What that JVM is made of, complete. Raises `JavaNotFoundError` or `ConnectorError`."""
    parts = _parts(jars_folder(given))
    parts.class_path()
    return parts


def _parts(jars: Path) -> JavaParts:
    return JavaParts(find_java().executable, jars, spark_home() / "jars")


def spark_home() -> Path:
    """Where Spark is on this machine: workers import PySpark from an archive below it."""
    own = installed_spark()
    places = [Path(home) for home in filter(None, [os.environ.get(SPARK_HOME)])]
    return next((place for place in (*places, own, *own.parents) if (place / "jars").is_dir()), own)


def jars_folder(given: str | None) -> Path:
    """The folder of Pulsar's jars: the given one, or $LITHIFY_PULSAR_JARS. Raises `ConnectorError`."""
    folder = given or os.environ.get(JARS_VARIABLE)
    if not folder:
        raise ConnectorError(
            "Pulsar's jars, which write compacted views, are not given",
            hint=f"give --jars DIR, or set {JARS_VARIABLE}, to the `lib` folder of a Pulsar distribution",
        )
    path = local_folder(folder)
    if not path.is_dir():
        raise ConnectorError(f"{path} is not a folder with Pulsar's jars", hint="check --jars")
    return path
