"""What may be done to a replica, and which topic may be replicated into which (C63, C64).

its source ──REPLICATE──► replica ──SWEEP, EXPIRE, TRUST_CLOCK──► replica ──PROMOTE──► a topic of its own
                                  ──COMPACT─────────────────────►          where it compacts by itself (C67)
"""

from __future__ import annotations

from collections.abc import Iterable

from lithify.errors import ConflictError, PolicyError
from lithify.model.replicas.replica_of import NOTHING_COPIED, ReplicaOf
from lithify.model.segment import Segment
from lithify.model.topic.edit import Verb
from lithify.model.topic.log import LogState
from lithify.model.topic.state import TopicState
from lithify.rules.lifecycle.own_views import NO_RUN, copied_log, copied_logs, may_compact, same_log

_DONE_TO_REPLICAS = frozenset({Verb.REPLICATE, Verb.PROMOTE, Verb.SWEEP, Verb.EXPIRE, Verb.TRUST_CLOCK})
"""They change nothing that a reader gets, or make the replica what its source is. `COMPACT` is besides (C67)."""

_START_OVER = "to start over, delete it there with `lithify topic delete`: the next copy recreates it"


def check_done_to(state: TopicState, verb: Verb) -> None:
    """Raises `PolicyError` if a topic is a replica, and the verb is not done to it (C64, C67)."""
    if verb is Verb.COMPACT:
        check_takes_rounds(state)
    elif verb not in _DONE_TO_REPLICAS:
        check_own(state)


def check_takes_rounds(state: TopicState) -> None:
    """Raises `PolicyError` for a replica that does not compact by itself (C64, C67)."""
    if not state.takes_rounds:
        check_own(state)


def check_own(state: TopicState) -> None:
    """Raises `PolicyError` for a replica: what it is asked for is done to topics of their own alone (C64)."""
    if state.replica is None:
        return
    if state.replica.compacts:
        raise PolicyError(
            f"{state.name}: it is a replica of the topic in {state.replica.source}; it compacts by itself, but "
            "everything else follows that topic",
            hint="change that topic (`lithify replica edit NAME --no-compact` drops the compacted view), or make this "
            f"one a topic of its own with `lithify replica promote {state.name} --yes`; nothing was changed",
        )
    raise PolicyError(
        f"{state.name}: it is a replica of the topic in {state.replica.source} and follows that topic",
        hint=f"change that topic, or make this one a topic of its own with `lithify replica promote {state.name} "
        "--yes`; "
        "nothing was changed",
    )


def replica_of(source: TopicState, where: str, known: ReplicaOf | None = None, *, compact: bool = False) -> ReplicaOf:
    """What a replica of a version of `source`, which is in the warehouse `where`, says.

    `known` is what it said before, `compact` whether it is to compact by itself.
    """
    above = source.replica
    chain = () if above is None else (above.identity, *above.chain)
    compacts = compact and may_compact(source)
    copied = copied_logs(source) if compacts or (known is not None and known.copied) else ()
    return ReplicaOf(where, source.identity, source.version, chain, compact=compact, compacts=compacts, copied=copied)


def is_current(known: ReplicaOf, source: TopicState, *, compact: bool) -> bool:
    """Whether a replica that says this lacks nothing of its source, and compacts as it is to."""
    return (known.version, known.compact) == (source.version, compact)


def check_replicates(source: TopicState, where: str, target: TopicState) -> ReplicaOf:
    """What `target` is a replica of by its own state, if `source` in the warehouse `where` may replace it.

    Raises `PolicyError` if it is not a replica of `source`, or `ConflictError` if one of the two is not as the last
    copy left it (C64).
    """
    known, name = target.replica, target.name
    if target.identity in (source.identity, *replica_of(source, where).chain):
        raise PolicyError(
            f"{name}: the target is the topic itself, or the source is a replica of it, even if indirectly",
            hint="replicate into another warehouse; nothing was changed",
        )
    if known is None:
        raise PolicyError(
            f"{name}: the target has a topic of that name that is not a replica, or no longer one",
            hint="if it was promoted, end the replication into it with `lithify replica remove` here; if `repair` "
            f"has recreated it, {_START_OVER}; otherwise choose another target; nothing was changed",
        )
    if not known.is_intact(target.version):
        raise ConflictError(
            f"{name}: a program that does not support replicas has written to the replica after its version "
            f"{known.written_at}",
            hint=f"to keep the written records, make it a topic of its own with `lithify replica promote {name} "
            f"--yes`; {_START_OVER}",
        )
    check_same_source(source, target)
    _check_not_back(source, target, known)
    return known


def check_same_source(source: TopicState, target: TopicState) -> None:
    """Raises `PolicyError` if a replica is one of another topic than `source`."""
    known = check_replica(target)
    if known.identity != source.identity:
        raise PolicyError(
            f"{target.name}: the target is a replica of another topic, {known.identity} in {known.source}, but the "
            f"source is {source.identity}; a recreated topic is another topic",
            hint=f"{_START_OVER}; nothing was changed",
        )


def check_replica(state: TopicState) -> ReplicaOf:
    """What a replica says of its source. Raises `PolicyError` for a topic of its own."""
    if state.replica is None:
        raise PolicyError(f"{state.name}: it is not a replica", hint="it is a topic of its own; nothing was changed")
    return state.replica


def check_promotable(state: TopicState) -> ReplicaOf:
    """The same of one that may be promoted or verified: it has something. Raises `PolicyError` for others."""
    known = check_replica(state)
    if known.version == NOTHING_COPIED:
        raise PolicyError(
            f"{state.name}: the first copy of its source has not completed, so the replica is empty",
            hint="let `lithify replica run` complete it, or delete the topic; nothing was changed",
        )
    return known


def _check_not_back(source: TopicState, target: TopicState, known: ReplicaOf) -> None:
    """Raises `ConflictError` if the source is not what it was when it was copied, or later than that."""
    if known.version == NOTHING_COPIED:
        return
    logs = [(now, copied_log(target, now.partition)) for now in source.logs if now.partition in target.partitions]
    if source.version < known.version:
        why = f"it is at version {source.version}, but the replica has its version {known.version}"
    elif (
        len(source.logs) < len(target.logs)
        or any(now.epoch < then.epoch for now, then in logs)
        or any(now.generation < target.log(now.partition).generation for now, _ in logs)
    ):
        why = f"its logs are older than in its version {known.version}, which the replica has"
    elif source.version == known.version and not all(same_log(now, target) for now, _ in logs):
        why = f"its version {known.version} is not the one that the replica has"
    elif any(then.run != NO_RUN and now.lacks_run(then.run, source.version - known.version) for now, then in logs):
        why = f"its logs lack commits of its version {known.version}, which the replica has"
    else:
        return
    raise _went_back(target, why)


def check_still_there(source: TopicState, target: TopicState, removed: Iterable[Segment]) -> None:
    """Raises `ConflictError` if the source lacks segments of the replica that nothing can have removed (C64).

    Rounds, also those that were undone, remove what is below D, and retention and `delete-records` what is below S;
    truncations remove or rewrite what ends above their new log ends. So a source that was restored is found however
    much it has gone on since.
    """
    for segment in removed:
        now, then = source.log(segment.partition), target.log(segment.partition)
        compacted = max(max(log.first_dirty_offset, log.compacted_below) for log in (now, then))
        if compacted < segment.end_offset <= _never_cut(now, then):
            raise _went_back(
                target,
                f"partition {segment.partition} lacks the records that the replica has from offset "
                f"{max(segment.base_offset, compacted)} on, although no round, retention or cut removed them",
            )


def _never_cut(now: LogState, then: LogState) -> int:
    """The offset below which no truncation of a source's log since `then` has removed anything; 0: not known."""
    truncations = now.generation - then.generation
    if truncations > len(now.truncated):
        return 0
    return min(now.truncated[-truncations:]) if truncations else then.log_end_offset


def _went_back(target: TopicState, why: str) -> ConflictError:
    return ConflictError(
        f"{target.name}: the source went back: {why}",
        hint="if it was restored from a backup, the replica may have more records: promote the replica, or delete it "
        "there, and the next copy recreates it; nothing was changed",
    )
