"""Compacted ledgers as brokers expect them: created, filled, closed, deleted, and found again.

    create ─► append, append, ... ─► close        one at a time
    of(topic, since) ─► those that a run left     delete
    of_rounds ─► those of all topics              managed_ledgers ─► what topics there are, as BookKeeper knows it

A ledger belongs to no topic until a broker has been told of it. So a run that fails deletes its own, and
the next one finds what a killed run has left by the metadata of ledgers.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Self

from google.protobuf.message import DecodeError

from lithify.errors import BrokerError, InvalidSettingError
from lithify.model.message import MessageId
from lithify.pulsar.bookkeeper.kept_jvms import lent_jvm
from lithify.pulsar.bookkeeper.ledger_jvm import JavaParts
from lithify.pulsar.format.wire_pb2 import MessageIdData

REQUEST_BYTES: Final = 4 << 20
"""Entries of about this number of bytes are sent to the JVM at a time."""
REQUEST_ENTRIES: Final = 20_000
UNANSWERED_AT_MOST: Final = 3
ENTRY_OVERHEAD_BYTES: Final = 100

RUN: Final = "lithify/run"
COMPACTED: Final = b"compacted-ledger"
MANAGED: Final = b"managed-ledger"
"""Of messages, and of cursors."""
PREFIX: Final = "metadata-store:"
OF_ONE_PROCESS: Final = ("rocksdb:", "memory:")
"""Metadata stores that only the broker that made them has."""

_INT: Final = struct.Struct(">I")
_LONG: Final = struct.Struct(">q")
_LONGS: Final = struct.Struct(">qq")
_LEDGER_HEAD: Final = struct.Struct(">qB")


@dataclass(frozen=True, slots=True)
class Replication:
    """On how many bookies entries are: as the cluster does it for topics."""

    ensemble: int
    write_quorum: int
    ack_quorum: int

    @classmethod
    def of(cls, runtime_configuration: Mapping[str, Any]) -> Replication:
        """From what the admin interface tells. Raises `BrokerError`."""
        names = ("EnsembleSize", "WriteQuorum", "AckQuorum")
        try:
            return cls(*(int(runtime_configuration[f"managedLedgerDefault{name}"]) for name in names))
        except (KeyError, ValueError, TypeError) as error:
            raise BrokerError(f"the broker's configuration does not have its replication: {error}") from error


@dataclass(frozen=True, slots=True)
class MetadataStore:
    """Where BookKeeper keeps what ledgers there are. `uri` is a metadata service URI of BookKeeper."""

    uri: str
    ledgers_path: str = "/ledgers"

    @classmethod
    def of(cls, internal_configuration: Mapping[str, Any]) -> MetadataStore:
        """From what the admin interface tells. Raises `BrokerError`."""
        own = internal_configuration.get("bookkeeperMetadataServiceUri")
        url = own or internal_configuration.get("metadataStoreUrl") or internal_configuration.get("zookeeperServers")
        if not isinstance(url, str):
            raise BrokerError("the admin interface does not report where the metadata store is")
        path = internal_configuration.get("ledgersRootPath")
        return cls.at(url, path if isinstance(path, str) and path else "/ledgers")

    @classmethod
    def at(cls, url: str, ledgers_path: str = "/ledgers") -> MetadataStore:
        """Of a metadata store's URL as Pulsar has it, such as zk:host:2181. Raises `InvalidSettingError`."""
        if not url or not url.isprintable() or any(character.isspace() for character in url):
            raise InvalidSettingError(f"{url!r} is not the URL of a metadata store")
        store = url.removeprefix(PREFIX)
        if store.startswith(OF_ONE_PROCESS):  # a client of ours would make another, empty one
            hint = (
                "set PULSAR_STANDALONE_USE_ZOOKEEPER=1 before a standalone Pulsar first starts: it then uses ZooKeeper"
            )
            raise InvalidSettingError(f"the metadata store {store} cannot be reached by other programs", hint=hint)
        return cls(f"{PREFIX}{store}", ledgers_path)


class Written(NamedTuple):
    """A closed ledger."""

    ledger: int
    entries: int
    size: int
    """Bytes."""


class CompactedLedger(NamedTuple):
    """A ledger with a compacted view. `run_id` is empty for ledgers of Pulsar's own compactor."""

    ledger: int
    is_closed: bool
    horizon: MessageId
    run_id: str


class RoundLedger(NamedTuple):
    """A ledger that a round of Lithify made for the compacted view of a topic up to an entry."""

    ledger: int
    topic: str
    run_id: str
    horizon: MessageId


class _Listed(NamedTuple):
    """A ledger as the JVM tells it."""

    ledger: int
    is_closed: bool
    topic: str
    compacted_to: bytes
    run_id: str


class LedgerWriter:
    """A client of BookKeeper in a JVM that no other thread uses meanwhile: a context manager.

    Calls raise `BrokerError` if BookKeeper refuses or does not answer in `answer_s` seconds, and
    `UnusableEnvironmentError` if the JVM fails, which nothing can be asked for afterwards.
    """

    def __init__(
        self, parts: JavaParts, store: MetadataStore, replication: Replication, answer_s: float = 30.0
    ) -> None:
        self._lent = lent_jvm(parts, store.uri, store.ledgers_path, answer_s)
        self._jvm = self._lent.__enter__()
        self._replication = replication
        self._ledger: int | None = None
        """The one that is open."""
        self._unanswered = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        if self._ledger is not None or self._unanswered:
            self._jvm.end()  # what was left unfinished ends with it
        self._lent.__exit__(kind, error, trace)

    def create(self, topic: str, horizon: MessageId, run_id: str) -> int:
        """A new ledger for the compacted view of a topic, or one partition, up to an entry; its id."""
        metadata = {
            "application": b"pulsar",
            "component": COMPACTED,
            "pulsar/compactedTopic": topic.encode(),
            "pulsar/compactedTo": MessageIdData(
                ledger_id=horizon.ledger, entry_id=horizon.entry, batch_size=0
            ).SerializeToString(),
            RUN: run_id.encode(),
        }
        counts = (self._replication.ensemble, self._replication.write_quorum, self._replication.ack_quorum)
        pairs = [sized(part) for name, value in metadata.items() for part in (name.encode(), value)]
        answer = self._jvm.ask(b"C", *map(_INT.pack, counts), _INT.pack(len(metadata)), *pairs)
        ledger: int = _LONG.unpack(answer)[0]
        self._ledger = ledger
        return ledger

    def append(self, entries: Sequence[bytes]) -> None:
        """Entries in the frame of compacted ledgers. An error of a bookie may come with a later call."""
        part: list[bytes] = []
        size = 0
        for entry in entries:
            part.append(entry)
            size += len(entry) + ENTRY_OVERHEAD_BYTES
            if size >= REQUEST_BYTES or len(part) >= REQUEST_ENTRIES:
                self._send(part)
                part, size = [], 0
        if part:
            self._send(part)

    def close(self) -> Written:
        """Waits for all entries and closes the ledger, which readers can open then."""
        self._settle(0)
        assert self._ledger is not None, "no ledger was created"
        written = Written(self._ledger, *_LONGS.unpack(self._jvm.ask(b"E")))
        self._ledger = None
        return written

    def delete(self, ledger: int) -> None:
        """Succeeds even if it is not there (any more)."""
        self._abandon()
        self._jvm.ask(b"D", _LONG.pack(ledger))

    def of(self, topic: str, since: int) -> list[CompactedLedger]:
        """Ledgers with an id of at least `since` that say they are compacted views of the topic, by id."""
        return sorted(
            CompactedLedger(one.ledger, one.is_closed, _horizon(one), one.run_id)
            for one in self._listed(COMPACTED, topic, since)
        )

    def of_rounds(self) -> list[RoundLedger]:
        """All that rounds of Lithify made and that are there, of any topic, by id."""
        listed = self._listed(COMPACTED)
        return sorted(RoundLedger(one.ledger, one.topic, one.run_id, _horizon(one)) for one in listed if one.run_id)

    def managed_ledgers(self) -> Iterator[str]:
        """By Pulsar's name, the managed ledger of each ledger that topics have; many of them more than once."""
        return (one.topic for one in self._listed(MANAGED))

    def _listed(self, component: bytes, topic: str = "", since: int = 0) -> Iterator[_Listed]:
        """Of one topic, or of all."""
        self._abandon()
        page = self._jvm.ask(b"L", _LONG.pack(since), sized(component), sized(topic.encode()))
        while True:
            yield from _on_page(page[1:])
            if page[0] == 0:
                return
            page = self._jvm.ask(b"N")

    def _send(self, entries: Sequence[bytes]) -> None:
        self._settle(UNANSWERED_AT_MOST)
        sizes = map(_INT.pack, map(len, entries))
        body = b"".join([part for pair in zip(sizes, entries, strict=True) for part in pair])
        self._jvm.send(b"A", _INT.pack(len(entries)), body)
        self._unanswered += 1

    def _settle(self, unanswered: int) -> None:
        """Waits until only this number of requests have no response. Raises what one of the others failed with."""
        while self._unanswered > unanswered:
            self._unanswered -= 1
            self._jvm.answer()

    def _abandon(self) -> None:
        """Requests under way do not matter any more: even if one failed, the JVM takes further requests."""
        while self._unanswered:
            try:
                self._settle(0)
            except BrokerError:
                continue


def sized(part: bytes) -> bytes:
    """A part of a request, behind its size."""
    return _INT.pack(len(part)) + part


def _on_page(page: bytes) -> Iterator[_Listed]:
    at = 0
    while at < len(page):
        ledger, closed = _LEDGER_HEAD.unpack_from(page, at)
        at += _LEDGER_HEAD.size
        parts = []
        for _ in range(3):
            (size,) = _INT.unpack_from(page, at)
            parts.append(page[at + _INT.size : at + _INT.size + size])
            at += _INT.size + size
        topic, compacted_to, run = parts
        yield _Listed(ledger, closed == 1, topic.decode(errors="replace"), compacted_to, run.decode(errors="replace"))


def _horizon(listed: _Listed) -> MessageId:
    try:
        at = MessageIdData.FromString(listed.compacted_to)
    except DecodeError as error:
        raise BrokerError(f"ledger {listed.ledger} does not have the entry up to which it is compacted") from error
    return MessageId(at.ledger_id, at.entry_id)
