"""Makes a replica a topic of its own, which takes records, rounds and all other verbs from then on (C64).

    fence raised ─► commit ─► fence raised

A daemon that was frozen in a copy of positions has read an earlier fence, and writes none any more (C68). The first one
holds even if this process ends right after the commit; the second one stops a copy that began between the two.
"""

from __future__ import annotations

from lithify.model.names import TopicName
from lithify.model.replicas.replica_of import ReplicaOf
from lithify.model.topic.edit import TopicEdit, Verb
from lithify.model.topic.state import TopicState
from lithify.ports.groups import PositionCopies
from lithify.ports.store import Warehouse
from lithify.reports.replicas import PromoteReport
from lithify.rules.lifecycle.replicas import check_promotable
from lithify.service.commit import commit


def promote(warehouse: Warehouse, name: TopicName, copies: PositionCopies | None = None) -> PromoteReport:
    """Promotes a replica. Offsets continue where the source's ended; its source is not notified.

    `copies` has the copies of positions into its warehouse; None if none can be copied to it.

    Raises `PolicyError` for a topic that is not a replica, or one that has nothing yet; `UnknownTopicError`, or what
    `commit` raises; `CoordinationError` if the fence cannot be raised. If this fails after the commit, the topic is
    promoted.
    """
    run_id = warehouse.clock.new_id()
    was: list[ReplicaOf] = []

    def decide(newest: TopicState) -> TopicEdit:
        was[:] = [check_promotable(newest)]
        logs = {log.partition: log for log in newest.logs}  # they tell that the commit landed (C6)
        return TopicEdit(run_id, warehouse.clock.now_ms(), logs, verb=Verb.PROMOTE, features=())

    check_promotable(warehouse.store.load(name))
    if copies is not None:
        copies.raise_fence(name)
    state = commit(warehouse, name, run_id, decide)
    if copies is not None:
        copies.raise_fence(name)
    return PromoteReport(str(name), state.version, was[0].source, was[0].version, warehouse.clock.now_ms())
