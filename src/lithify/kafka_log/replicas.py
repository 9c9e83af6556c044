"""Replicas of one log: which of them the cluster would go on with, and what only others have.

    of epoch 4    ────────────── 50 ── 60             counts: its leader was elected at 50
    of epoch 3    ────────────── 50 ─────────── 90    50 to 89 were of a leader that died: left out, and told

A cluster knows who leads. Files do not, so that what they say of epochs decides which records are lost: it is not
followed where something speaks against it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from lithify.errors import RefusedError
from lithify.kafka_log.scanned_log import ScannedLog


class ReplicaError(Exception):
    """Why it is not known which replica counts; callers know the log, and say so."""


@contextmanager
def telling_replicas(log: str) -> Iterator[None]:
    """Raises `ReplicaError` as `RefusedError`, with the name of the log and what to do."""
    try:
        yield
    except ReplicaError as error:
        raise RefusedError(
            f"{log}: {error}",
            hint="leave out the replica that is wrong: give the directories without it, or a copy of them",
        ) from error


def best_of(replicas: Sequence[ScannedLog]) -> ScannedLog:
    """The one with the latest leader epoch, and of these the longest. Raises `ReplicaError`."""
    best = max(replicas, key=lambda log: log.rank)
    others = [log for log in replicas if log.leader_epoch != best.leader_epoch]
    is_shorter = any(log.written_end > best.written_end for log in others)
    if others and (best.own_epochs.doubt is not None or (is_shorter and not best.own_epochs.is_noted)):
        why = best.own_epochs.doubt or "no checkpoint of epochs has that"
        raise ReplicaError(f"{_told(best)} would count, but {why}; there is {', and '.join(map(_told, others))}")
    _check_none_later(best, replicas)
    # One that has lost its end may know best what all had: its broker noted that before.
    alike = [log for log in replicas if best.leader_epoch in (log.leader_epoch, log.reached_epoch)]
    replicated = max((log.replicated for log in alike if log.replicated is not None), default=None)
    return best if replicated == best.replicated else replace(best, replicated=replicated)


def _check_none_later(best: ScannedLog, replicas: Sequence[ScannedLog]) -> None:
    """A replica that has lost its end may have had a later epoch, whose leader did not have all of `best`."""
    reached = -1 if best.leader_epoch is None else best.leader_epoch
    for log in replicas:
        for start in log.folder.epochs:
            if start.epoch > reached and start.offset < best.written_end:
                why = f"had epoch {start.epoch} from offset {start.offset} on, which it has lost"
                raise ReplicaError(f"{_told(best)} would count, but {_told(log)} {why}")


def left_behind(best: ScannedLog, replicas: Sequence[ScannedLog]) -> Sequence[str]:
    """For people, what is left out though replicas have it, as the cluster leaves it out."""
    found = ((log, _end_of_same(best, log)) for log in replicas)
    return [
        f"{_told(best)} counts; left out is what there is from offset {end} on in {_told(log)}"
        for log, end in found
        if log.written_end > end
    ] + [f"{_told(log)} does not count, and what it had after its end: {log.cut}" for log in _cut(best, replicas)]


def _cut(best: ScannedLog, replicas: Sequence[ScannedLog]) -> Sequence[ScannedLog]:
    return [log for log in replicas if log.cut is not None and log.folder.path != best.folder.path]


def _end_of_same(best: ScannedLog, log: ScannedLog) -> int:
    """Up to where `best` has the records of `log`: a leader begins where it has none of an earlier one's."""
    end = None if log.leader_epoch is None else best.end_of_epoch(log.leader_epoch)
    return best.written_end if end is None else min(end, best.written_end)


def _told(log: ScannedLog) -> str:
    epoch = "no leader epoch" if log.leader_epoch is None else f"leader epoch {log.leader_epoch}"
    return f"{log.folder.path} of {epoch}, which ends at {log.written_end}"
