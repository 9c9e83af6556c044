"""What a stream keeps watch over between its batches: that its positions still mean the same records (C7, C49).

A checkpoint has offsets, and the epochs of the logs when the stream came there. Truncations and topics
that were made again show from look to look, in one process; deletes that are gone show from the epochs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from lithify.errors import LogTruncatedError
from lithify.model.log import TopicState
from lithify.model.names import LogId
from lithify.model.scan import Offsets
from lithify.reading.continuation import was_cut_below, why_deletes_missed


@dataclass(slots=True)
class Watched:
    """The logs of a stream as it saw them last, so that it notices what its positions do not show (C7).

    A log that was truncated and has grown again, or a topic that was made again, has other records
    at the same offsets.
    """

    seen: dict[str, TopicState] = field(default_factory=dict)

    def look(self, states: Iterable[TopicState], positions: Offsets) -> None:
        """Raises `LogTruncatedError` if a log was cut below the position of the stream since the last look."""
        states = tuple(states)
        check_all_there(positions, states)
        for state in states:
            before, here = self.seen.get(str(state.name)), positions.get(str(state.name), {})
            if before is not None:
                _check_same(before, state, here)
            _check_ends(state, here)
            self.seen[str(state.name)] = state


def check_deletes(states: Iterable[TopicState], positions: Offsets, epochs: Offsets, *, compacted: bool) -> None:
    """Raises `LogTruncatedError` where deletes are gone that a stream at these positions has not read (C49).

    `epochs` are those of the logs when the stream came there. A log that has none came there before there
    were epochs.
    """
    for state in states:
        here, known = positions.get(str(state.name), {}), epochs.get(str(state.name), {})
        for partition in here.keys() & known.keys() & set(state.partitions):
            log = state.log(partition)
            reason = why_deletes_missed(log, here[partition], known[partition], compacted=compacted)
            if reason is not None:
                raise LogTruncatedError(
                    f"{LogId(state.name, partition)}: {reason}",
                    hint="start a new query, with a new checkpoint, or go on without them with failOnDataLoss=false",
                )


def epochs_at(states: Iterable[TopicState], start: Offsets, end: Offsets, epochs: Offsets) -> dict[str, dict[int, int]]:
    """The epochs that belong to `end`; where nothing is read, that of `start` stays, so that nothing looks new."""
    found: dict[str, dict[int, int]] = {}
    for state in states:
        name = str(state.name)
        for partition, offset in end.get(name, {}).items():
            if start.get(name, {}).get(partition) != offset:
                found.setdefault(name, {})[partition] = state.log(partition).epoch
            elif partition in epochs.get(name, {}):
                found.setdefault(name, {})[partition] = epochs[name][partition]
    return found


def check_all_there(positions: Offsets, states: Iterable[TopicState]) -> None:
    there = {(str(state.name), partition) for state in states for partition in state.partitions}
    for topic, partitions in positions.items():
        for partition in partitions:
            if (topic, partition) not in there:
                raise LogTruncatedError(
                    f"{topic}-{partition}: the log that is being read is gone: its topic was deleted or made again",
                    hint="start a new query, with a new checkpoint, or go on with failOnDataLoss=false",
                )


def _check_same(before: TopicState, now: TopicState, positions: Mapping[int, int]) -> None:
    if before.identity != now.identity:
        raise LogTruncatedError(
            f"{now.name}: the topic was deleted and made again while it was read",
            hint="start a new query, with a new checkpoint",
        )
    for partition, position in positions.items():
        if partition not in before.partitions:
            continue
        if was_cut_below(now.log(partition), before.log(partition).generation, position):
            raise _truncated(now, partition, position)


def _check_ends(now: TopicState, positions: Mapping[int, int]) -> None:
    for partition, position in positions.items():
        if position > now.log(partition).log_end_offset:
            raise _truncated(now, partition, position)


def _truncated(now: TopicState, partition: int, position: int) -> LogTruncatedError:
    return LogTruncatedError(
        f"{LogId(now.name, partition)}: the log was truncated while it was read; it ends at "
        f"{now.log(partition).log_end_offset} now, and the stream stood at {position}",
        hint="start a new query, with a new checkpoint, or go on with failOnDataLoss=false",
    )
