"""JoinGroup: a member comes, comes back, or asks for a new assignment."""

from __future__ import annotations

from dataclasses import dataclass, replace

from lithify.kafka_protocol.codes import Code
from lithify.kafka_server.groups.classic.group import Group, Joined, Member, Pending, Phase, Step, Synced
from lithify.kafka_server.groups.classic.rebalance import completed, current, prepared, prepared_or_completed
from lithify.kafka_server.groups.shares import Token

MOST_MEMBERS = 1_000
"""Of one group, together with the ids that were given out and not used."""
NEW_MEMBER_MS = 300_000
"""How long a new member may wait for its first answer: whether its client is still there cannot be told."""


@dataclass(frozen=True, slots=True)
class Join:
    """A JoinGroup request. `new_id` is the id that it gets if it needs one."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_ms: int
    rebalance_ms: int
    protocol_type: str
    protocols: tuple[tuple[str, bytes], ...]
    ticket: int = 0
    new_id: str = ""
    knows_ids: bool = True
    """Whether the client asks again with the id that it was given (from version 4 on)."""
    skips: bool = True
    """Whether a leader can be told to leave the assignment as it is (from version 9 on)."""
    token: Token = None
    reads: frozenset[str] = frozenset()
    """The topics of its subscription that there are, and that the token may read."""


def joined(group: Group, join: Join, now_ms: int) -> Step:
    """A member joins. Its answer may have to wait for others."""
    if group.phase is Phase.DEAD:
        return _refused(group, join, Code.COORDINATOR_NOT_AVAILABLE)
    if not group.supports(join.protocol_type, [name for name, _ in join.protocols]):
        return _refused(group, join, Code.INCONSISTENT_GROUP_PROTOCOL)
    if join.member_id:
        return _known(group, join, now_ms)
    static = group.member_of(join.instance_id)
    if static is not None:
        return _replaced(group, join, static, now_ms)
    if len(group.members) + len(group.pending) >= MOST_MEMBERS:
        return _refused(group, join, Code.GROUP_MAX_SIZE_REACHED)
    if join.instance_id is None and join.knows_ids:
        pending = {**group.pending, join.new_id: Pending(join.new_id, now_ms + join.session_ms, join.token)}
        return Step(replace(group, pending=pending), ((join.ticket, Joined(Code.MEMBER_ID_REQUIRED, join.new_id)),))
    return _added(group, join, join.new_id, now_ms)


def _known(group: Group, join: Join, now_ms: int) -> Step:
    """A client that has an id: one that it was just given, or one with which it was a member."""
    if join.member_id in group.pending and join.instance_id is None:
        return _added(group, join, join.member_id, now_ms)
    if (error := group.check_member(join.member_id, join.instance_id)) is not Code.NONE:
        return _refused(group, join, error)
    member = group.members[join.member_id]
    if _needs_rebalance(group, member, join):
        told = _told_to_retry(group, member)
        return told.then(prepared_or_completed(_updated(told.group, join, member, now_ms), now_ms))
    heard = group.with_members([member.heard(now_ms)])
    return Step(heard, ((join.ticket, current(group, member)),))


def _needs_rebalance(group: Group, member: Member, join: Join) -> bool:
    """A leader may ask for a new assignment at any time; others have the answer to an earlier request lost."""
    match group.phase:
        case Phase.COMPLETING:
            return member.protocols != join.protocols
        case Phase.STABLE:
            return member.member_id == group.leader or member.protocols != join.protocols
        case _:
            return True


def _added(group: Group, join: Join, member_id: str, now_ms: int) -> Step:
    """A new member. A group that had none takes its protocol type."""
    member = Member(
        member_id,
        join.instance_id,
        join.client_id,
        join.client_host,
        join.session_ms,
        join.rebalance_ms,
        join.protocols,
        expires_ms=now_ms + NEW_MEMBER_MS,
        join=join.ticket,
        token=join.token,
        reads=join.reads,
    )
    pending = {name: one for name, one in group.pending.items() if name != member_id}
    initial = None if group.initial is None else replace(group.initial, joined=True)
    group = replace(
        group.with_members([member]),
        pending=pending,
        initial=initial,
        leader=group.leader or member_id,
        protocol_type=group.protocol_type if group.members else join.protocol_type,
    )
    return prepared_or_completed(group, now_ms)


def _updated(group: Group, join: Join, member: Member, now_ms: int) -> Group:
    again = replace(
        member.heard(now_ms),
        protocols=join.protocols,
        session_ms=join.session_ms,
        rebalance_ms=join.rebalance_ms,
        join=join.ticket,
        token=join.token,
        reads=join.reads,
    )
    return group.with_members([again])


def _replaced(group: Group, join: Join, old: Member, now_ms: int) -> Step:
    """A static member has started again: it takes the place, and the assignment, of the one that had its name.

    What the earlier one waits for is answered, so that two processes of one name do not both go on.
    """
    waiting: list[tuple[int | None, Joined | Synced]] = [
        (old.join, Joined(Code.FENCED_INSTANCE_ID, old.member_id)),
        (old.sync, Synced(Code.FENCED_INSTANCE_ID)),
    ]
    told = tuple((ticket, answer) for ticket, answer in waiting if ticket is not None)
    new = replace(
        old.heard(now_ms),
        member_id=join.new_id,
        client_id=join.client_id,
        client_host=join.client_host,
        session_ms=join.session_ms,
        rebalance_ms=join.rebalance_ms,
        protocols=join.protocols,
        join=join.ticket,
        sync=None,
        token=join.token,
        reads=join.reads,
    )
    members = {m.member_id: m for m in (new if m is old else m for m in group.members.values())}
    unsynced = frozenset(new.member_id if name == old.member_id else name for name in group.unsynced)
    leader = new.member_id if group.leader == old.member_id else group.leader
    before, group = group.leader, replace(group, members=members, unsynced=unsynced, leader=leader)
    if group.phase is Phase.STABLE and group.chosen_protocol() == group.protocol:
        answer = current(group, new, skip_assignment=True)
        if not join.skips:  # told that another one leads, it assigns nothing
            answer = replace(answer, leader=before or "", members=())
        return Step(group.with_members([replace(new, join=None)]), (*told, (join.ticket, answer)))
    if group.phase in (Phase.STABLE, Phase.COMPLETING):
        return Step(group, told).then(prepared(group, now_ms))
    if group.initial is None and group.all_joined:
        return Step(group, told).then(completed(group, now_ms))
    return Step(group, told)


def _told_to_retry(group: Group, member: Member) -> Step:
    """Ends a JoinGroup of the member that still waits: its client has given it up, and sent another one."""
    if member.join is None:
        return Step(group)
    return Step(group, ((member.join, Joined(Code.REBALANCE_IN_PROGRESS, member.member_id)),))


def _refused(group: Group, join: Join, error: Code) -> Step:
    return Step(group, ((join.ticket, Joined(error, join.member_id)),))
