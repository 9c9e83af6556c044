"""ConsumerGroupHeartbeat: a member comes, says what it subscribes to and what it has, and gets what it is to have."""

from __future__ import annotations

from dataclasses import dataclass, replace

from lithify.kafka_protocol.codes import Code
from lithify.kafka_server.groups.modern.assignor import NOTHING, Parts, assigned
from lithify.kafka_server.groups.modern.group import Consumer, ConsumerGroup, Layout
from lithify.kafka_server.groups.shares import Token

HEARTBEAT_MS = 2_000
"""A partition changes hands in two or three of them."""
SESSION_MS = 45_000
"""As Kafka's `group.consumer.session.timeout.ms`."""
MOST_MEMBERS = 1_000
ASSIGNORS = (None, "uniform", "range")
"""Either is taken; shares are even."""
JOINS, LEAVES, LEAVES_FOR_NOW = 0, -1, -2


@dataclass(frozen=True, slots=True)
class Beat:
    """A heartbeat. What is None has not changed since the last one."""

    member_id: str
    epoch: int
    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    rebalance_ms: int
    topics: frozenset[str] | None
    pattern: str | None
    matched: frozenset[str]
    assignor: str | None
    owned: Parts | None
    token: Token = None


@dataclass(frozen=True, slots=True)
class Told:
    """The answer. `assigned` is None where it has not changed."""

    error: Code
    member_id: str
    epoch: int = 0
    assigned: Parts | None = None


def beaten(group: ConsumerGroup, beat: Beat, layout: Layout, now_ms: int) -> tuple[ConsumerGroup, Told]:
    """A heartbeat of a member, or of one that comes or leaves."""
    if beat.assignor not in ASSIGNORS:
        return group, Told(Code.UNSUPPORTED_ASSIGNOR, beat.member_id)
    if beat.epoch in (LEAVES, LEAVES_FOR_NOW):
        return _left(group, beat, layout)
    known = group.members.get(beat.member_id)
    error = _error(group, beat, known)
    if error is not Code.NONE:
        return group, Told(error, beat.member_id)
    if known is None:
        group, known = _come(group, beat, now_ms)
    member = replace(known, expires_ms=now_ms + SESSION_MS, is_away=False)
    member = _subscribed(member, beat)
    is_new = member.member_id not in group.target
    changes = is_new or member.subscribed != known.subscribed
    group = group.with_member(member)
    if changes:
        group = retargeted(group, layout)
    return _reconciled(group, member, beat, now_ms)


def _error(group: ConsumerGroup, beat: Beat, known: Consumer | None) -> Code:
    named = group.member_of(beat.instance_id)
    if named is not None and named.member_id != beat.member_id:
        if beat.epoch != JOINS:
            return Code.FENCED_INSTANCE_ID
        return Code.NONE if named.is_away else Code.UNRELEASED_INSTANCE_ID
    if known is None:
        if beat.epoch != JOINS:
            return Code.UNKNOWN_MEMBER_ID
        if not beat.topics and not beat.pattern:
            return Code.INVALID_REQUEST
        return Code.GROUP_MAX_SIZE_REACHED if len(group.members) >= MOST_MEMBERS else Code.NONE
    is_late = beat.epoch == known.before and (beat.owned or NOTHING) <= known.assigned
    return Code.NONE if beat.epoch in (JOINS, known.epoch) or is_late else Code.FENCED_MEMBER_EPOCH


def _come(group: ConsumerGroup, beat: Beat, now_ms: int) -> tuple[ConsumerGroup, Consumer]:
    """A new member, or a static one that comes back to what it had."""
    old = group.member_of(beat.instance_id)
    if old is None:
        topics = beat.topics or frozenset()
        return group, Consumer(
            beat.member_id,
            beat.instance_id,
            beat.rack_id,
            beat.client_id,
            beat.client_host,
            beat.rebalance_ms if beat.rebalance_ms > 0 else SESSION_MS,
            topics,
            beat.pattern,
            beat.matched,
            expires_ms=now_ms,
            token=beat.token,
        )
    again = replace(
        old, member_id=beat.member_id, client_id=beat.client_id, client_host=beat.client_host, token=beat.token
    )
    target = {**group.target, beat.member_id: group.target.get(old.member_id, NOTHING)}
    return replace(group, target=target).without([old.member_id]).with_member(again), again


def _subscribed(member: Consumer, beat: Beat) -> Consumer:
    if beat.rebalance_ms > 0:
        member = replace(member, rebalance_ms=beat.rebalance_ms)
    if beat.topics is not None:
        member = replace(member, topics=beat.topics)
    if beat.pattern is not None:
        member = replace(member, pattern=beat.pattern or None, matched=beat.matched)
    return member


def _left(group: ConsumerGroup, beat: Beat, layout: Layout) -> tuple[ConsumerGroup, Told]:
    known = group.members.get(beat.member_id)
    if known is None:
        return group, Told(Code.UNKNOWN_MEMBER_ID, beat.member_id)
    told = Told(Code.NONE, beat.member_id, beat.epoch)
    if beat.epoch == LEAVES_FOR_NOW and known.instance_id is not None:
        away = replace(known, is_away=True, assigned=known.assigned | known.revoking, revoking=NOTHING)
        return group.with_member(replace(away, revoke_by_ms=None)), told
    return retargeted(group.without([beat.member_id]), layout), told


def retargeted(group: ConsumerGroup, layout: Layout) -> ConsumerGroup:
    """The group with a new epoch, as members or topics have changed."""

    served = frozenset(layout)

    def parts(member: Consumer) -> Parts:
        # Sets are joined where they are small: members may subscribe to many topics that do not exist.
        there = (layout[name] for name in (served & member.topics) | (served & member.matched))
        return frozenset((topic_id, number) for topic_id, count in there for number in range(count))

    wanted = {name: parts(member) for name, member in group.members.items()}
    return replace(group, epoch=group.epoch + 1, target=assigned(wanted, group.target))


def _reconciled(group: ConsumerGroup, member: Consumer, beat: Beat, now_ms: int) -> tuple[ConsumerGroup, Told]:
    """Takes the member one step towards its target, as far as others have given up what it is to get."""
    had, had_epoch = member.assigned, member.epoch
    if beat.epoch == JOINS:  # it has nothing, whatever it had
        member = replace(member, revoking=NOTHING, revoke_by_ms=None)
    if member.revoking and beat.owned is not None and not beat.owned & member.revoking:
        member = replace(member, revoking=NOTHING, revoke_by_ms=None)
    if not member.revoking:
        target = group.target[member.member_id]
        revoke = NOTHING if beat.epoch == JOINS else member.assigned - target
        if revoke:
            until_ms = now_ms + member.rebalance_ms
            member = replace(member, assigned=member.assigned & target, revoking=revoke, revoke_by_ms=until_ms)
        else:
            free = target - group.taken(member.member_id)
            before = member.before if member.epoch == group.epoch else member.epoch
            member = replace(member, assigned=free, epoch=group.epoch, before=before)
    is_full = beat.epoch not in (member.epoch, had_epoch) or (beat.owned is not None and beat.topics is not None)
    shown = member.assigned if is_full or beat.epoch == JOINS or member.assigned != had else None
    return group.with_member(member), Told(Code.NONE, member.member_id, member.epoch, shown)


def elapsed(group: ConsumerGroup, layout: Layout, now_ms: int) -> ConsumerGroup:
    """Members that were not heard of, or do not give up what they should, are gone."""
    gone = [name for name, member in group.members.items() if now_ms >= _end_ms(member)]
    return retargeted(group.without(gone), layout) if gone else group


def due_ms(group: ConsumerGroup) -> int | None:
    return min(map(_end_ms, group.members.values()), default=None)


def _end_ms(member: Consumer) -> int:
    return member.expires_ms if member.revoke_by_ms is None else min(member.expires_ms, member.revoke_by_ms)


def committing(group: ConsumerGroup, member_id: str, epoch: int) -> Code:
    """Whether a member may commit; anyone may while there are none."""
    if not group.members and epoch < 0:
        return Code.NONE
    known = group.members.get(member_id)
    if known is None:
        return Code.UNKNOWN_MEMBER_ID
    return Code.NONE if epoch == known.epoch else Code.STALE_MEMBER_EPOCH
