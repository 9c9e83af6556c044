"""What the JVMs of this section do whose classes are archived for those that its tests start.

`tests/pulsar/conftest.py` has the archives made before the first test, where they are missing.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from lithify.model.message import MessageId
from lithify.pulsar.bookkeeper import LedgerReader, MetadataStore, TopicLedgers
from lithify.pulsar.client import Admin, ClientConfig
from support.processes.class_archive import java_with, make_archives, options
from support.pulsar.bookies import a_writer, java_parts
from support.pulsar.clients import read, send
from support.pulsar.jars import broker_archive, ledgers_archive
from support.pulsar.server import PulsarServer

MAKE_S = 600.0


def use_archives() -> None:
    """For all JVMs that this process and its children start from now on."""
    make_archives({broker_archive(): run_broker})
    java = java_with(options(ledgers_archive()), ledgers_archive().with_suffix(".java"))
    os.environ["JAVA_HOME"] = str(java.parent.parent)


def run_broker(options: Sequence[str], folder: Path) -> None:
    """A broker and its bookie that are asked for what tests ask for, ledgers too, and are stopped in order."""
    server = PulsarServer(folder, jvm=options)
    try:
        server.start()
        topic = server.make_topic()
        for _ in range(2):
            send(server, topic, "1", "2", key="k")
            server.unload(topic)
            server.compact(topic)
        assert read(server, topic, 1, is_read_compacted=True) == [b"2"]
        make_archives({ledgers_archive(): lambda options, folder: run_ledgers(options, folder, server)})
    finally:
        server.stop(MAKE_S)


def run_ledgers(options: Sequence[str], folder: Path, server: PulsarServer) -> None:
    """A JVM that reads a topic, then writes a ledger, and ends as it does when its program has ended."""
    parts, topic = java_parts(java_with(options, folder)), server.make_topic()
    last = send(server, topic, "1", "2")[-1]
    admin = Admin(ClientConfig(server.service_url, server.admin_url))
    ledgers = TopicLedgers.of(admin.internal_stats(topic), admin.runtime_configuration())
    assert ledgers is not None
    reader = LedgerReader(parts, MetadataStore.at(server.metadata_url), ledgers)
    assert sum(map(len, reader.read(None, MessageId(last.ledger_id(), last.entry_id())))) == 2
    with a_writer(server, parts) as writer:  # which is lent the same JVM
        writer.create(topic, MessageId(0, 0), "training")
        writer.append([b"entry"])
        ledger, *_ = writer.close()
        assert [found.ledger for found in writer.of(topic, 0)] == [ledger]
        writer.delete(ledger)
        process = writer._jvm._process
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(MAKE_S) == 0
