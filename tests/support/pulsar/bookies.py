"""Writers of ledgers for the tests' own cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pyspark

from lithify.pulsar.bookkeeper import JavaParts, LedgerWriter, MetadataStore, Replication
from lithify.spark.session.java import find_java
from support.pulsar.jars import pulsar_jars
from support.pulsar.server import PulsarServer

ONE_BOOKIE = Replication(1, 1, 1)


@cache
def java_parts(java: Path | None = None) -> JavaParts:
    """Java is asked for its version once."""
    return JavaParts(java or find_java().executable, pulsar_jars(), Path(pyspark.__file__).parent / "jars")


@contextmanager
def a_writer(server: PulsarServer, parts: JavaParts | None = None, answer_s: float = 30) -> Iterator[LedgerWriter]:
    with LedgerWriter(parts or java_parts(), MetadataStore.at(server.metadata_url), ONE_BOOKIE, answer_s) as writer:
        yield writer


def spoil(server: PulsarServer, value: bytes) -> None:
    """Changes a stored value on the disk of the bookie, which must be down."""
    files = [file for file in (server.folder / "bookie").rglob("*") if file.is_file() and value in file.read_bytes()]
    assert files, "the value is not there"
    for file in files:
        file.write_bytes(file.read_bytes().replace(value, value[::-1]))
