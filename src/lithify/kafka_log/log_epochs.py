"""The leader epochs of a log: by its broker's checkpoint, and by its batches. No checksum covers either of them.

    checkpoint    0 from 0             1 from 40
    batches       0  0  0  [9]  0  0   1  1  1  2  2
                           │                    ╰─ the checkpoint is older than the last batches: 2 counts
                           ╰─ a leader has no records of an earlier epoch after this: 9 does not count

So where epochs decide which replica of a log is copied, two places have to say the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lithify.kafka_log.directories.checkpoints import EpochStart


class EpochRun(NamedTuple):
    """Batches of one epoch that follow one another: the first offsets of the first and of the last one."""

    epoch: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class LogEpochs:
    """`starts` are those that count, in order."""

    starts: tuple[EpochStart, ...]
    doubt: str | None
    """Why they may be wrong; None if nothing speaks against them."""
    is_noted: bool
    """Whether the checkpoint has the latest one."""


def log_epochs(noted: Sequence[EpochStart], runs: Sequence[EpochRun], end: int) -> LogEpochs:
    """Of a log that ends at `end`. What the checkpoint has of later offsets was torn off, and does not count.

    It may be missing, or older than the last batches: a broker that starts completes it from them.
    """
    starts = [start for start in noted if start.offset <= end]
    doubt = next(_doubts(starts, runs), None)
    epoch = starts[-1].epoch if starts else None
    from_offset = starts[-1].offset if starts else 0
    for run in _undisputed(runs):
        if run.first >= from_offset and (not starts or run.epoch > starts[-1].epoch):
            starts.append(EpochStart(run.epoch, run.first))
    is_noted = not starts or starts[-1].epoch == epoch
    if doubt is None and not is_noted and noted:
        doubt = f"its checkpoint of epochs does not have epoch {starts[-1].epoch}, which its batches have"
    return LogEpochs(tuple(starts), doubt, is_noted)


def _undisputed(runs: Sequence[EpochRun]) -> list[EpochRun]:
    """Those without an earlier epoch after them."""
    found, least = list[EpochRun](), None
    for run in reversed(runs):
        if least is None or run.epoch <= least:
            found.append(run)
            least = run.epoch
    return found[::-1]


def _doubts(noted: Sequence[EpochStart], runs: Sequence[EpochRun]) -> Iterator[str]:
    highest, at = -1, 0
    for run in runs:
        if run.epoch < highest:
            yield f"its batch at offset {run.first} has the epoch {run.epoch}, after one of epoch {highest}"
        highest = max(highest, run.epoch)
        for offset in (run.first, run.last) if noted else ():
            while at + 1 < len(noted) and noted[at + 1].offset <= offset:
                at += 1
            is_newer = at + 1 == len(noted) and run.epoch > noted[at].epoch
            if offset >= noted[0].offset and run.epoch != noted[at].epoch and not is_newer:
                why = f"its batch at offset {offset} has the epoch {run.epoch}, and its checkpoint of epochs"
                yield f"{why} {noted[at].epoch} from offset {noted[at].offset} on"
