"""What single requests of classic groups are answered with, where a random schedule seldom gets."""

from __future__ import annotations

from dataclasses import replace

from lithify.kafka_protocol.codes import Code
from lithify.kafka_server.groups.classic.group import Group, Joined, Pending, Phase, Step, Synced
from lithify.kafka_server.groups.classic.joining import MOST_MEMBERS, NEW_MEMBER_MS, Join, joined
from lithify.kafka_server.groups.classic.rebalance import INITIAL_DELAY_MS
from lithify.kafka_server.groups.classic.sessions import (
    Sync,
    committing,
    due_ms,
    elapsed,
    heartbeat,
    left,
    resigned,
    synced,
)

SESSION_MS, REBALANCE_MS = 10_000, 30_000


def a_join(member_id: str = "", name: str | None = None, ticket: int = 0, new_id: str = "", **other: object) -> Join:
    protocols = (("sticky", b"s"), ("range", b"r"))
    join = Join(member_id, name, "client", "/host", SESSION_MS, REBALANCE_MS, "consumer", protocols, ticket, new_id)
    return replace(join, **other)  # type: ignore[arg-type]


def a_sync(member_id: str, generation: int = 1, ticket: int = 0, **assignments: bytes) -> Sync:
    return Sync(member_id, None, generation, "consumer", "sticky", assignments, ticket)


def completing(*names: str, knows_ids: bool = False) -> Group:
    """A group whose members have joined; the first leads."""
    group = Group()
    for ticket, name in enumerate(names):
        static = name if name.startswith("static") else None
        group = joined(group, a_join(name=static, ticket=ticket, new_id=name, knows_ids=knows_ids), 0).group
    while group.phase is not Phase.COMPLETING:
        group = elapsed(group, due_ms(group) or 0).group
    return group


def stable(*names: str) -> Group:
    group = completing(*names)
    for ticket, name in enumerate(names):
        group = synced(group, a_sync(name, 1, ticket, **dict.fromkeys(names, b"x")), 2_000).group
    assert group.phase is Phase.STABLE
    return group


def errors(step: Step) -> list[Code]:
    return [answer.error for _, answer in step.answers]


def test_a_client_that_knows_ids_is_given_one_first() -> None:
    step = joined(Group(), a_join(new_id="m1", ticket=4), 0)
    assert step.answers == ((4, Joined(Code.MEMBER_ID_REQUIRED, "m1")),)
    assert step.group.pending == {"m1": Pending("m1", SESSION_MS)}
    assert elapsed(step.group, SESSION_MS).group.is_unused


def test_the_first_rebalance_waits_for_others() -> None:
    group = joined(Group(), a_join(new_id="m1", knows_ids=False), 0).group
    assert due_ms(group) == INITIAL_DELAY_MS
    group = joined(group, a_join(new_id="m2", ticket=1, knows_ids=False), INITIAL_DELAY_MS - 1).group
    step = elapsed(group, INITIAL_DELAY_MS)
    assert not step.answers
    step = elapsed(step.group, 2 * INITIAL_DELAY_MS)
    assert [answer.member_id for _, answer in step.answers if isinstance(answer, Joined)] == ["m1", "m2"]


def test_requests_of_another_generation_or_of_nobody_are_refused() -> None:
    group = stable("m1", "m2")
    assert heartbeat(group, "m1", None, 0, 3_000) == (group, Code.ILLEGAL_GENERATION)
    assert heartbeat(group, "m3", None, 1, 3_000) == (group, Code.UNKNOWN_MEMBER_ID)
    assert committing(group, "m1", None, 0, 3_000)[1] is Code.ILLEGAL_GENERATION
    assert committing(group, "", None, -1, 3_000)[1] is Code.UNKNOWN_MEMBER_ID
    assert committing(group, "m1", None, 1, 3_000)[1] is Code.NONE
    assert errors(synced(group, a_sync("m1", 2), 3_000)) == [Code.ILLEGAL_GENERATION]
    wrong = replace(a_sync("m1"), protocol="range")
    assert errors(synced(group, wrong, 3_000)) == [Code.INCONSISTENT_GROUP_PROTOCOL]


def test_nobody_commits_while_partitions_change_hands() -> None:
    assert committing(completing("m1"), "m1", None, 1, 2_000)[1] is Code.REBALANCE_IN_PROGRESS


def test_a_client_without_a_member_commits_in_an_empty_group() -> None:
    assert committing(Group(), "", None, -1, 0)[1] is Code.NONE
    assert committing(Group(), "m1", None, 3, 0)[1] is Code.UNKNOWN_MEMBER_ID


def test_a_member_with_other_protocols_cannot_join() -> None:
    group = stable("m1")
    other = a_join(new_id="m2", protocols=(("cooperative", b""),))
    assert errors(joined(group, other, 3_000)) == [Code.INCONSISTENT_GROUP_PROTOCOL]
    assert errors(joined(group, a_join(new_id="m2", protocol_type="connect"), 3_000)) == [
        Code.INCONSISTENT_GROUP_PROTOCOL
    ]
    assert errors(joined(Group(), a_join(protocols=()), 0)) == [Code.INCONSISTENT_GROUP_PROTOCOL]


def test_the_protocol_that_most_prefer_is_taken() -> None:
    group = joined(Group(), a_join(new_id="m1", knows_ids=False), 0).group
    for name in ("m2", "m3"):
        ranged = a_join(new_id=name, knows_ids=False, ticket=int(name[1]), protocols=(("range", b""), ("sticky", b"")))
        group = joined(group, ranged, 0).group
    while group.phase is not Phase.COMPLETING:
        group = elapsed(group, due_ms(group) or 0).group
    assert group.protocol == "range"


def test_a_static_member_takes_the_place_of_the_one_before() -> None:
    group = stable("static-1", "static-2")
    assert group.leader == "static-1"
    step = joined(group, a_join(name="static-2", new_id="again", ticket=9), 3_000)
    assert step.group.phase is Phase.STABLE
    assert errors(step) == [Code.NONE]
    assert step.group.members["again"].assignment == b"x"
    assert heartbeat(step.group, "static-2", "static-2", 1, 3_000)[1] is Code.FENCED_INSTANCE_ID
    leads = joined(group, a_join(name="static-1", new_id="again", ticket=9), 3_000).answers[0][1]
    assert isinstance(leads, Joined)
    assert leads.skip_assignment
    assert len(leads.members) == 2
    old = joined(group, a_join(name="static-1", new_id="again", skips=False), 3_000).answers[0][1]
    assert isinstance(old, Joined)
    assert (old.leader, old.members) == ("static-1", ())


def test_the_one_before_is_told_if_it_waits() -> None:
    group = completing("static-1", "static-2")
    group = synced(group, replace(a_sync("static-2", ticket=5), instance_id="static-2"), 2_000).group
    step = joined(group, a_join(name="static-2", new_id="again", ticket=9), 3_000)
    assert (5, Synced(Code.FENCED_INSTANCE_ID)) in step.answers
    assert step.group.phase is Phase.PREPARING


def test_a_new_member_does_not_wait_for_ever() -> None:
    group = joined(stable("m1"), a_join(new_id="m2", ticket=7, knows_ids=False, rebalance_ms=3_600_000), 3_000).group
    for now_ms in range(4_000, NEW_MEMBER_MS, 4_000):
        group = heartbeat(group, "m1", None, 1, now_ms)[0]
    step = elapsed(group, NEW_MEMBER_MS + 3_000)
    assert (7, Joined(Code.UNKNOWN_MEMBER_ID, "")) in step.answers


def test_who_does_not_sync_is_left_out() -> None:
    group = synced(completing("m1", "m2"), a_sync("m1", m1=b"x"), 2_000).group
    for now_ms in range(3_000, 40_000, 3_000):
        group = heartbeat(group, "m1", None, 1, now_ms)[0]
        group = heartbeat(group, "m2", None, 1, now_ms)[0]
    step = elapsed(group, 2 * INITIAL_DELAY_MS + REBALANCE_MS + 1)
    assert [*step.group.members] == ["m1"]
    assert step.group.phase is Phase.PREPARING


def test_members_leave_by_id_or_by_name() -> None:
    group = stable("static-1", "m2")
    step, codes = left(group, [("", "static-1"), ("m3", None), ("", "static-9")], 3_000)
    assert codes == [Code.NONE, Code.UNKNOWN_MEMBER_ID, Code.UNKNOWN_MEMBER_ID]
    assert [*step.group.members] == ["m2"]
    assert heartbeat(step.group, "m2", None, 1, 3_000)[1] is Code.REBALANCE_IN_PROGRESS


def test_who_waits_looks_for_another_coordinator() -> None:
    group = joined(stable("m1"), a_join(new_id="m2", ticket=7, knows_ids=False), 3_000).group
    step = resigned(group)
    assert step.answers == ((7, Joined(Code.NOT_COORDINATOR, "m2")),)
    assert heartbeat(step.group, "m1", None, 1, 3_000)[1] is Code.COORDINATOR_NOT_AVAILABLE
    assert errors(joined(step.group, a_join(), 3_000)) == [Code.COORDINATOR_NOT_AVAILABLE]


def test_a_group_has_a_bounded_number_of_members() -> None:
    group = Group(pending={f"m{n}": Pending(f"m{n}", 1_000) for n in range(MOST_MEMBERS)})
    assert errors(joined(group, a_join(new_id="more"), 0)) == [Code.GROUP_MAX_SIZE_REACHED]
