"""The state of a log and of a topic: what the metadata says without opening a manifest.

    S            D              H          E
    |---clean----|----dirty-----|--lagging-|
    log start    first dirty    horizon    log end (exclusive)

S <= D <= H <= E always. A `LogState` is an immutable picture; a `TopicEdit` is the difference
that one commit makes (C6: all of it or nothing).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from lithify.model.names import TopicName
from lithify.model.segment import Segment, Volume
from lithify.model.settings import TopicSettings

RUN_IDS_KEPT = 8
"""Ids of the latest commits that each log remembers, to settle unknown outcomes (C6)."""


@dataclass(frozen=True, slots=True)
class TombstoneStep:
    """Tombstones below `end_offset` were first covered by a round at `time_ms` (C19).

    `tombstones` is how many of them are still in the log between the previous step and this one.
    """

    end_offset: int
    time_ms: int
    tombstones: int = 0


@dataclass(frozen=True, slots=True)
class Position:
    """Where a record stands: its offset and its timestamp in epoch ms (C36)."""

    offset: int
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class LogState:
    """Everything the table's metadata keeps about one log."""

    partition: int
    log_start_offset: int = 0
    first_dirty_offset: int = 0
    log_end_offset: int = 0
    generation: int = 0
    steps: tuple[TombstoneStep, ...] = ()
    clean: Volume = Volume()
    dirty: Volume = Volume()
    oldest_dirty_timestamp_ms: int | None = None
    last_record: Position | None = None
    run_ids: tuple[str, ...] = ()
    last_round_ms: int | None = None

    @property
    def volume(self) -> Volume:
        return self.clean + self.dirty

    @property
    def tombstones(self) -> int:
        """Tombstones below the first dirty offset."""
        return sum(step.tombstones for step in self.steps)

    def with_run(self, run_id: str) -> LogState:
        """This state, remembering that the run `run_id` committed to it."""
        return replace(self, run_ids=(*self.run_ids, run_id)[-RUN_IDS_KEPT:])


@dataclass(frozen=True, slots=True)
class TopicState:
    """A topic at one version. `version` grows by every commit; `identity` dies with the topic."""

    name: TopicName
    original_name: str
    identity: str
    version: int
    location: str
    settings: TopicSettings
    logs: tuple[LogState, ...]
    created_ms: int

    def log(self, partition: int) -> LogState:
        return self.logs[partition]

    @property
    def partitions(self) -> range:
        return range(len(self.logs))


@dataclass(frozen=True, slots=True)
class TopicEdit:
    """What one commit changes. The store applies all of it to the version it was made on, or none.

    `logs` holds the new state of every log that changes. An edit that removes segments closes a
    version, which the store keeps for `versions`, `undo` and `verify`. `report_id` names a report
    that was stored before and that counts from this commit on.
    """

    run_id: str
    time_ms: int
    logs: Mapping[int, LogState]
    add: tuple[Segment, ...] = ()
    remove: tuple[Segment, ...] = ()
    settings: TopicSettings | None = None
    report_id: str | None = None


@dataclass(frozen=True, slots=True)
class KeptVersion:
    """A version from before a commit that removed segments, and when that commit closed it."""

    version: int
    closed_ms: int
    closed_by: str


def segments_of(segments: tuple[Segment, ...], partition: int) -> tuple[Segment, ...]:
    """The segments of one log in offset order."""
    return tuple(sorted((s for s in segments if s.partition == partition), key=lambda s: s.base_offset))
