"""A reader that comes back to a log that was restored, and written to since, gets an error; no other one does (C49).

version   1 ─ 2 ─ 3 ─ 4 ─ 5          readers of 4 and 5 have read what is no more
                  └── 4' ─ 5' ─ 6'   those of 1 to 3 go on, however many commits later
"""

from __future__ import annotations

from copy import copy

from hypothesis import settings as profile
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from lithify.errors import LithifyError
from lithify.model.cursor import Cursor
from lithify.model.record import Record
from lithify.model.topic.log import RUN_IDS_KEPT
from lithify.model.topic.state import TopicState
from lithify.rules.reading.continuation import Continues, Restored, continuation
from lithify.service.change.alter import alter
from lithify.service.change.cut import delete_records, truncate
from lithify.service.change.undo import undo
from support.topics.memory_topic import ORDERS, MemoryTopic


class RestoredTopic(RuleBasedStateMachine):
    """One topic, and a cursor of every version that it ever had."""

    @initialize(mode=st.sampled_from(["in-place", "side-by-side"]))
    def create(self, mode: str) -> None:
        self.topic = MemoryTopic(compaction_mode=mode, delete_retention_ms=0)
        self.cursors: list[Cursor] = []
        self.lineage: dict[int, TopicState] = {}
        self.backup: object = None
        self.noted()

    def noted(self) -> None:
        """After every commit, with readers at each end of the log."""
        state = self.topic.state
        log = state.log(0)
        if self.lineage.get(state.version) != state:
            self.lineage[state.version] = state
            self.cursors += [Cursor.of(state, log, at) for at in {log.log_start_offset, log.log_end_offset}]

    @rule(count=st.integers(1, 8))
    def append(self, count: int) -> None:
        self.topic.append([Record(b"k%d" % n, b"v", 0) for n in range(count)])
        self.noted()

    @rule(times=st.integers(1, 12))
    def append_often(self, times: int) -> None:
        for _ in range(times):
            self.append(1)

    @rule()
    def round(self) -> None:
        self.topic.compact()
        self.noted()

    @rule(act=st.sampled_from(["undo", "truncate", "delete-records", "alter"]))
    def change(self, act: str) -> None:
        warehouse, log = self.topic.warehouse, self.topic.log()
        try:
            if act == "undo":
                undo(warehouse, ORDERS)
            elif act == "truncate":
                truncate(warehouse, ORDERS, 0, max(log.log_start_offset, log.log_end_offset - 1))
            elif act == "delete-records":
                delete_records(warehouse, ORDERS, 0, min(log.log_end_offset, log.log_start_offset + 1))
            else:
                retention = 10 + self.topic.state.version % 7
                alter(warehouse, ORDERS, {"delete.retention.ms": str(retention)})
        except LithifyError:
            pass
        self.noted()

    @rule()
    def back_up(self) -> None:
        topic = self.topic.store._topics[ORDERS]
        kept = copy(topic)
        kept.versions = list(topic.versions)
        self.backup = kept

    @rule()
    @precondition(lambda self: self.backup is not None)
    def put_back(self) -> None:
        kept = copy(self.backup)
        kept.versions = list(kept.versions)  # type: ignore[attr-defined]
        self.topic.store._topics[ORDERS] = kept  # type: ignore[assignment]
        newest = self.topic.state.version
        self.lineage = {version: state for version, state in self.lineage.items() if version <= newest}
        self.backup = None if newest % 2 else self.backup

    @invariant()
    def only_readers_of_what_is_no_more_are_told_that_it_was_restored(self) -> None:
        state = self.topic.state
        log = state.log(0)
        for cursor in self.cursors:
            then = self.lineage.get(cursor.version or 0)
            found = continuation(cursor, state, log, compacted=False)
            if cursor.version is None or (then is not None and cursor.run == then.log(0).run_ids[-1]):
                assert found != Restored(), cursor
            elif len(log.run_ids) < RUN_IDS_KEPT or state.version - cursor.version < RUN_IDS_KEPT // 2:
                assert found != Continues(), cursor


TestRestored = RestoredTopic.TestCase
TestRestored.settings = profile(max_examples=50, stateful_step_count=40, deadline=None)
