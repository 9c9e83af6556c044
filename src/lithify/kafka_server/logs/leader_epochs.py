"""Leader epochs, by which clients of Kafka find out by themselves that a log was cut below what they have read.

    generation 0   0 ·············· 10        a client has read up to 7, by batches of epoch 0
    generation 1   0 ····· 5 ─────── 12       cut at 5
    generation 2   0 ··········· 9 ── 14      cut at 9
    it asks for the end of epoch 0: 5         the lowest cut since. It continues there, since 5 is below 7

The epoch is the generation of the log, which every truncation raises and nothing else (C26). Batches have the
generation of the version that they are read from, whatever generation their records are from. So an epoch says when a
client has read, as the generation of a `Cursor` does, and both are judged by the same cuts (C7). A broker instead
gives each batch the epoch in which it was written. Then a client that reads old records has an old epoch, whose cuts
may be forgotten sooner.

A client whose epoch is above the log's has read a log that was restored to an earlier state. It cannot be told where
to continue: the cuts of the state that was lost are lost with it.
"""

from __future__ import annotations

from typing import Final

from lithify.model.topic.log import LogState

UNDEFINED: Final = (-1, -1)
"""Kafka's answer for an epoch that is not known."""


def epoch_end(log: LogState, epoch: int, start: int) -> tuple[int, int]:
    """The epoch, and the offset up to which what was read in it is still in the log.

    A client that has read further continues there. It is never below `start`, the first offset of what is read, so
    that a client continues with the first record that is left, and not where its policy for lost offsets sends it. Of
    cuts that are forgotten it is not known where they were: then it is the start.
    """
    cuts = log.generation - epoch
    if cuts < 0 or epoch < 0:
        return UNDEFINED
    if cuts > len(log.truncated):
        return epoch, start
    lowest = min((log.log_end_offset, *(log.truncated[-cuts:] if cuts else ())))
    return epoch, max(lowest, start)
