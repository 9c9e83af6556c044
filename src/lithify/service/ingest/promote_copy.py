"""Makes the copy of a Kafka topic a topic of its own, which takes records from then on (C70)."""

from __future__ import annotations

from lithify.lifecycle.copies.kafka import PROMOTED, promoted
from lithify.model.names import TopicName
from lithify.model.topic.edit import TopicEdit
from lithify.model.topic.state import TopicState
from lithify.ports.store import Warehouse
from lithify.reports.ingest import CopyPromoteReport
from lithify.service.commit import commit


def promote_copy(warehouse: Warehouse, name: TopicName) -> CopyPromoteReport:
    """Ends a copy irreversibly: appends continue at its log ends, and no ingest can continue with it.

    Raises `PolicyError` for a replica, and for a topic that is no copy; `UnknownTopicError`, or what `commit` raises.
    """
    run_id = warehouse.clock.new_id()
    was: list[str] = []

    def decide(newest: TopicState) -> TopicEdit:
        was[:] = [promoted(newest)]
        logs = {0: newest.log(0)}  # it tells that the commit landed (C6)
        return TopicEdit(run_id, warehouse.clock.now_ms(), logs, copy_of=PROMOTED)

    state = commit(warehouse, name, run_id, decide)
    return CopyPromoteReport(str(name), state.version, was[0], warehouse.clock.now_ms())
