"""Where a copy of one partition continues, and when it must not: pure decisions from ids and what brokers tell.

    copy       |------------ 7:41                    has everything up to 7:41
    ledgers    [ 7 ][ 9 ][ 12 ]                      continue behind 7:41: the ledger is there, so are those after it
    ledgers              [ 12 ]    ours passed 7:41  continue: brokers trim only what our subscription has passed
    ledgers              [ 12 ]    it is gone, moved lost: entries behind 7:41 may have been trimmed
                                   on, or by others
    last id 3:8                                      went back: another topic of that name

Ids of ledgers never come twice in a cluster. Brokers move a cursor out of ledgers that they trim, so each
acknowledgement also notes its own place, as properties of the cursor. After a truncation of the copy that place is
beyond the copy's end: what was truncated can be copied again only while Pulsar has it. Without the admin interface
brokers tell neither ledgers nor cursors, so only a topic that went back is noticed (C52).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from lithify.errors import BrokerError
from lithify.lifecycle.source_continuation import CopyContinuation, CopyContinues, NeverCopied, SourceWentBack
from lithify.model.message import NO_BATCH, MessageId

NOTES: Final = ("lithify-ledger", "lithify-entry")


@dataclass(frozen=True, slots=True)
class Ledgers:
    """What the internal statistics of a partition tell: its ledgers, and where our subscription stands, if it is there.

    `cursor` is where brokers have it, `acknowledged` what we have told them; `trimmed` how many entries the broker
    knows to be gone since it opened the topic.
    """

    ids: tuple[int, ...]
    cursor: MessageId | None = None
    acknowledged: MessageId | None = None
    trimmed: int = 0

    @classmethod
    def of(cls, stats: Mapping[str, Any], subscription: str) -> Ledgers:
        """Raises `BrokerError` for statistics that are not those of a topic."""
        try:
            ids = tuple(int(ledger["ledgerId"]) for ledger in stats["ledgers"])
            cursor = stats["cursors"].get(subscription)
            trimmed = int(stats["entriesAddedCounter"]) - int(stats["numberOfEntries"])
            place = None if cursor is None else MessageId(*map(int, cursor["markDeletePosition"].split(":")[:2]))
            noted = {} if cursor is None else cursor["properties"]
            told = MessageId(*(int(noted[name]) for name in NOTES)) if NOTES[0] in noted else None
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise BrokerError(f"the internal statistics of a topic are not understood: {error!r}") from error
        return cls(ids, place, told, max(0, trimmed))

    @property
    def start(self) -> MessageId | None:
        """Just before the first entry that is there; None: there is no ledger."""
        return MessageId(min(self.ids), -1) if self.ids else None


def continuation(copied_to: MessageId | None, known: Ledgers | None, last: MessageId | None) -> CopyContinuation:
    """How the copy continues that has everything up to `copied_to`.

    `known` is what the admin interface tells, its cursor as it was before this ingest subscribed; `last` the id of the
    last message there.
    """
    start = None if known is None else known.start
    if copied_to is None:
        if known is not None and start is not None and known.trimmed:
            return NeverCopied(None, start)
        return CopyContinues(None)
    if last is not None and last.place < copied_to.place:
        return SourceWentBack(copied_to, MessageId(*last.place))
    if known is None or start is None or start.ledger <= copied_to.ledger:
        return CopyContinues(copied_to)
    told = known.acknowledged
    if known.cursor is None or told is None or told.place > copied_to.place or known.cursor.place > start.place:
        return NeverCopied(copied_to, start)
    return CopyContinues(copied_to)


def whole_entries(copied_to: MessageId) -> MessageId | None:
    """The last entry that a copy has as a whole; None: none of its ledger."""
    last = copied_to.entry - (copied_to.batch_index != NO_BATCH)
    return MessageId(copied_to.ledger, last) if last >= 0 else None


def first_entry(after: MessageId | None) -> MessageId | None:
    """The first entry to read behind `after`: its own again, if that is within a batch; None: the earliest."""
    return None if after is None else MessageId(after.ledger, after.entry + (after.batch_index == NO_BATCH))


def subscription_of(identity: str) -> str:
    """The name of the durable subscription of a copy, by the identity of the topic in the lake."""
    return f"lithify-{identity[:8]}"


def notes(place: MessageId) -> dict[str, int]:
    """What an acknowledgement notes in the cursor's properties."""
    return dict(zip(NOTES, place.place, strict=True))
