"""Partitions of Pulsar topics for tests: entries of every kind by Hypothesis, and readers of them without a server."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hypothesis import strategies as st

from lithify.model.message import MessageId
from lithify.ports.pulsar.views import EntryRange, ServedView
from lithify.pulsar.format.codecs import KNOWN
from lithify.pulsar.format.entry import RawEntry
from lithify.pulsar.format.wire_pb2 import EncryptionKeys
from support.pulsar.entries import Form, Sent, batch, single

_HEADER = struct.Struct("<qqI")
SEALING = {"encryption_keys": [EncryptionKeys(key=b"k", value=b"v")]}


@dataclass(frozen=True, slots=True)
class StoredTopic:
    """The entries of a partition and of its view, each in a file. An `EntryReader`."""

    backlog: Path
    view: Path
    horizon: MessageId | None = None
    at_once: int = 3
    """Entries in one list."""

    @staticmethod
    def of(folder: Path, backlog: Sequence[RawEntry], view: Sequence[RawEntry] = (), at_once: int = 3) -> StoredTopic:
        """In a folder; the view covers all up to its last entry."""
        topic = StoredTopic(folder / "backlog", folder / "view", at_once=at_once)
        for path, entries in ((topic.backlog, backlog), (topic.view, view)):
            with path.open("wb") as file:
                for ledger, entry, data in entries:
                    file.write(_HEADER.pack(ledger, entry, len(data)) + data)
        return topic

    def read(self, start: MessageId | None, end: MessageId, *, compacted: bool = False) -> Iterator[list[RawEntry]]:
        found: list[RawEntry] = []
        with (self.view if compacted else self.backlog).open("rb") as file:
            while header := file.read(_HEADER.size):
                ledger, entry, size = _HEADER.unpack(header)
                if (ledger, entry) > end[:2]:
                    break
                if start is not None and (ledger, entry) < start[:2]:
                    file.seek(size, 1)
                    continue
                found.append(RawEntry(ledger, entry, file.read(size)))
                if len(found) == self.at_once:
                    yield found
                    found = []
        if found:
            yield found


VIEW = 99
"""The ledger of any view."""


def ranges_of(backlog: Sequence[RawEntry], view: Sequence[RawEntry] = (), cuts: int = 1) -> tuple[EntryRange, ...]:
    """The ranges of a round: the view, then the backlog after it in `cuts` pieces."""
    ranges = []
    if view:
        end = MessageId(view[-1].ledger, view[-1].entry)
        ranges.append(EntryRange(None, end, sum(len(raw.data) for raw in view), ServedView(VIEW, len(view))))
    size = -(-len(backlog) // cuts) if backlog else 1
    for at in range(0, len(backlog), size):
        piece = backlog[at : at + size]
        start, end = (MessageId(raw.ledger, raw.entry) for raw in (piece[0], piece[-1]))
        ranges.append(EntryRange(start, end, sum(len(raw.data) for raw in piece)))
    return tuple(ranges)


KEYS = st.sampled_from([None, "", "a", "b", "c", "d", "eeeeeeee"])
MESSAGES = st.builds(
    Sent, key=KEYS, value=st.sampled_from([b"v", b"w" * 40, b"", None]), event_time=st.sampled_from([0, 0, 1, 2, 3])
)
FORMS = st.builds(Form, codec=st.sampled_from(sorted(KNOWN)), checksum=st.booleans())


@dataclass(frozen=True, slots=True)
class _Entry:
    """An entry to be, without its id."""

    kind: str
    messages: tuple[Sent, ...]
    form: Form
    chunk: tuple[int, int]
    """Of which chunked message, and which chunk."""

    def at(self, ledger: int, entry: int) -> RawEntry:
        first, form = self.messages[0], self.form
        match self.kind:
            case "batch":
                return batch(ledger, entry, self.messages, form)
            case "sealed batch":
                return batch(ledger, entry, self.messages, form, **SEALING)
            case "sealed":
                return single(ledger, entry, first, form, **SEALING)
            case "marker":
                return single(ledger, entry, first, form, marker_type=1)
            case "chunk":
                unit, number = self.chunk
                of_unit = Sent(key=[None, "a", "b"][unit % 3], value=b"part", event_time=unit % 4)
                uuid = f"p-{unit}".encode()
                return single(
                    ledger,
                    entry,
                    of_unit,
                    form,
                    uuid=uuid,
                    chunk_id=number,
                    num_chunks_from_msg=2,
                    total_chunk_msg_size=8,
                )
            case _:
                return single(ledger, entry, first, form)


def entries(kinds: Sequence[str], *, max_size: int = 24) -> st.SearchStrategy[list[RawEntry]]:
    """Entries of a partition, in three ledgers, of these kinds."""
    one = st.builds(
        _Entry,
        kind=st.sampled_from(kinds),
        messages=st.lists(MESSAGES, min_size=1, max_size=4).map(tuple),
        form=FORMS,
        chunk=st.tuples(st.integers(0, 3), st.integers(0, 1)),
    )
    return st.lists(one, min_size=1, max_size=max_size).map(
        lambda made: [entry.at(5 + number // 10, number % 10) for number, entry in enumerate(made)]
    )


PLAIN_KINDS = ("batch", "batch", "single", "single", "marker")
ALL_KINDS = (*PLAIN_KINDS, "sealed", "sealed batch", "chunk", "chunk")
