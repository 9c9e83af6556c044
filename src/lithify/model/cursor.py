"""Where a reader starts (C37), and how far it has read a log: what it stores, to continue there later (C7, C49)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from operator import index
from typing import Any, Literal

from lithify.errors import OffsetOutOfRangeError, RefusedError
from lithify.model.message import MessageId, MessagePosition
from lithify.model.names import LogId
from lithify.model.topic.log import LogState
from lithify.model.topic.state import TopicState

UNTOLD = 2**62
"""The epoch of positions of Kafka's clients that have gone on after they may have missed deletes, a cut or a restore.

No log gets there: for earlier versions of Lithify an earlier state was restored, so that they do not continue either.
"""


@dataclass(frozen=True, slots=True)
class Cursor:
    """A reader has read all of a log below `offset`, when the log was in `epoch` or before.

    `identity` is the topic's, `generation` counts the truncations of the log. `as_of_ms` is in cursors that were
    stored before logs had epochs: when the reader loaded the version that it read. `partition` is missing in cursors
    of earlier versions and in cursors that are stored by partition; it only keeps one log's cursor from another log's
    reader. `run` is the log's latest commit in the `version` of the topic that was read: by it the reader finds out
    that an earlier state was restored. Older cursors, and cursors of a log without a commit, do not have these two.
    """

    identity: str
    generation: int
    offset: int
    epoch: int
    as_of_ms: int | None = None
    partition: int | None = field(default=None, compare=False)
    version: int | None = field(default=None, compare=False)
    run: str | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        """Raises `TypeError` for what is not a whole number: a reader at NaN would never come to an end."""
        optional = (number or 0 for number in (self.as_of_ms, self.partition, self.version))
        for number in (self.generation, self.offset, self.epoch, *optional):
            index(number)

    @classmethod
    def of(cls, state: TopicState, log: LogState, offset: int) -> Cursor:
        """A reader that has read a version of the log up to `offset`."""
        cursor = cls(state.identity, log.generation, offset, log.epoch, partition=log.partition)
        return cursor.having_read(log, state.version)

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Cursor:
        """Raises `ValueError`, `TypeError` or `KeyError` for what `to_json` did not write."""
        identity, generation, offset = str(given["identity"]), _whole(given["generation"]), _whole(given["offset"])
        if "epoch" in given:
            partition, version = (None if given.get(n) is None else _whole(given[n]) for n in ("partition", "version"))
            run = None if given.get("run") is None else str(given["run"])
            epoch = _whole(given["epoch"])
            return cls(identity, generation, offset, epoch, partition=partition, version=version, run=run)
        return cls(identity, generation, offset, 0, _whole(given["as_of_ms"]))

    def having_read(self, log: LogState, version: int) -> Cursor:
        """The same for a reader that has read the log in that version of its topic, without a check of its epoch."""
        if not log.run_ids:
            return replace(self, generation=log.generation, version=None, run=None)
        return replace(self, generation=log.generation, version=version, run=log.run_ids[-1])

    def without_run(self) -> Cursor:
        """The same, where nothing can be said of the log's commits."""
        return replace(self, version=None, run=None)

    @property
    def is_untold(self) -> bool:
        """Whether its reader may have missed deletes and was not told."""
        return self.epoch == UNTOLD

    def is_later_than(self, version: int) -> bool:
        """Whether a later version of the topic was read than that one."""
        return self.version is not None and self.version > version

    def is_lacked_by(self, log: LogState, version: int) -> bool:
        """Whether the log, in that version, has not come from the one that was read: an earlier state was restored.

        False if it cannot be told, as the log has had so many commits since that it remembers none of then.
        """
        if self.run is None or self.version is None:
            return False
        return log.lacks_run(self.run, version - self.version)

    def check_is_of(self, log: LogId) -> None:
        """Raises `RefusedError` for a cursor of another partition: its offset has no meaning for this one."""
        if self.partition not in (None, log.partition):
            raise RefusedError(
                f"{log}: the cursor belongs to partition {self.partition}",
                hint="pass each partition its own cursor, as `cursors()` returns them",
            )

    def to_json(self) -> dict[str, Any]:
        """As all documents store it: position files, offsets of Kafka's groups, checkpoints of Spark."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True, slots=True)
class AtTime:
    """The first record, in offset order, whose timestamp is at or after `timestamp_ms`."""

    timestamp_ms: int


Start = Literal["earliest", "latest"] | int | AtTime | MessageId | MessagePosition
From = Start | Cursor
"""Where a reader of one log may begin."""
_OFFSETS_SHOWN = 8


def check_of_all_logs(start: object) -> None:
    """Raises `RefusedError` for an offset or a message id as the start of all logs of a topic."""
    sought = start.id if isinstance(start, MessagePosition) else start
    if isinstance(sought, int) or (isinstance(sought, MessageId) and not sought.is_end):
        what = "message id" if isinstance(sought, MessageId) else "offset"
        raise RefusedError(f"{what} {sought} belongs to one log", hint="pass a partition")


def offsets_text(offsets: Mapping[int, int]) -> str:
    """Offsets by partition for a person, shortened if there are many partitions."""
    shown = [f"{partition}: {offset}" for partition, offset in sorted(offsets.items())]
    more = len(shown) - _OFFSETS_SHOWN
    return ", ".join(shown if more <= 0 else [*shown[:_OFFSETS_SHOWN], f"and {more} more"])


def whole_offset(log: LogId, offset: int) -> int:
    """`offset` as Python's own number. Raises `OffsetOutOfRangeError` for what is not a whole number."""
    try:
        return int(index(offset))
    except TypeError:
        raise OffsetOutOfRangeError(
            f"{log}: {offset!r} is not an offset", hint="use a whole number, or a message id"
        ) from None


def checked_offset(log: LogId, start: int, end: int, offset: int) -> int:
    """`offset` if a reader that begins at `start` may start there, the log end included (C2, C37)."""
    offset = whole_offset(log, offset)
    if not start <= offset <= end:
        raise OffsetOutOfRangeError(
            f"{log}: offset {offset} is outside of [{start}, {end}]",
            hint="start at earliest, at latest, or in between",
        )
    return offset


def _whole(number: Any) -> int:
    """As JSON has it, or as text; 1.5, NaN and the like are a `TypeError`."""
    return int(number) if isinstance(number, str) else int(index(number))
