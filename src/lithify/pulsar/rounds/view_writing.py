"""Writes a view: the entries of a partition in order, without the messages that are removed (C54).

    range of entries ─► rows ─► dead ─► entries that keep a message, batches with placeholders ─► ledger
                        │        ╰ found by the key pass, or by the keys of the newer part
                        ╰ counted: the same entries as the key pass read, and as many as the earlier view has, or
                          the view is not written to the end

Ids and order remain. Memory holds two lists of entries of the reader at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from lithify.columnar.keypass.ranks import Portion
from lithify.columnar.rewrite import Throttles
from lithify.columnar.segment.dead_records import DeadPositions, Flags
from lithify.errors import DamagedError, EngineError
from lithify.pulsar.columns import Damage, rewritten
from lithify.pulsar.format.framing import framed
from lithify.pulsar.rounds.entry_reader import EntriesRead, EntryReader
from lithify.pulsar.rounds.entry_scan import NumberedRange
from lithify.pulsar.rounds.round_messages import RoundMessages, RoundRules, round_messages_of
from lithify.waits.overlap import one_ahead

Verdict = Callable[[RoundMessages, int], Flags]
"""Which messages are removed, of these and the number in the range of the first: bool, one per message."""

Append = Callable[[Sequence[bytes]], None]
"""Appends framed entries to a ledger."""


@dataclass(slots=True)
class ViewCounts:
    """What was read and written. Bytes count entries as brokers store them."""

    messages_in: int = 0
    messages_out: int = 0
    entries_in: int = 0
    entries_out: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    damage: Damage = field(default_factory=Damage)


@dataclass(slots=True)
class ViewWriting:
    """The writing of one view. `counts` are complete once all ranges are written."""

    reader: EntryReader
    rules: RoundRules
    append: Append
    throttles: Throttles = Throttles()
    counts: ViewCounts = field(default_factory=ViewCounts)

    def write(self, part: ViewRange) -> None:
        """Writes what remains of a range.

        Raises `EngineError` if its entries are not those that were judged, `DamagedError` if they are not as many as
        their view has, and errors of reader and ledger.
        """
        read, expected = EntriesRead(), part.read
        entries = part.one.entries
        for raws in one_ahead(self.reader.read(entries.start, entries.end, compacted=entries.compacted)):
            self.throttles.read(sum(len(raw.data) for raw in raws))
            read.add(raws)
            for messages in round_messages_of(raws, self.rules, self.counts.damage):
                dead = part.verdict(messages, read.rows)
                read.rows += messages.count
                self._append(self._kept(messages, ~dead))
        if entries.view is not None and read.entries != entries.view.entries:
            raise DamagedError(
                f"compacted ledger {entries.view.ledger}: {read.entries} entries were read, but the broker reports "
                f"{entries.view.entries}",
                hint="nothing was changed; try again, and if the error remains, drop the compacted view with `lithify "
                "pulsar uncompact`",
            )
        self.counts.entries_in += read.entries
        self.counts.bytes_in += read.size_bytes
        if expected is not None and read != expected:
            raise EngineError(
                f"the entries up to {entries.end} are not the ones that the key pass read: {read.entries} instead of "
                f"{expected.entries}",
                hint="run it again: the topic was trimmed or truncated meanwhile; nothing was changed",
            )

    def _kept(self, part: RoundMessages, alive: Flags) -> list[bytes]:
        """The entries that keep a message, framed."""
        counts, messages = self.counts, part.messages
        counts.messages_in += part.counted(np.ones(part.count, np.bool_))
        counts.messages_out += part.counted(alive)
        kept = [
            raw._replace(data=data)
            for raw, data in zip(messages.entries, rewritten(messages, alive), strict=True)
            if data is not None
        ]
        counts.entries_out += len(kept)
        counts.bytes_out += sum(len(raw.data) for raw in kept)
        return [framed(raw) for raw in kept]

    def _append(self, entries: list[bytes]) -> None:
        if entries:
            self.append(entries)
            self.throttles.write(sum(map(len, entries)))


@dataclass(frozen=True, slots=True)
class ViewRange:
    """A range of entries, what is removed of it, and what was read of it to find that."""

    one: NumberedRange
    verdict: Verdict
    read: EntriesRead | None = None


def view_range(
    one: NumberedRange, rules: RoundRules, dead: DeadPositions | None, read: EntriesRead | None
) -> ViewRange:
    """A range by what a key pass found of it; None removes all of a dirty range and nothing of a clean one."""
    if dead is None:
        dead = DeadPositions() if one.portion(rules) is Portion.CLEAN else DeadPositions.all_but(())
    return ViewRange(one, partial(_positions, dead), read)


def _positions(dead: DeadPositions, part: RoundMessages, first: int) -> Flags:
    return dead.flags(first, first + part.count)
