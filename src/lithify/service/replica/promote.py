"""Makes a replica a topic of its own, which takes records, rounds and all other verbs from then on (C64)."""

from __future__ import annotations

from lithify.lifecycle.replicas import check_promotable
from lithify.model.names import TopicName
from lithify.model.replicas.replica_of import ReplicaOf
from lithify.model.topic.edit import TopicEdit, Verb
from lithify.model.topic.state import TopicState
from lithify.ports.store import Warehouse
from lithify.reports.replicas import PromoteReport
from lithify.service.commit import commit


def promote(warehouse: Warehouse, name: TopicName) -> PromoteReport:
    """Promotes a replica. Offsets go on where those of the source ended; its source is not told.

    Raises `PolicyError` for a topic that is no replica, or one that has nothing yet; `UnknownTopicError`, or what
    `commit` raises.
    """
    run_id = warehouse.clock.new_id()
    was: list[ReplicaOf] = []

    def decide(newest: TopicState) -> TopicEdit:
        was[:] = [check_promotable(newest)]
        logs = {log.partition: log for log in newest.logs}  # they tell that the commit landed (C6)
        return TopicEdit(run_id, warehouse.clock.now_ms(), logs, verb=Verb.PROMOTE, features=())

    state = commit(warehouse, name, run_id, decide)
    return PromoteReport(str(name), state.version, was[0].source, was[0].version, warehouse.clock.now_ms())
