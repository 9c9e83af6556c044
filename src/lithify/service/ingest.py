"""Committing what was copied from Kafka: at the log ends it was read from, or not at all (C1, C6).

    log end E ─► read [E, …) ─► segments with Kafka's offsets ─► commit, if the log still ends at E

Whoever commits first has the range. Another copy of the same log finds that its end has moved, and
says so; nothing is ever there twice, and nothing is left out.
"""

from __future__ import annotations

from collections.abc import Mapping

from lithify.errors import ConflictError
from lithify.model.ingest import Copied
from lithify.model.log import TopicEdit, TopicState
from lithify.model.names import LogId
from lithify.ports import Warehouse
from lithify.service.append import appended
from lithify.service.commit import commit
from lithify.service.staged import check_there


def commit_copied(warehouse: Warehouse, base: TopicState, copied: Mapping[int, Copied], run_id: str) -> TopicState:
    """Adds segments to the logs that end where `base` says, all of them or none. Returns the new version.

    Raises `ConflictError` where somebody else has written to one of these logs or made the topic
    again, `DamagedError`, or what `commit` raises.
    """

    def decide(newest: TopicState) -> TopicEdit:
        if newest.identity != base.identity:
            raise ConflictError(f"{base.name}: the topic was deleted and made again meanwhile", hint="start again")
        for partition in copied:
            before, now = base.log(partition).log_end_offset, newest.log(partition).log_end_offset
            if now != before:
                raise ConflictError(
                    f"{LogId(base.name, partition)}: the log ended at {before} and ends at {now} now: "
                    "someone else writes to it",
                    hint="one ingest at a time, and no other producers; nothing was written twice",
                )
        segments = tuple(segment for log in copied.values() for segment in log.segments)
        check_there(warehouse, segments)
        logs = {p: appended(newest.log(p), log.segments, log.last_timestamp_ms) for p, log in copied.items()}
        return TopicEdit(run_id, warehouse.clock.now_ms(), logs, add=segments)

    return commit(warehouse, base.name, run_id, decide)
