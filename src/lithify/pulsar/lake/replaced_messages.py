"""Compares a copy with its topic: a cluster whose disks were all restored gives ids to other messages (C52).

    copy     … 7:40 7:41                 its last record was published at 12:03:07.151
    topic    … 7:40 7:41 7:42 …          begins: the entry is fetched; a batch: read as the first one, before 7:42

What tells messages of one id apart is when they were published. An entry that is not there any more tells nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lithify.errors import SourceWentBackError
from lithify.model.message import NO_BATCH, MessageId
from lithify.model.topic.log import LogState
from lithify.pulsar.format.entry import RawEntry
from lithify.pulsar.lake.records import timestamp_of


def published_there(log: LogState, entry_at: Callable[[MessageId], RawEntry | None]) -> int | None:
    """When the topic's message was published, in epoch ms, at the id of the last record of a copy; None: not known."""
    last = log.last_record
    if last is None or last.message_id is None:
        return None
    entry = entry_at(last.message_id)
    return None if entry is None else timestamp_of(entry)


def replaced_message(log: LogState, theirs: int | None) -> MessageId | None:
    """The id of the last record of a copy, if `published_there` tells another time."""
    last = log.last_record
    return None if last is None or theirs in (None, last.timestamp_ms) else last.message_id


def published_at_end(log: LogState) -> int | None:
    """When the last record of a copy was published, if the copy ends with its entry; None: it does not."""
    last, end = log.last_record, log.copied_to
    if last is None or last.message_id is None or end is None or last.message_id.place != end.place:
        return None
    return last.timestamp_ms


def behind(
    after: MessageId, published_ms: int, entries: Sequence[RawEntry], *, topic: str, hint: str
) -> Sequence[RawEntry]:
    """The entries behind `after`, of those that were read from its own entry on.

    Raises `SourceWentBackError` if it was not published at this time, as it was when it was read before.
    """
    first = entries[0]
    if first[:2] != after.place:
        return entries
    if timestamp_of(first) not in (None, published_ms):
        why = f"Pulsar's {topic} now has another message at {after} than the one that was read, as after a restore"
        raise SourceWentBackError(why, hint=hint)
    return entries[1:] if after.batch_index == NO_BATCH else entries
