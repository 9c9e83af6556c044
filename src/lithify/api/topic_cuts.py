"""The Python API of one topic: what changes it, and removes records or files of it, on demand.

Its methods import the service that does it, so that a program that only reads loads none of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lithify.api.shown import topic_html, topic_text
from lithify.model.names import TopicName
from lithify.model.topic.edit import Verb
from lithify.ports.store import Warehouse

if TYPE_CHECKING:
    from lithify.reports.changed_settings import AlterReport
    from lithify.reports.cut import CutReport
    from lithify.reports.topic_space import SweepReport


@dataclass(frozen=True, slots=True, repr=False)
class TopicCuts:
    """The part of `Topic` whose verbs change settings, cut logs, drop views, undo rounds and sweep files."""

    warehouse: Warehouse
    topic_name: TopicName

    def __repr__(self) -> str:
        return topic_text(self.warehouse, self.topic_name)

    def _repr_html_(self) -> str:
        return topic_html(self.warehouse, self.topic_name)

    def alter(
        self,
        config: Mapping[str, object] | None = None,
        *,
        unset: Sequence[str] = (),
        partitions: int | None = None,
    ) -> AlterReport:
        """Changes settings and adds partitions in one commit (C43); those in `unset` it inherits again (C56).

        Raises `InvalidSettingError`, or `PolicyError` if a compacted view would be in the way.
        """
        from lithify.service.change.alter import alter

        return alter(self.warehouse, self.topic_name, config or {}, unset_names=unset, partitions=partitions)

    def retain(self, *, now_ms: int | None = None, allow_clock_jump: bool = False) -> CutReport:
        """Applies retention by age and size now (C24). Raises `PolicyError` without policy `delete`.

        Raises `ClockError` if the clock is years from the commits of the topic, unless it is allowed (C46).
        """
        from lithify.service.change.retain import retain

        self._trust_clock(allow_clock_jump, Verb.RETAIN)
        return retain(self.warehouse, self.topic_name, now_ms=now_ms)

    def plan_delete_records(self, partition: int, before: int) -> CutReport:
        """What `delete_records` would do now; raises what it raises."""
        from lithify.service.change.cut import plan_delete_records

        return plan_delete_records(self.warehouse, self.topic_name, partition, before)

    def delete_records(self, partition: int, before: int) -> CutReport:
        """Makes records below offset `before` unreadable at once (C26). Raises `OffsetOutOfRangeError`."""
        from lithify.service.change.cut import delete_records

        return delete_records(self.warehouse, self.topic_name, partition, before)

    def plan_truncate(self, partition: int, to: int, *, below_compacted: bool = False) -> CutReport:
        """What `truncate` would do now; raises what it raises."""
        from lithify.service.change.cut import plan_truncate

        return plan_truncate(self.warehouse, self.topic_name, partition, to, below_compacted=below_compacted)

    def truncate(self, partition: int, to: int, *, below_compacted: bool = False) -> CutReport:
        """Removes records at and above offset `to`, which becomes the log end (C26).

        Raises `OffsetOutOfRangeError`, or `PolicyError` below the first dirty offset.
        """
        from lithify.service.change.cut import truncate

        return truncate(self.warehouse, self.topic_name, partition, to, below_compacted=below_compacted)

    def plan_uncompact(self, *, lose_trimmed: bool = False) -> CutReport:
        """What `uncompact` would do now; raises what it raises."""
        from lithify.service.change.alter import plan_uncompact

        return plan_uncompact(self.warehouse, self.topic_name, lose_trimmed=lose_trimmed)

    def uncompact(self, *, lose_trimmed: bool = False) -> CutReport:
        """Drops the compacted view (C35). Raises `PolicyError`."""
        from lithify.service.change.alter import uncompact

        return uncompact(self.warehouse, self.topic_name, lose_trimmed=lose_trimmed)

    def plan_undo(self) -> CutReport:
        """What `undo` would do now; raises what it raises."""
        from lithify.service.change.undo import plan_undo

        return plan_undo(self.warehouse, self.topic_name)

    def undo(self) -> CutReport:
        """Undoes the last round (C7). Raises `NothingToUndoError`, which gives the reason."""
        from lithify.service.change.undo import undo

        return undo(self.warehouse, self.topic_name)

    def sweep(
        self, *, delete: bool = False, allow_unusual: bool = False, allow_clock_jump: bool = False
    ) -> SweepReport:
        """Lists deletable files (C6); with `delete` deletes them, once versions past their retention have expired (C7).

        Raises `ClockError` or `UnusualSweepError`.
        """
        from lithify.service.change.sweep import expire_and_sweep

        self._trust_clock(allow_clock_jump, Verb.SWEEP)
        return expire_and_sweep(self.warehouse, self.topic_name, delete=delete, allow_unusual=allow_unusual)

    def _trust_clock(self, allowed: bool, verb: Verb) -> None:
        if allowed:
            from lithify.service.clock_check import trust_clock

            trust_clock(self.warehouse, self.topic_name, verb)
