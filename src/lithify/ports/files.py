"""The data files of topics: records on their way in, on their way out, and the files that versions name."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from lithify.errors import LithifyError
from lithify.model.finding import Finding
from lithify.model.message import MessageId
from lithify.model.record import Record
from lithify.model.segment import Segment
from lithify.model.topic.state import TopicState
from lithify.rules.compaction.survivor_rules import SurvivorRules
from lithify.rules.reading.group_lag import Left


class Batch(Protocol):
    """Records on their way out, in offset order."""

    def __len__(self) -> int: ...

    @property
    def end_offset(self) -> int: ...

    def records(self) -> Iterator[Record]: ...
    def below(self, end_offset: int) -> Batch:
        """The records whose offsets are below `end_offset`."""
        ...

    def offset_at(self, timestamp_ms: int) -> int | None:
        """The offset of the first record whose timestamp is at or after that time, if there is one."""
        ...

    def offset_of(self, sought: MessageId) -> int | None:
        """The offset of the first record whose message id is that or a later one, if there is one (C52)."""
        ...

    def to_arrow(self) -> Any:
        """The same as a `pyarrow.Table` of the table's columns."""
        ...


class Arrivals(Protocol):
    """Records on their way into one log, checked and in order. The services never look inside."""

    @property
    def records(self) -> int: ...
    @property
    def first_offset(self) -> int | None:
        """Their own first offset with `keep_offsets`, else None."""
        ...

    @property
    def last_timestamp_ms(self) -> int:
        """The timestamp of the last of them (C36)."""
        ...

    @property
    def message_ids(self) -> tuple[MessageId, MessageId] | None:
        """The ids of the first and the last of them, in a topic that keeps Pulsar's (C52)."""
        ...


class SegmentFiles(Protocol):
    """The data files of topics."""

    @property
    def access(self) -> Any:
        """What an engine's tasks need to open these files elsewhere: a small value that pickles."""
        ...

    def receive(self, state: TopicState, batch: Any, *, now_ms: int, keep_offsets: bool) -> Mapping[int, Arrivals]:
        """Checks a batch of records (or an Arrow table) and sorts it to partitions.

        Raises `InvalidRecordError` (which names the first refused record) or `InvalidInputError`.
        """
        ...

    def receive_each(
        self, state: TopicState, batches: Sequence[Any], *, now_ms: int
    ) -> Sequence[Mapping[int, Arrivals] | LithifyError]:
        """The same of several batches, which are to be appended in this order: for each what `receive` gives or raises.

        Keyless records of one continue the round robin of those before it.
        """
        ...

    def joined(self, arrivals: Sequence[Arrivals]) -> Arrivals:
        """The arrivals of several batches in one log, one after the other, as one; without offsets of their own."""
        ...

    def write(self, state: TopicState, arrivals: Arrivals, base_offset: int, run_id: str) -> tuple[Segment, ...]:
        """Writes new segments; their records get offsets from `base_offset` on unless they have their own.

        A run asks for it once for each log of each version that it finds: then no file is written twice.
        """
        ...

    def read(self, segment: Segment, start_offset: int) -> Iterator[Batch]:
        """The records of a segment from an offset on. Raises `DamagedError`, which names the file."""
        ...

    def read_pieces(
        self, segment: Segment, start_offset: int, columns: Sequence[str], piece_bytes: int
    ) -> Generator[Any, None, None]:
        """The same as `pyarrow.Table`s of these columns, with the offset, of about so many bytes each.

        It may be closed before its end. Raises `DamagedError`, which names the file.
        """
        ...

    def left(self, segment: Segment, start_offset: int) -> Left:
        """How many records of a segment are at or above an offset, and the oldest of them. Raises `DamagedError`."""
        ...

    def latest(self, segments: Sequence[Segment], rules: SurvivorRules, key: bytes | None = None) -> Iterator[Batch]:
        """The records of one log that survive `rules`, in offset order: `rules.table_rules` leaves its table.

        Records at or above the horizon count as not there. With `key` only the record of this key, if there is one.
        """
        ...

    def cut(self, state: TopicState, segment: Segment, end_offset: int, run_id: str) -> tuple[Segment, ...]:
        """New segments with the records of `segment` below `end_offset`; none if there are none."""
        ...

    def masked(self, state: TopicState, segment: Segment, dead: Collection[int], run_id: str) -> Segment:
        """The segment with a new mask, which hides the records at these offsets and those hidden before.

        Raises `DamagedError`, or `WarehouseError` if nothing can be written.
        """
        ...

    def pieces(self, segment: Segment) -> Iterator[Any]:
        """A file as it is stored, in pieces of some MiB. Raises `DamagedError` if it is missing, or of another size."""
        ...

    def checked_pieces(self, segment: Segment) -> Iterator[Any]:
        """The same, checked while they pass; once the last was taken, the file matched its metadata.

        Raises `DamagedError`, which names the file.
        """
        ...

    def copy(self, state: TopicState, segment: Segment, pieces: Iterable[Any], run_id: str) -> Segment:
        """Writes a file of these pieces, as the copy of a segment that a run makes in a topic (C65).

        Raises `WarehouseError` if nothing can be written, and what `pieces` raises, with no file left.
        """
        ...

    def hidden(self, segment: Segment) -> Any:
        """What the mask of a segment hides: equal for the same records alone. Raises `DamagedError`, which names it."""
        ...

    def copy_mask(self, state: TopicState, segment: Segment, hidden: Any, run_id: str) -> Segment:
        """Writes a mask that hides the same of `segment`, as the copy of its mask that a run makes in a topic (C65).

        The segment is the one of the topic, with the mask of the source. Raises `WarehouseError` if nothing can be
        written, with no file left.
        """
        ...

    def findings(self, segment: Segment) -> tuple[Finding, ...]:
        """What is wrong with a file, which is read whole: nothing, if it matches its metadata."""
        ...

    def missing(self, paths: Sequence[str]) -> tuple[str, ...]:
        """The paths where no file is."""
        ...

    def free_bytes(self, state: TopicState) -> int | None:
        """Free space where new segments of the topic are written; None if there is no such limit."""
        ...
