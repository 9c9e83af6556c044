"""Reads a topic from its bookies, past its broker: some ten times as fast where entries are small.

    TopicLedgers.of(internal statistics) ──►  view, up to the horizon  │ ledger │ ledger │ ledger    to `end`
                                              (compacted reads only)

A broker also filters what readers must not see: aborted transactions. Bookies do not, so this is for clusters
without transactions. Entries behind `end` may be unfinished; the caller says an `end` that a broker confirmed.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, Final

from lithify.errors import BrokerError
from lithify.model.message import MessageId
from lithify.pulsar.bookkeeper.kept_jvms import lent_jvm
from lithify.pulsar.bookkeeper.ledger_jvm import JavaParts, LedgerJvm
from lithify.pulsar.bookkeeper.ledgers import MetadataStore, sized
from lithify.pulsar.format.entry import BROKER_METADATA_MAGIC, RawEntry
from lithify.pulsar.format.framing import unframed

VIEW_DIGEST: Final = "CRC32"
"""Of compacted ledgers, which have no password."""
NOTHING: Final = MessageId(-1, -1)
FIRST: Final = MessageId(0, 0)
TO_THE_LAST: Final = -1
BEFORE_METADATA: Final = 6
"""Bytes of magic and size."""

_LONG: Final = struct.Struct(">q")
_RANGE: Final = struct.Struct(">qq")
_PAGE: Final = struct.Struct(">qI")
_SIZE: Final = struct.Struct(">I")


@dataclass(frozen=True, slots=True)
class TopicLedgers:
    """The ledgers of a topic, or one partition, as a broker told. An active topic gets more over time."""

    closed: tuple[tuple[int, int], ...]
    """Ledgers and how many entries they have, by id."""
    open: int
    """The one that is written to."""
    view: int | None
    """The ledger of the compacted view; None: there is none."""
    horizon: MessageId
    digest: str = "CRC32C"
    password: bytes = b""
    shows_broker_metadata: bool = False
    """Whether readers get what brokers put before an entry."""

    @classmethod
    def of(cls, stats: Mapping[str, Any], runtime_configuration: Mapping[str, Any]) -> TopicLedgers | None:
        """From what the admin interface tells; None: ledgers were offloaded, or the cluster has transactions."""
        try:
            listed = [(int(ledger["ledgerId"]), int(ledger["entries"])) for ledger in stats["ledgers"]]
            offloaded = any(ledger["offloaded"] for ledger in stats["ledgers"])
            view = int(stats["compactedLedger"]["ledgerId"])
            cursor = stats["cursors"].get("__compaction", {}).get("markDeletePosition", "-1:-1")
            horizon = MessageId(*map(int, cursor.split(":")))
            digest = str(runtime_configuration["managedLedgerDigestType"])
            password = str(runtime_configuration["managedLedgerPassword"]).encode()
            exposing = runtime_configuration.get("exposingBrokerEntryMetadataToClientEnabled") == "true"
            transactions = runtime_configuration["transactionCoordinatorEnabled"] != "false"
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise BrokerError(
                f"the admin interface reports ledgers in a form that Lithify does not support: {error!r}"
            ) from error
        if offloaded or transactions or not listed:
            return None
        closed, newest = tuple(listed[:-1]), listed[-1][0]
        if view < 0:
            return cls(closed, newest, None, NOTHING, digest, password, exposing)
        return cls(closed, newest, view, horizon, digest, password, exposing)

    def between(self, start: MessageId, end: MessageId) -> Iterator[tuple[int, int, int]]:
        """Ledger, first and last entry of each part of a range, both inclusive. Raises `BrokerError` if it is newer."""
        if end.ledger > self.open:
            raise BrokerError(
                f"entry {end} is in a ledger that is newer than all ledgers that the broker reported", hint="try again"
            )
        ledgers = [*self.closed, (self.open, end.entry + 1 if end.ledger == self.open else 0)]
        for ledger, entries in ledgers:
            first = start.entry if ledger == start.ledger else 0
            last = min(entries - 1, end.entry) if ledger == end.ledger else entries - 1
            if start.ledger <= ledger <= end.ledger and max(0, first) <= last:
                yield ledger, max(0, first), last


@dataclass(frozen=True, slots=True)
class LedgerReader:
    """Reads entries of one topic, or partition, whose ledgers are known. Picklable."""

    parts: JavaParts
    store: MetadataStore
    ledgers: TopicLedgers
    answer_s: float = 30.0

    def read(self, start: MessageId | None, end: MessageId, *, compacted: bool = False) -> Iterator[list[RawEntry]]:
        """As of `TopicReader`: entries from `start`, or the first one, to `end`, in lists of some MiB.

        Nothing is verified but what BookKeeper itself does. Raises `BrokerError`, also for a ledger that was deleted
        meanwhile, and `DamagedError` for a view's entry that is in no frame.
        """
        with lent_jvm(self.parts, self.store.uri, self.store.ledgers_path, self.answer_s) as jvm:
            begin, ledgers = start or FIRST, self.ledgers
            if compacted and ledgers.view is not None and begin[:2] <= ledgers.horizon[:2]:
                yield from _of_view(jvm, ledgers.view, begin, end)
                begin = MessageId(ledgers.horizon.ledger, ledgers.horizon.entry + 1)
            for ledger, first, last in ledgers.between(begin, end):
                for page in _pages(jvm, (ledger, first, last), ledgers.digest, ledgers.password):
                    yield page if ledgers.shows_broker_metadata else [_without_broker_metadata(raw) for raw in page]


def _of_view(jvm: LedgerJvm, view: int, begin: MessageId, end: MessageId) -> Iterator[list[RawEntry]]:
    for page in _pages(jvm, (view, 0, TO_THE_LAST), VIEW_DIGEST, b""):
        entries = [unframed(raw.data) for raw in page]
        if wanted := [raw for raw in entries if begin[:2] <= raw[:2] <= end[:2]]:
            yield wanted


def _pages(jvm: LedgerJvm, part: tuple[int, int, int], digest: str, password: bytes) -> Iterator[list[RawEntry]]:
    """Ledger, first and last entry of a part, as lists of entries."""
    ledger, first, last = part
    jvm.send(b"R", _LONG.pack(ledger), sized(digest.encode()), sized(password), _RANGE.pack(first, last))
    while True:
        page = jvm.answer()
        first, count = _PAGE.unpack_from(page)
        if not count:
            return
        begin = _PAGE.size + 4 * count
        places = pairwise(accumulate(struct.unpack_from(f">{count}I", page, _PAGE.size), initial=begin))
        yield [RawEntry(ledger, entry, page[at:end]) for entry, (at, end) in enumerate(places, first)]


def _without_broker_metadata(raw: RawEntry) -> RawEntry:
    if raw.data[:2] != BROKER_METADATA_MAGIC or len(raw.data) < BEFORE_METADATA:
        return raw
    (size,) = _SIZE.unpack_from(raw.data, 2)
    return RawEntry(raw.ledger, raw.entry, raw.data[BEFORE_METADATA + size :])
