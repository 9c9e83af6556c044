"""The mark of a copy, which says of which topic it is one, before an ingest copies anything into it (C70)."""

from __future__ import annotations

from lithify.errors import ConflictError
from lithify.model.sources.origin import CopyOf
from lithify.model.topic.edit import TopicEdit
from lithify.model.topic.state import TopicState
from lithify.ports.store import Warehouse
from lithify.rules.lifecycle.copies.ownership import check_ingested
from lithify.service.commit import commit


def marked(warehouse: Warehouse, state: TopicState, source: CopyOf, *, known: bool) -> TopicState:
    """The topic once it says that it is a copy of `source`; `known`: its documents say so.

    Raises `ConflictError`, what `check_ingested` raises, or what a commit raises.
    """
    if _is_marked(state, source):
        return state
    run_id = warehouse.clock.new_id()

    def decide(newest: TopicState) -> TopicEdit:
        if newest.identity != state.identity:
            raise ConflictError(f"{state.name}: the topic was deleted and recreated meanwhile", hint="start again")
        check_ingested(newest, source, known=known)
        logs = {0: newest.log(0)}  # it tells that the commit landed (C6)
        return TopicEdit(run_id, warehouse.clock.now_ms(), logs, origin=source)

    return commit(warehouse, state.name, run_id, decide)


def check_marked(state: TopicState, source: CopyOf) -> None:
    """Raises `ConflictError` if it says so no more: what is loaded after a commit is not what was committed."""
    if not _is_marked(state, source):
        why = "it was promoted, or deleted and recreated, meanwhile"
        raise ConflictError(f"{state.name}: {why}", hint="start again; nothing was copied")


def _is_marked(state: TopicState, source: CopyOf) -> bool:
    """Copies that keep message ids need no mark: these say where each record is from."""
    return state.settings.message_ids != "none" or state.origin == source
