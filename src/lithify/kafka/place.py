"""How far somebody outside has taken a log, and whether they can still go on from there (C5, C7).

    values taken below `offset` ──┐                    ┌── tombstones that delete them
    [0 ──────────────────────── offset ──────────────────────────── log end)
                                  └ covered by no round before `as_of_ms`

Who comes back may find a tombstone gone that would have deleted what they hold. That takes a round that
came `delete.retention.ms` after the first one that covered it, and none above `offset` was covered before
`as_of_ms`: so a last round before `as_of_ms + delete.retention.ms` has taken no delete away unseen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from lithify.errors import LogTruncatedError
from lithify.model.log import LogState, TopicState
from lithify.model.names import LogId
from lithify.service.cursor import Reading, was_cut_below

COMPACTED = Reading(compacted=True)
"""How somebody outside reads a log."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where somebody stands in a log: everything below `offset` was taken.

    `identity` is that of the topic, `generation` counts the truncations of the log, `as_of_ms` is epoch
    milliseconds.
    """

    identity: str
    generation: int
    offset: int
    as_of_ms: int

    @classmethod
    def first(cls, state: TopicState, partition: int, loaded_ms: int) -> Place:
        """Before the first record of a version that was loaded at that time."""
        log = log_of(state, partition)
        return cls(state.identity, log.generation, log.compacted_start, loaded_ms)

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Place:
        """Raises `ValueError` or `KeyError` for what `to_json` did not write."""
        numbers = {name: int(given[name]) for name in ("generation", "offset", "as_of_ms")}
        return cls(str(given["identity"]), **numbers)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def moved(self, log: LogState, loaded_ms: int, offset: int) -> Place:
        """Further on in a version that was loaded at that time."""
        # What no round had covered by then is all there still, deletes included.
        as_of_ms = loaded_ms if offset >= log.first_dirty_offset else self.as_of_ms
        return replace(self, offset=offset, generation=log.generation, as_of_ms=max(as_of_ms, self.as_of_ms))

    def check(self, state: TopicState, partition: int) -> None:
        """Raises `LogTruncatedError` where going on from here would miss something."""
        log, name = log_of(state, partition), LogId(state.name, partition)
        if state.identity != self.identity:
            raise _cannot(f"{name}: the topic was deleted and made again since offset {self.offset} was taken")
        if was_cut_below(log, self.generation, self.offset):
            raise _cannot(f"{name}: the log was truncated below offset {self.offset}, which was taken before")
        if self.offset < (start := COMPACTED.start(log)):
            raise _cannot(f"{name}: the log starts at {start} now, behind offset {self.offset}, where this goes on")
        expiry_ms = self.as_of_ms + state.settings.delete_retention_ms
        if self.offset < log.first_dirty_offset and log.last_round_ms is not None and log.last_round_ms >= expiry_ms:
            raise _cannot(
                f"{name}: a round may have removed deletes of keys that were taken below offset {self.offset}, "
                f"since delete.retention.ms={state.settings.delete_retention_ms} has passed"
            )


def log_of(state: TopicState, partition: int) -> LogState:
    """The log of that partition; an empty one where only Kafka has the partition so far."""
    return state.log(partition) if partition in state.partitions else LogState(partition)


def _cannot(text: str) -> LogTruncatedError:
    return LogTruncatedError(text, hint="start afresh, from the beginning")
