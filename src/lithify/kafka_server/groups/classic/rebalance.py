"""The course of a rebalance: it is begun, waits for members to join, and makes a new generation."""

from __future__ import annotations

from dataclasses import replace

from lithify.kafka_protocol.codes import Code
from lithify.kafka_server.groups.classic.group import Answers, Group, Initial, Joined, Member, Phase, Step, Synced

INITIAL_DELAY_MS = 1_000
"""How long the first rebalance of an empty group waits for more members, of which each would cause another one."""


def prepared(group: Group, now_ms: int) -> Step:
    """Begins a rebalance: who has synced too early is told to join again."""
    told: Answers = ()
    if group.phase is Phase.COMPLETING:
        failed = Synced(Code.REBALANCE_IN_PROGRESS)
        told = tuple((m.sync, failed) for m in group.members.values() if m.sync is not None)
        group = group.with_members(
            replace(m.heard(now_ms) if m.sync is not None else m, sync=None, assignment=b"")
            for m in group.members.values()
        )
    is_first = group.phase is Phase.EMPTY
    group = replace(group, phase=Phase.PREPARING, unsynced=frozenset(), until_ms=None)
    if is_first:
        left_ms = max(group.rebalance_ms - INITIAL_DELAY_MS, 0)
        return Step(replace(group, initial=Initial(now_ms + INITIAL_DELAY_MS, left_ms)), told)
    if group.all_joined:
        return Step(group, told).then(completed(group, now_ms))
    return Step(replace(group, until_ms=now_ms + group.rebalance_ms), told)


def prepared_or_completed(group: Group, now_ms: int) -> Step:
    """After a member has joined or left: begins a rebalance, or ends one for which nobody is missing any more."""
    if group.phase is not Phase.PREPARING:
        return prepared(group, now_ms)
    if group.initial is None and group.all_joined:
        return completed(group, now_ms)
    return Step(group)


def initial_over(group: Group, initial: Initial, now_ms: int) -> Step:
    """The first rebalance has waited: it waits again if others have joined and it was not put off for long."""
    if initial.joined and initial.left_ms:
        more_ms = min(INITIAL_DELAY_MS, initial.left_ms)
        return Step(replace(group, initial=Initial(now_ms + more_ms, initial.left_ms - more_ms)))
    return completed(group, now_ms)


def completed(group: Group, now_ms: int) -> Step:
    """Ends the time to join: members that have not are gone, the others are a new generation.

    Static members stay for their session. While only such members are missing, nothing changes.
    """
    group = group.without(m.member_id for m in group.members.values() if m.join is None and m.instance_id is None)
    if not group.members:
        return Step(
            replace(
                group,
                phase=Phase.EMPTY,
                generation=group.generation + 1,
                protocol=None,
                leader=None,
                initial=None,
                until_ms=None,
            )
        )
    leader = _leader(group)
    if leader is None:
        return Step(replace(group, initial=None, until_ms=now_ms + group.rebalance_ms))
    group = replace(
        group,
        phase=Phase.COMPLETING,
        generation=group.generation + 1,
        protocol=group.chosen_protocol(),
        leader=leader,
        unsynced=frozenset(group.members),
        initial=None,
        until_ms=now_ms + group.rebalance_ms,
    )
    answers = tuple((m.join, current(group, m)) for m in group.members.values() if m.join is not None)
    waited = (replace(m.heard(now_ms), join=None, is_new=False) for m in group.members.values() if m.join is not None)
    return Step(group.with_members(waited), answers)


def current(group: Group, member: Member, *, skip_assignment: bool = False) -> Joined:
    """The generation, as one of its members is told."""
    leads = member.member_id == group.leader
    members = tuple((m.member_id, m.instance_id, m.metadata(group.protocol)) for m in group.members.values())
    return Joined(
        error=Code.NONE,
        member_id=member.member_id,
        generation=group.generation,
        protocol_type=group.protocol_type,
        protocol=group.protocol,
        leader=group.leader or "",
        members=members if leads else (),
        skip_assignment=skip_assignment and leads,
    )


def _leader(group: Group) -> str | None:
    """The leader if it has joined, else the first who has."""
    if group.leader is not None and group.members[group.leader].join is not None:
        return group.leader
    return next((m.member_id for m in group.members.values() if m.join is not None), None)
