"""Where a copy of one partition continues, and when it must not: pure decisions from ids and what brokers tell.

    copy       |------------ 7:41                    has everything up to 7:41
    ledgers    [ 7 ][ 9 ][ 12 ]                      continue behind 7:41: the ledger is there, so are those after it
    ledgers              [ 12 ]    ours passed 7:41  continue: brokers trim only what our subscription has passed
    ledgers              [ 12 ]    it is gone, moved lost: entries behind 7:41 may have been trimmed
                                   on, or by others
    ledgers              [ 12 ]    ours passed 7:41, lost: a TTL may have moved it to the end of ledger 7 before
                                   seen too long ago       the trim, past entries behind 7:41
    last id 3:8                                      went back: another topic of that name
    ledgers    [ 3 ]     [ 12 ]                      was cut: brokers trim from the start on, so 7 was never there
    ledgers    [ 7, of 9 entries ][ 12 ]             was cut: 7:41 was never there

Ids of ledgers never come twice in a cluster. Brokers move a cursor out of ledgers that they trim, so each
acknowledgement also notes its own place, as properties of the cursor. After a truncation of the copy that place is
beyond the copy's end: what was truncated can be copied again only while Pulsar has it. A TTL moves the cursor and
leaves the notes as they are. So they also say when the copy last had everything: what was published since then has
not expired before the TTL is over. Without the admin interface brokers tell neither ledgers nor cursors, so only a
topic that went back is noticed (C52).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from lithify.errors import BrokerError
from lithify.model.message import NO_BATCH, MessageId
from lithify.rules.lifecycle.copies.copy_continuation import (
    CopyContinuation,
    CopyContinues,
    NeverCopied,
    SourceWasCut,
    SourceWentBack,
)

NOTES: Final = ("lithify-ledger", "lithify-entry", "lithify-seen")
NOTED_EVERY_MS: Final = 60_000
"""A copy that has had everything since its last note, and gets nothing new, notes that at this interval."""
CLOCKS_MS: Final = 5_000
"""How far clocks of producers, brokers and ingests may differ: producers say when messages were published."""


@dataclass(frozen=True, slots=True)
class Note:
    """What an acknowledgement notes: its place, and a time, in epoch ms.

    What was published before that time had been copied by then, as far as it was there; None: it never had.
    """

    place: MessageId
    seen_ms: int | None = None

    @property
    def properties(self) -> dict[str, int]:
        """Of the cursor."""
        values = self.place.place if self.seen_ms is None else (*self.place.place, self.seen_ms)
        return dict(zip(NOTES, values, strict=False))

    def is_outdated(self, place: MessageId, seen_ms: int | None) -> bool:
        """Whether a copy that is at `place` now, and had everything at that time, should note it."""
        if place != self.place or seen_ms is None:
            return place != self.place
        return self.seen_ms is None or abs(seen_ms - self.seen_ms) >= NOTED_EVERY_MS  # or by a clock that was ahead


@dataclass(frozen=True, slots=True)
class Ledgers:
    """The internal statistics of a partition: its ledgers, and the position of our subscription, if it is there.

    `cursor` is where brokers have it, `noted` what we have stored there. `trimmed` is how many entries the broker has
    trimmed since it opened the topic. `end` is the broker's last entry, even if it was trimmed. `closed` has the
    ledgers that get no more entries, with their numbers of entries.
    """

    ids: tuple[int, ...]
    cursor: MessageId | None = None
    noted: Note | None = None
    trimmed: int = 0
    end: MessageId | None = None
    closed: Mapping[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, stats: Mapping[str, Any], subscription: str) -> Ledgers:
        """Raises `BrokerError` for statistics that are not a topic's."""
        try:
            entries = {int(ledger["ledgerId"]): int(ledger["entries"]) for ledger in stats["ledgers"]}
            cursor = stats["cursors"].get(subscription)
            trimmed = int(stats["entriesAddedCounter"]) - int(stats["numberOfEntries"])
            place = None if cursor is None else _place(cursor["markDeletePosition"])
            noted = None if cursor is None else _noted(cursor["properties"])
            end = _place(stats["lastConfirmedEntry"])
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise BrokerError(f"the internal statistics of a topic do not have Pulsar's form: {error!r}") from error
        closed = {ledger: count for ledger, count in entries.items() if count and ledger < max(entries)}
        return cls(tuple(entries), place, noted, max(0, trimmed), end, closed)

    def grown_to(self, later: Ledgers) -> Ledgers:
        """With the ledgers as they were later; where the subscription stands, and what was trimmed, as before."""
        return replace(self, ids=later.ids, end=later.end, closed=later.closed)

    @property
    def start(self) -> MessageId | None:
        """Just before the first entry that is there; None: there is no ledger."""
        return MessageId(min(self.ids), -1) if self.ids else None

    def start_beyond(self, copied_to: MessageId) -> MessageId | None:
        """Where the ledgers start if the ledger of `copied_to` is not there any more."""
        return self.start if self.start is not None and self.start.ledger > copied_to.ledger else None

    def never_had(self, copied_to: MessageId) -> bool:
        """Whether an entry that a copy has was not trimmed, and is not there: the cluster was set back behind it."""
        if copied_to.entry < 0:  # the start of a ledger, which may have got no entry, so that it went
            return False
        if self.end is not None and self.end.place < copied_to.place:
            return True
        if copied_to.ledger not in self.ids:
            return any(ledger < copied_to.ledger for ledger in self.ids)
        return self.closed.get(copied_to.ledger, copied_to.entry + 1) <= copied_to.entry


@dataclass(frozen=True, slots=True)
class Unexpired:
    """The time in which messages were published that no TTL can have removed: what is later is by a wrong clock."""

    since_ms: int
    until_ms: int

    def has(self, seen_ms: int | None) -> bool:
        return seen_ms is not None and self.since_ms <= seen_ms <= self.until_ms


def continuation(
    copied_to: MessageId | None,
    known: Ledgers | None,
    last: MessageId | None,
    alive: Unexpired | None = None,
) -> CopyContinuation:
    """How the copy continues that has everything up to `copied_to`.

    `known` is what the admin interface tells, its cursor as it was before this ingest subscribed; `last` the id of the
    last message there. What was published while it is `alive` cannot have expired; None: nothing can.
    """
    if copied_to is None:
        if known is not None and known.start is not None and known.trimmed:
            return NeverCopied(None, known.start)
        return CopyContinues(None)
    if last is not None and last.place < copied_to.place:
        return SourceWentBack(copied_to, MessageId(*last.place))
    if known is not None and known.never_had(copied_to):
        return SourceWasCut(copied_to, None)
    start = None if known is None else known.start_beyond(copied_to)
    if known is None or start is None or (known.end is not None and copied_to.covers(known.end)):
        return CopyContinues(copied_to)
    noted = known.noted
    if known.cursor is None or noted is None or not copied_to.covers(noted.place) or known.cursor > start:
        return NeverCopied(copied_to, start)
    if alive is not None and not alive.has(noted.seen_ms):
        return NeverCopied(copied_to, start)
    return CopyContinues(copied_to)


def unexpired(ttl_s: int, now_ms: int) -> Unexpired | None:
    """When messages were published that no TTL has removed; 0: there is no TTL."""
    return Unexpired(now_ms - ttl_s * 1000 + CLOCKS_MS, now_ms + CLOCKS_MS) if ttl_s else None


def whole_entries(copied_to: MessageId) -> MessageId:
    """The last entry that a copy has as a whole; entry -1 is the start of its ledger."""
    return MessageId(copied_to.ledger, max(-1, copied_to.entry - (copied_to.batch_index != NO_BATCH)))


def first_entry(after: MessageId | None) -> MessageId | None:
    """The first entry to read behind `after`: its own again, if that is within a batch; None: the earliest."""
    return None if after is None else MessageId(after.ledger, after.entry + (after.batch_index == NO_BATCH))


def subscription_of(identity: str) -> str:
    """The name of the durable subscription of a copy, by the identity of the topic in the lake."""
    return f"lithify-{identity[:8]}"


def _place(text: str) -> MessageId:
    ledger, entry = map(int, text.split(":")[:2])
    return MessageId(ledger, entry)


def _noted(properties: Mapping[str, Any]) -> Note | None:
    ledger, entry, seen = NOTES
    if ledger not in properties:
        return None
    place = MessageId(int(properties[ledger]), int(properties[entry]))
    return Note(place, int(properties[seen]) if seen in properties else None)
