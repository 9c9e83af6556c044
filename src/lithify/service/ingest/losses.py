"""What a copy lacks since its source had deleted it, or has that its source lost: as stored, and as messages say it."""

from __future__ import annotations

from lithify.errors import SourceWentBackError
from lithify.model.message import MessageId
from lithify.model.names import LogId
from lithify.model.settings.units import plural
from lithify.model.sources.copied_topic import Hole, IdHole
from lithify.model.sources.source import SourceTopic
from lithify.model.topic.state import TopicState
from lithify.rules.lifecycle.copies.copy_continuation import NeverCopied, SourceWasCut


def hole_of(partition: int, gone: NeverCopied) -> Hole | IdHole:
    """What a copy lacks, as its reports and its `source.json` have it."""
    match gone:
        case NeverCopied(int() as start, int() as end):
            return Hole(partition, start, end)
        case NeverCopied(start, end):
            return IdHole(partition, None if start is None else str(start), str(end))


def begin_of(hole: Hole | IdHole) -> tuple[int, int | str | None]:
    """What tells it from other holes."""
    return hole.partition, hole.start_offset if isinstance(hole, Hole) else hole.after


def gone_of(gone: NeverCopied) -> str:
    """Why it is missing, for messages."""
    match gone:
        case NeverCopied(int() as start, int() as end):
            return f"offsets {start} to {end - 1} were deleted there"
        case NeverCopied(None, _):
            return "earlier messages were trimmed there before the first ingest"
        case _:
            return "messages in between may have been trimmed there"


def check_none_gone(state: TopicState, topic: SourceTopic, source: str) -> None:
    """Raises `SourceWentBackError` for a copy of a partition that its source has no more: none is ever removed."""
    for log in state.logs if topic.is_whole else ():
        if log.partition not in topic.partitions and (log.log_end_offset or log.copied_to is not None):
            raise SourceWentBackError(
                f"{LogId(state.name, log.partition)}: {source} has {plural(len(topic.partitions), 'partition')} now, "
                "but the copy has records of this one",
                hint="ingest it into another topic, with --into: it was recreated or restored from a backup",
            )


def cut_error(state: TopicState, partition: int, how: SourceWasCut, source: str) -> SourceWentBackError:
    """The error for a copy that has records which its source lost (C72)."""
    log, own = LogId(state.name, partition), state.log(partition)
    hint = "ingest it into another topic, with --into"
    if how.cut is not None and how.cut >= max(own.first_dirty_offset, own.compacted_below):
        hint += (
            f", or remove the records that differ, and ingest again: `lithify truncate {state.name} "
            f"--partition {partition} --to {how.cut}`"
        )
    elif how.cut is not None:
        hint += f": rounds have compacted this copy beyond {how.cut}, so it cannot be cut there"
    if isinstance(how.log_end, MessageId):
        return SourceWentBackError(
            f"{log}: {source} has lost its messages up to {how.log_end}, or some of them, and now has others there, "
            "as after a restore; the copy has the lost messages",
            hint=hint,
        )
    where = f"below {how.log_end}" if how.cut is None else f"from offset {how.cut} on"
    return SourceWentBackError(
        f"{log}: {source}-{partition} has lost its records {where} and now has others there, as after an unclean "
        f"leader election or a restore; the copy has the lost records, up to {how.log_end}",
        hint=hint,
    )
