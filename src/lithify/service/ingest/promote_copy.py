"""Makes the copy of a Kafka topic a topic of its own, which takes records from then on (C70).

    promotion and source document: promoted ─► commit: no copy any more ─► source document: promoted

The documents come first: a repair may restore an earlier version of the topic, but not a document. Without the
commit nothing can be appended, and no ingest can begin; a repeated promotion completes it. An ingest that had read the
source document before may overwrite it, and be killed then; only a promotion writes its own document. Earlier versions
support only the first one.
"""

from __future__ import annotations

from dataclasses import replace

from lithify.errors import ConflictError
from lithify.model.names import TopicName
from lithify.model.sources.copied_topic import CopiedTopic
from lithify.model.sources.origin import PROMOTED
from lithify.model.topic.edit import TopicEdit
from lithify.model.topic.state import TopicState
from lithify.ports.store import Warehouse
from lithify.reports.ingest import CopyPromoteReport
from lithify.rules.lifecycle.copies.ownership import promoted
from lithify.service.commit import commit
from lithify.service.documents import put_promotion, put_source, source_of


def promote_copy(warehouse: Warehouse, name: TopicName) -> CopyPromoteReport:
    """Ends a copy irreversibly: appends continue at its log ends, and no ingest can continue with it.

    Raises `PolicyError` for a replica, and for a topic that is not a copy; `ConflictError` if it is another topic
    now, `UnknownTopicError`, `DamagedError`, or what `commit` raises.
    """
    run_id = warehouse.clock.new_id()
    state = warehouse.store.load(name)
    source = promoted(state).topic
    known = source_of(warehouse.store, state) or CopiedTopic(source, "")
    put_promotion(warehouse.store, state)
    put_source(warehouse.store, state, replace(known, promoted=True))

    def decide(newest: TopicState) -> TopicEdit:
        if newest.identity != state.identity:
            raise ConflictError(f"{name}: the topic was deleted and recreated meanwhile", hint="promote again")
        promoted(newest)
        logs = {0: newest.log(0)}  # it tells that the commit landed (C6)
        return TopicEdit(run_id, warehouse.clock.now_ms(), logs, origin=PROMOTED)

    done = commit(warehouse, name, run_id, decide)
    put_source(warehouse.store, done, replace(known, promoted=True))
    return CopyPromoteReport(str(name), done.version, source, warehouse.clock.now_ms())
