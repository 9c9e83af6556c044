"""Ledgers of BookKeeper, written and read by a small JVM with Pulsar's own jars.

with LedgerWriter(parts, MetadataStore.of(...), Replication.of(...)) as writer:
    ledger = writer.create(topic, horizon, run_id)
    writer.append(entries)
    written = writer.close()
"""

from lithify.pulsar.bookkeeper.ledger_jvm import JavaParts
from lithify.pulsar.bookkeeper.ledger_reader import LedgerReader, TopicLedgers
from lithify.pulsar.bookkeeper.ledgers import CompactedLedger, LedgerWriter, MetadataStore, Replication, Written

__all__ = [
    "CompactedLedger",
    "JavaParts",
    "LedgerReader",
    "LedgerWriter",
    "MetadataStore",
    "Replication",
    "TopicLedgers",
    "Written",
]
