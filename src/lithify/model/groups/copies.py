"""What becomes of the position of a group at a replica when that at its source is copied (C68).

    position at the source    stored at the replica    noted of the last copy
    billing 52                none                     none, or any            written: new, or deleted there
    billing 52                40                       40                      written
    none                      40                       40                      removed
    billing 52                45                       40                      left: committed or reset there
    billing 52                40 of an earlier topic   none                    left: its reader is told that (C58)

What a copy has written is noted beside the position. So a program that knows only positions, of whatever version, makes
one its group's own by changing it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum

from lithify.model.cursor import UNTOLD
from lithify.model.groups.positions import Position
from lithify.model.topic.state import TopicState


class Verdict(Enum):
    """What a copy does with one position."""

    SAME = "it is as at the source"
    WRITE = "it is written, and noted"
    REMOVE = "it is removed with its note: the source has none any more"
    HELD = "a member at the replica has the partition: it is left for a later copy"
    OWN = "it is the group's own at the replica: it is left"


@dataclass(frozen=True, slots=True)
class CopiedPositions:
    """What one copy did, in positions of a topic. `overtaken`: another copy came in between, and its result remains."""

    same: int = 0
    written: int = 0
    removed: int = 0
    held: int = 0
    own: int = 0
    overtaken: bool = False

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left for a later copy."""
        return not (self.held or self.overtaken)

    @property
    def changed(self) -> bool:
        """Whether positions of the replica are others than before."""
        return bool(self.written or self.removed)

    def with_one(self, verdict: Verdict) -> CopiedPositions:
        match verdict:
            case Verdict.SAME:
                return replace(self, same=self.same + 1)
            case Verdict.WRITE:
                return replace(self, written=self.written + 1)
            case Verdict.REMOVE:
                return replace(self, removed=self.removed + 1)
            case Verdict.HELD:
                return replace(self, held=self.held + 1)
            case Verdict.OWN:
                return replace(self, own=self.own + 1)


def verdict(wanted: Position | None, stored: Position | None, noted: Position | None, *, held: bool) -> Verdict:
    """What to do with one position. `wanted` is the source's, as `at_replica` gives it; `noted` was copied."""
    if stored is not None and stored != noted:
        return Verdict.OWN
    if wanted is not None and wanted == stored:
        return Verdict.SAME
    if held:
        return Verdict.HELD
    return Verdict.REMOVE if wanted is None else Verdict.WRITE


def at_replica(position: Position, source: str, replica: TopicState) -> Position:
    """A position of the source, which `source` identifies, as one of its replica.

    Logs of the replica equal the source's logs, epochs and truncations included (C63). Only the identity differs, and
    the commits that led to them, which the position then leaves out. A position of an earlier topic of the name remains
    one, so that its reader gets the same error at the replica. If the replica compacts by itself, the reader was never
    informed of what its view has lost, so this counts as lost after the position (C49, C67).
    """
    cursor = position.cursor
    if cursor.identity != source:
        return position
    epoch = UNTOLD if cursor.is_untold else min([cursor.epoch, *_epochs_before_drops(replica, position.log.partition)])
    there = replace(cursor.without_run(), identity=replica.identity, epoch=epoch)
    return replace(position, cursor=there)


def _epochs_before_drops(replica: TopicState, partition: int) -> Iterator[int]:
    """Of each time that a view of the replica's own has lost something, the epoch before it."""
    if replica.replica is not None and replica.replica.copied and partition in replica.partitions:
        yield from (drop.epoch - 1 for drop in replica.log(partition).dropped if drop.of_view)
