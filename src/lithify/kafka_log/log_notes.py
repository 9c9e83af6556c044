"""What a person is told of logs that are read from files, beside their damage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from lithify.kafka_log.scanned_log import ScannedLog
from lithify.model.settings.units import format_bytes, plural

NAMED_AT_MOST = 10


def scanning_text(topic: str, sizes: Sequence[int]) -> str:
    """`sizes` are in bytes, one for each segment."""
    return f"{topic}: scans {plural(len(sizes), 'segment')} with {format_bytes(sum(sizes))} before it copies any"


def notes_of(topic: str, logs: Mapping[int, ScannedLog]) -> Iterator[tuple[str, str]]:
    """Of the logs of a topic, by kinds of notes."""
    if absent := max(logs, default=-1) + 1 - len(logs):  # a folder may have any number in its name
        more = f" and {absent - NAMED_AT_MOST} more" if absent > NAMED_AT_MOST else ""
        named = ", ".join(map(str, islice((p for p in range(max(logs)) if p not in logs), NAMED_AT_MOST)))
        what = f"the directories have no log of {plural(absent, 'partition')}: {named}{more}"
        yield "missing_partitions", f"{topic}: {what}"
    for partition, log in logs.items():
        yield from ((kind, f"{topic}-{partition}: {text}") for kind, text in log_notes(log))


def left_out(topic: str, named: str, logs: Iterable[ScannedLog]) -> str:
    """The text of a note that damage is left out, which is `named`."""
    text = f"left out of {topic}: {named}"
    if any(log.damage and log.has_transactions for log in logs):
        return f"{text}; if the end of a transaction was there, its producer's next end counts for its records"
    return text


def log_notes(log: ScannedLog) -> Iterator[tuple[str, str]]:
    """Of one log, without its name."""
    if log.cut is not None:
        yield "cut", f"cut as a broker does that starts: {log.cut}"
    if (doubt := log.own_epochs.doubt) is not None:
        yield "epochs", f"its leader epochs may be wrong: {doubt}"
    if log.segments and log.segments[0].base_offset < log.start_offset <= log.written_end:
        first = log.segments[0].base_offset
        what = f"its log start offset was noted at {log.start_offset}, and its files begin at {first}"
        yield "log_start", f"{what}: the offsets between were deleted, and are left out"
    if log.lacks_from is not None:
        what = f"its broker has noted that it starts at {log.lacks_from}, and its files begin at {log.start_offset}"
        yield "missing", f"{what}: what is before them is in tiered storage, or files are missing"
    if gaps := log.gaps:
        named = ", ".join(f"{start} to {end - 1}" for start, end in gaps[:NAMED_AT_MOST])
        more = f", and {len(gaps) - NAMED_AT_MOST} more" if len(gaps) > NAMED_AT_MOST else ""
        yield "missing", f"no file has the offsets {named}{more}: a cleaner removed their records, or a file is missing"
    if later := [start for start in log.folder.epochs if start.offset > log.end_offset]:
        what = f"its checkpoint of epochs has {later[0].epoch} from offset {later[0].offset} on"
        yield "missing", f"{what}, and its files end at {log.end_offset}: its last records are lost"
    if log.stable_end < log.end_offset:
        what = f"a transaction without an end begins at {log.stable_end}"
        yield "open_transaction", f"{what}: the copy ends there, and the log at {log.end_offset}"
    if log.replicated is not None and log.replicated[0] < log.written_end:
        text = (
            f"its high watermark was noted at {log.replicated[0]}, and it ends at {log.written_end}: the last records "
            "may not have been on all replicas"
        )
        yield "not_replicated", text


def deletes_text(copy: str, log: ScannedLog, copied_to: int) -> str | None:
    """That deletes may be missing in what follows `copied_to`; None if no cleaner was there."""
    if copied_to >= min(log.folder.first_dirty or 0, log.stable_end):
        return None
    return (
        f"{copy}: a cleaner has been in {log.folder.path} up to offset {log.folder.first_dirty}, and the copy ends at "
        f"{copied_to}. If the copy is of other files than these, deletes behind its end may be missing; an import "
        "into another topic, with --into, has all"
    )
