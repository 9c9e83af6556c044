"""The chain of runs that append with keys, by which a retry tells whether a run has landed (C75).

    state of log 0    … ─► r1 ─► r2 ─► r3          only the latest run is in the state
    notes             r1 landed   r2 landed   r3 open

Such a run lands only on a version whose latest run is the one that it comes `after`, as its notes say. Before a run
follows another one, it notes that the other has landed. Runs never return, so of a note that is still open after the
state was read:

    latest run of the state      the run of the note
    itself                       has landed
    the one before it            may still land, until a fence follows that one
    another one of its chain     has not landed, and never will: else its notes would not be open
    none, or of another chain    nobody knows: other queries have pushed the chain out of the state, or a repair
                                 has rebuilt it, perhaps with the records of a run that it does not name

A fence is a run without records. A chain begins with one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from lithify.model.names import TopicName
from lithify.model.topic.append_note import CHAIN_ID
from lithify.model.topic.edit import TopicEdit
from lithify.model.topic.log import WrittenBatch
from lithify.model.topic.state import TopicState
from lithify.ports.store import Warehouse
from lithify.service.commit import commit
from lithify.service.write.append_staged import MEMORY_PARTITION


@dataclass(frozen=True, slots=True)
class Link:
    """The latest run of a chain, and how many there were before it."""

    chain: str
    run: str
    number: int

    def next(self, run: str) -> Link:
        """The link of a run that follows this one."""
        return replace(self, run=run, number=self.number + 1)

    @property
    def batch(self) -> WrittenBatch:
        """The link as the state has it."""
        return WrittenBatch(CHAIN_ID, self.number, f"{self.chain} {self.run}")


def latest_link(state: TopicState) -> Link | None:
    """The latest run of the chain of a topic; None if there is no chain."""
    batch = state.log(MEMORY_PARTITION).latest_batch(CHAIN_ID)
    if batch is None:
        return None
    chain, _, run = batch.stream_id.partition(" ")
    return Link(chain, run, batch.batch_id) if chain and run else None


def with_chain(warehouse: Warehouse, name: TopicName) -> TopicState:
    """Begins a chain, unless there is one. Raises what `commit` raises."""
    run_id = warehouse.clock.new_id()

    def decide(newest: TopicState) -> TopicEdit | None:
        return None if latest_link(newest) is not None else _edit(warehouse, newest, Link(run_id, run_id, 0))

    return commit(warehouse, name, run_id, decide)


def fence(warehouse: Warehouse, name: TopicName, latest: Link) -> None:
    """Sees to it that runs which come after `latest` do not land any more, unless one has. Raises what `commit` raises.

    A note that is of such a run was written together with the note that `latest` has landed.
    """
    run_id = warehouse.clock.new_id()

    def decide(newest: TopicState) -> TopicEdit | None:
        if latest_link(newest) != latest:
            return None
        return _edit(warehouse, newest, latest.next(run_id))

    commit(warehouse, name, run_id, decide)


def _edit(warehouse: Warehouse, newest: TopicState, link: Link) -> TopicEdit:
    log = newest.log(MEMORY_PARTITION).with_batch(link.batch)
    return TopicEdit(link.run, warehouse.clock.now_ms(), {MEMORY_PARTITION: log})
