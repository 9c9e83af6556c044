"""Up to which id of Pulsar a log has everything, through every commit that changes the log (C52).

    source   5:0   5:1[0 1 2]   5:2   7:0          copied_to = 5:2: all of it up to there, markers included
    log       0     1  2  3      4

Whatever rounds, retention and `delete-records` remove remains copied: it is not copied again. `truncate` removes
records from the end so that they can be copied again: the position moves back to before the first of them, which may
lie within a batch.
"""

from __future__ import annotations

from dataclasses import replace

from lithify.errors import InvalidRecordError
from lithify.model.message import MessageId
from lithify.model.names import LogId
from lithify.model.topic.log import LastRecord, LogState


def with_copied(log: LogState, last: LastRecord | None) -> LogState:
    """`log` once it has `last` as well, where its records have ids."""
    message_id = None if last is None else last.message_id
    if message_id is None or (log.copied_to is not None and log.copied_to.covers(message_id)):
        return log
    return replace(log, copied_to=message_id)


def check_not_copied(name: LogId, log: LogState, ids: tuple[MessageId, MessageId] | None) -> None:
    """Raises `InvalidRecordError` if the log has the first of these ascending ids already."""
    if ids is not None and log.copied_to is not None and (log.copied_to.covers(ids[0]) or ids[0] <= log.copied_to):
        raise InvalidRecordError(
            f"{name}: message id {ids[0]} arrived, but the log has everything up to {log.copied_to}",
            hint="nothing was appended: message ids must be later than that",
        )


def copied_after_cut(log: LogState, first_removed: MessageId | None) -> MessageId | None:
    """The position after a truncation that removes `first_removed` and all after it; None: no record."""
    return log.copied_to if first_removed is None else first_removed.previous
