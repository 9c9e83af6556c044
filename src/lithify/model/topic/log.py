"""The state of a log: what the metadata has without opening a manifest.

    S            D              H          E
    |---clean----|----dirty-----|--lagging-|
    log start    first dirty    horizon    log end (exclusive)

Side by side (C33) the log is the backlog, and the compacted view of what is below D stands next to it:

    view         x  x    x |             a reader of compacted data gets the view below D
    backlog   S xxxxxxxxxx D xxxxx E     and the backlog from D on
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from lithify.model.message import MessageId, MessagePosition
from lithify.model.missed import DroppedDeletes, Undone
from lithify.model.segment import Volume

TRUNCATIONS_KEPT = 8
"""Truncations that each log's state keeps; a reader that missed more fails as if it were cut off."""
FIRST_EPOCH = 1
"""The epoch of a new log. 0 is the epoch of a log whose last commit was made in a format that did not count them."""
RUN_IDS_KEPT = 8
"""Ids of the latest commits that each log's state keeps, to settle unknown outcomes (C6)."""
BATCHES_KEPT = 32
"""Streaming queries whose latest batch the state keeps, those that wrote last (docs/reference/format.md)."""


@dataclass(frozen=True, slots=True)
class WrittenBatch:
    """The latest batch that a streaming query has appended, so that a repeated one is not appended twice."""

    query_id: str
    batch_id: int
    stream_id: str = ""
    """Spark's own id of the stream where the user chose `query_id`; empty if Spark has none."""


@dataclass(frozen=True, slots=True)
class TombstoneStep:
    """Tombstones below `end_offset` were first covered by a round at `time_ms` (C19).

    `tombstones` is how many of them are still in the log between the previous step and this one, or
    more: segments that retention drops whole are not read. It becomes exact when the step expires.
    """

    end_offset: int
    time_ms: int
    tombstones: int = 0


@dataclass(frozen=True, slots=True)
class CommittedEnd:
    """Records below `end_offset` were committed at `time_ms` at the latest (C14)."""

    end_offset: int
    time_ms: int


@dataclass(frozen=True, slots=True)
class HeldTombstones:
    """Expired tombstones below `below` remain while the horizon is at most `horizon` (C20), and no chunk is removed
    (C53).

    Records that they beat are above it, so a round with the same horizon could not drop them either.
    """

    below: int
    horizon: int
    chunks: int = 0
    """How many there were below the horizon, if some of the tombstones remain for them."""
    waits: bool = True
    """Whether some remain for records above the horizon; if not, it may move."""


@dataclass(frozen=True, slots=True)
class LastRecord:
    """The offset of the last record that can be read, and its timestamp in epoch ms (C36); its message id, if any."""

    offset: int
    timestamp_ms: int
    message_id: MessageId | None = None

    @property
    def position(self) -> MessagePosition:
        """Its position in Pulsar's words, in a topic that keeps message ids (C52)."""
        assert self.message_id is not None
        return MessagePosition(*self.message_id, self.timestamp_ms)


@dataclass(frozen=True, slots=True)
class View:
    """What the metadata keeps about the compacted view of a log, which reaches up to D (C33)."""

    volume: Volume = Volume()
    first_offset: int | None = None
    last_record: LastRecord | None = None
    start_offset: int = 0
    """The view covers the log from there on: S when the first round made it, whatever was trimmed since."""
    losers_removed: bool = False
    """Whether it lacks records of the backlog that rounds have removed."""


@dataclass(frozen=True, slots=True)
class LogState:
    """Everything the table's metadata keeps about one log; S <= D <= H <= E always.

    Side by side, `clean` and `dirty` are of the backlog, and the steps of the tombstones in the view.
    """

    partition: int
    log_start_offset: int = 0
    first_dirty_offset: int = 0
    log_end_offset: int = 0
    generation: int = 0
    truncated: tuple[int, ...] = ()
    """The new log ends of the latest truncations, the newest last, for following readers (C7)."""
    steps: tuple[TombstoneStep, ...] = ()
    clean: Volume = Volume()
    dirty: Volume = Volume()
    oldest_dirty_timestamp_ms: int | None = None
    last_record: LastRecord | None = None
    run_ids: tuple[str, ...] = ()
    last_round_ms: int | None = None
    last_round: str = ""
    """The run of the last round that was committed and not undone."""
    losers_removed: bool = False
    """Whether rounds that were not undone have removed records at or above S from the log; a view says it of itself."""
    deleted_below: int = 0
    """The offset of the last `delete-records` (C26). Views have no records below it either."""
    compacted_below: int = 0
    """Where D was before `alter`, `uncompact` or `repair` set it back to S; lowered by truncations (C26)."""
    round_required: str = ""
    """Why a round is required at any dirty ratio: a setting changed (C43), records were deleted (C26)."""
    uncovered: bool = False
    """The next round judges everything below its horizon as if no round had covered it (C43)."""
    held: HeldTombstones | None = None
    aged_before_ms: int | None = None
    """Below D only tombstones have an older timestamp: the last round dropped the values (C24)."""
    view: View | None = None
    batches: tuple[WrittenBatch, ...] = ()
    """The latest batch of each query that wrote to the topic, the last one to write last. Only log 0 has them."""
    epoch: int = FIRST_EPOCH
    """Grows with every commit that invalidates planned rounds (C44); readers store it in their cursors (C49)."""
    committed: tuple[CommittedEnd, ...] = ()
    """When dirty records were appended, where `min.compaction.lag.from` is `commit` (C14); both ascend."""
    dropped: tuple[DroppedDeletes, ...] = ()
    """Which commits dropped deletes, and up to which offset; epochs ascend, offsets descend."""
    undone: Undone | None = None
    """Of rounds that were undone; None once a round or a truncation has reached as far."""
    copied_to: MessageId | None = None
    """The log has everything of its source up to this id (C52); None if nothing was copied from Pulsar."""
    source_epoch: int | None = None
    """Everything below E was copied from a log of Kafka in this leader epoch (C72); None if that is not known."""
    source_last: tuple[int, int] | None = None
    """The offset of the last record that was copied from a log of Kafka, and its checksum (C72)."""
    source_begun: tuple[int, int] | None = None
    """The offset from which a reader of a log of Kafka has copied it since, and the time when it began there (C71)."""

    @property
    def volume(self) -> Volume:
        return self.clean + self.dirty

    @property
    def compacted_volume(self) -> Volume:
        """What rounds have left: the log below D, or its view."""
        return self.clean if self.view is None else self.view.volume

    @property
    def tombstones(self) -> int:
        """Tombstones below the first dirty offset."""
        return sum(step.tombstones for step in self.steps)

    @property
    def compacted_start(self) -> int:
        """Where a reader of compacted data starts (C37)."""
        if self.view is None:
            return self.log_start_offset
        return max(self.view.start_offset, self.deleted_below)

    @property
    def compacted_last_record(self) -> LastRecord | None:
        """The last record that a reader of compacted data can get (C36)."""
        last = self.last_record
        if self.view is None or (last is not None and last.offset >= self.first_dirty_offset):
            return last
        last = self.view.last_record
        return last if last is not None and last.offset >= self.deleted_below else None

    def held_below(self, horizon: int, chunks: int | None = None) -> int | None:
        """Expired tombstones below this offset remain while the horizon, or a chunk, does (C20, C53); None: none do.

        `chunks`: how many remain below D for certain, where a round may remove some that the state counts.
        """
        held = self.held
        if held is None or held.chunks > (self.compacted_volume.chunks if chunks is None else chunks):
            return None
        return None if held.waits and horizon > held.horizon else held.below

    def with_run(self, run_id: str) -> LogState:
        """This state with `run_id` as its latest commit."""
        return replace(self, run_ids=(*self.run_ids, run_id)[-RUN_IDS_KEPT:])

    def lacks_run(self, run_id: str, versions: int) -> bool:
        """Whether it has not come from that run's commit, so many versions ago: it would not have forgotten it yet."""
        if run_id in self.run_ids:
            return False
        return len(self.run_ids) < RUN_IDS_KEPT or versions < RUN_IDS_KEPT // 2  # a replica keeps two for each commit

    @property
    def next_epoch(self) -> int:
        """The epoch that the next commit begins, if it is of a round or invalidates planned rounds."""
        return self.epoch + 1

    def with_batch(self, batch: WrittenBatch) -> LogState:
        """This state with `batch` as the latest of its query."""
        others = (known for known in self.batches if known.query_id != batch.query_id)
        return replace(self, batches=(*others, batch)[-BATCHES_KEPT:])

    def latest_batch(self, query_id: str) -> WrittenBatch | None:
        """The latest batch that a query has appended, if the state still has it."""
        return next((batch for batch in self.batches if batch.query_id == query_id), None)
