"""Whether the copy gave a consumer's messages the offsets that the consumer gave them (C52).

    lake       [ 0 ··· 4 ]                            log end 5, copied to 7:4
    cluster              7:5 ─ 7:6 ─ 9:0              read live as offsets 5, 6, 7
    later      [ 0 ··· 4 | 9:0 ]                      9:0 has offset 5: 7:5 and 7:6 were deleted before they were copied

A consumer that continued at offset 8 would then pass over messages, so it does not.
"""

from __future__ import annotations

from lithify.errors import LogTruncatedError
from lithify.model.message import NO_BATCH, MessageId
from lithify.model.names import LogId
from lithify.model.settings.units import plural
from lithify.model.topic.state import TopicState
from lithify.ports.store import Warehouse
from lithify.rules.reading.pieces import Reading
from lithify.service.read.fetch import open_log
from lithify.service.snapshot.cursors import log_of
from lithify.service.snapshot.live import Reached


def check_numbering(warehouse: Warehouse, state: TopicState, partition: int, at: Reached) -> None:
    """Raises `LogTruncatedError` if the copy has other offsets. Reads a segment if it has more than the consumer."""
    log = log_of(state, partition)
    if at.message is None or log.copied_to is None:
        return
    end = log.log_end_offset
    if not log.copied_to.covers(at.message):
        agrees = end <= at.offset
    else:
        agrees = end >= at.offset and _next_offset(warehouse, state, partition, at.message) >= at.offset
    if not agrees:
        raise LogTruncatedError(
            f"{LogId(state.name, partition)}: this consumer has read {plural(at.offset, 'message')} up to "
            f"{at.message}, but the copy numbers them differently, with offsets below {end} up to {log.copied_to}",
            hint="start again, from the beginning: messages were deleted before they were copied",
        )


def _next_offset(warehouse: Warehouse, state: TopicState, partition: int, message: MessageId) -> int:
    """The offset of the first record left behind this message; the log end if there is none."""
    ledger, entry, index = message
    after = MessageId(ledger, entry + 1) if index == NO_BATCH else MessageId(ledger, entry, index + 1)
    log = log_of(state, partition)
    if log.copied_to is None or after.place > log.copied_to.place:
        return log.log_end_offset
    return open_log(warehouse, state, partition, after, Reading(compacted=True)).position
