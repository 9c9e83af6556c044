"""What else members ask for, and the passing of time: SyncGroup, Heartbeat, LeaveGroup, commits, lost members."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from lithify.kafka_protocol.codes import Code
from lithify.kafka_server.groups.classic.group import Answers, Group, Joined, Member, Phase, Step, Synced
from lithify.kafka_server.groups.classic.rebalance import completed, initial_over, prepared, prepared_or_completed


@dataclass(frozen=True, slots=True)
class Sync:
    """A SyncGroup request. The leader's has the assignments by member."""

    member_id: str
    instance_id: str | None
    generation: int
    protocol_type: str | None
    protocol: str | None
    assignments: Mapping[str, bytes]
    ticket: int = 0


def synced(group: Group, sync: Sync, now_ms: int) -> Step:
    """A member asks for its assignment, which comes with the leader's request."""
    error = _sync_error(group, sync)
    if error is not Code.NONE:
        return Step(group, ((sync.ticket, Synced(error)),))
    member = group.members[sync.member_id].heard(now_ms)
    group = replace(group.with_members([member]), unsynced=group.unsynced - {sync.member_id})
    if group.phase is Phase.STABLE:
        until_ms = group.until_ms if group.unsynced else None
        return Step(replace(group, until_ms=until_ms), ((sync.ticket, _assigned(group, member)),))
    answers: Answers = ()
    if member.sync is not None:  # its client has given the earlier one up
        answers = ((member.sync, Synced(Code.REBALANCE_IN_PROGRESS)),)
    group = group.with_members([replace(member, sync=sync.ticket)])
    if sync.member_id != group.leader:
        return Step(group, answers)
    given = [replace(m, assignment=sync.assignments.get(m.member_id, b"")) for m in group.members.values()]
    answers += tuple((m.sync, _assigned(group, m)) for m in given if m.sync is not None)
    told = (replace(m.heard(now_ms), sync=None) if m.sync is not None else m for m in given)
    until_ms = group.until_ms if group.unsynced else None
    return Step(replace(group.with_members(told), phase=Phase.STABLE, until_ms=until_ms), answers)


def _sync_error(group: Group, sync: Sync) -> Code:
    error = check(group, sync.member_id, sync.instance_id, sync.generation)
    if error is not Code.NONE:
        return error
    if sync.protocol_type not in (None, group.protocol_type) or sync.protocol not in (None, group.protocol):
        return Code.INCONSISTENT_GROUP_PROTOCOL
    return Code.REBALANCE_IN_PROGRESS if group.phase is Phase.PREPARING else Code.NONE


def _assigned(group: Group, member: Member) -> Synced:
    return Synced(Code.NONE, group.protocol_type, group.protocol, member.assignment)


def check(group: Group, member_id: str, instance_id: str | None, generation: int) -> Code:
    """Whether a request comes from a member of this generation."""
    match group.phase:
        case Phase.DEAD:
            return Code.COORDINATOR_NOT_AVAILABLE
        case Phase.EMPTY:
            return Code.UNKNOWN_MEMBER_ID
        case _:
            error = group.check_member(member_id, instance_id)
            return Code.ILLEGAL_GENERATION if error is Code.NONE and generation != group.generation else error


def heartbeat(
    group: Group, member_id: str, instance_id: str | None, generation: int, now_ms: int
) -> tuple[Group, Code]:
    """A member is there. While others join it is told so, and joins again."""
    error = check(group, member_id, instance_id, generation)
    if error is not Code.NONE:
        return group, error
    heard = group.with_members([group.members[member_id].heard(now_ms)])
    return heard, Code.REBALANCE_IN_PROGRESS if group.phase is Phase.PREPARING else Code.NONE


def committing(
    group: Group, member_id: str, instance_id: str | None, generation: int, now_ms: int
) -> tuple[Group, Code]:
    """Whether offsets may be committed: by a member of this generation, or by anyone while there are no members."""
    if group.phase is Phase.EMPTY and generation < 0:
        return group, Code.NONE
    error = check(group, member_id, instance_id, generation)
    if error is Code.NONE and group.phase is Phase.COMPLETING:  # what it has is another member's soon
        error = Code.REBALANCE_IN_PROGRESS
    if error is not Code.NONE:
        return group, error
    return group.with_members([group.members[member_id].heard(now_ms)]), Code.NONE


def left(group: Group, leaving: Sequence[tuple[str, str | None]], now_ms: int) -> tuple[Step, list[Code]]:
    """Members leave, each with its id, or with its name alone if it is static. With the result of each."""
    codes: list[Code] = []
    answers: Answers = ()
    for member_id, instance_id in leaving:
        known = group.member_of(instance_id) if not member_id else group.members.get(member_id)
        error = Code.UNKNOWN_MEMBER_ID
        if group.phase is Phase.DEAD:
            error = Code.COORDINATOR_NOT_AVAILABLE
        elif member_id in group.pending:
            group, error = group.without([member_id]), Code.NONE
        elif known is not None:
            error = group.check_member(known.member_id, instance_id)
        if error is Code.NONE and known is not None:
            group, answers = group.without([known.member_id]), answers + _dismissed(known)
        codes.append(error)
    if Code.NONE not in codes or group.phase is Phase.EMPTY:
        return Step(group, answers), codes
    return Step(group, answers).then(prepared_or_completed(group, now_ms)), codes


def elapsed(group: Group, now_ms: int) -> Step:
    """Time has passed: members that were not heard of are lost, and a rebalance goes on without who is missing."""
    expired = [name for name, one in group.pending.items() if now_ms >= one.expires_ms]
    lost = [member for member in group.members.values() if member.is_lost(now_ms)]
    step = Step(group)
    if expired or lost:
        group = group.without([*expired, *(member.member_id for member in lost)])
        step = Step(group, tuple(answer for member in lost for answer in _dismissed(member)))
        if group.phase is Phase.PREPARING and group.all_joined:
            return step.then(completed(group, now_ms))
        if lost and group.phase in (Phase.COMPLETING, Phase.STABLE):
            return step.then(prepared(group, now_ms))
    if group.initial is not None and now_ms >= group.initial.until_ms:
        return step.then(initial_over(group, group.initial, now_ms))
    if group.until_ms is not None and now_ms >= group.until_ms:
        return step.then(_overdue(group, now_ms))
    return step


def _overdue(group: Group, now_ms: int) -> Step:
    if group.phase is Phase.PREPARING:
        return completed(group, now_ms)
    missing = [group.members[name] for name in group.unsynced]
    rest = group.without(group.unsynced)
    answers = tuple(answer for member in missing for answer in _dismissed(member))
    return Step(rest, answers).then(prepared(rest, now_ms))


def due_ms(group: Group) -> int | None:
    """When `elapsed` may change something next, at the earliest."""
    times = [
        *(one.expires_ms for one in group.pending.values()),
        *(m.expires_ms for m in group.members.values() if m.is_new or (m.join is None and m.sync is None)),
    ]
    if group.initial is not None:
        times.append(group.initial.until_ms)
    if group.until_ms is not None:
        times.append(group.until_ms)
    return min(times, default=None)


def resigned(group: Group) -> Step:
    """Another gateway coordinates the group from now on: all who wait are told to look for it."""
    answers: Answers = ()
    for member in group.members.values():
        answers += _dismissed(member, Code.NOT_COORDINATOR)
    return Step(Group(Phase.DEAD), answers)


def _dismissed(member: Member, error: Code = Code.UNKNOWN_MEMBER_ID) -> Answers:
    """What a member that is gone is told, if it waits: it may be there still, and joins again."""
    answers: Answers = ()
    if member.join is not None:
        answers += ((member.join, Joined(error, "" if error is Code.UNKNOWN_MEMBER_ID else member.member_id)),)
    if member.sync is not None:
        answers += ((member.sync, Synced(error)),)
    return answers
