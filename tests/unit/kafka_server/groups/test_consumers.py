"""What single heartbeats of the newer protocol are answered with."""

from __future__ import annotations

from dataclasses import replace

from lithify.kafka_protocol.codes import Code
from lithify.kafka_server.groups.consumers import matching
from lithify.kafka_server.groups.modern.beats import SESSION_MS, Beat, Told, beaten, committing, elapsed
from lithify.kafka_server.groups.modern.group import ConsumerGroup

TOPIC = bytes([1] * 16)
LAYOUT = {"orders": (TOPIC, 4)}
FIRST = Beat("alpha", 0, None, None, "client", "/host", 20_000, frozenset({"orders"}), None, frozenset(), None, None)


def parts(*numbers: int) -> frozenset[tuple[bytes, int]]:
    return frozenset((TOPIC, number) for number in numbers)


def after(*beats: Beat) -> tuple[ConsumerGroup, Told]:
    group, told = ConsumerGroup(), Told(Code.NONE, "")
    for beat in beats:
        group, told = beaten(group, beat, LAYOUT, 0)
    return group, told


def later(member_id: str, epoch: int, *owned: int) -> Beat:
    return replace(FIRST, member_id=member_id, epoch=epoch, topics=None, owned=parts(*owned))


def test_the_first_member_gets_all() -> None:
    assert after(FIRST)[1] == Told(Code.NONE, "alpha", 1, parts(0, 1, 2, 3))


def test_the_second_one_gets_what_the_first_has_given_up() -> None:
    second = replace(FIRST, member_id="beta")
    group, told = after(FIRST, second)
    assert told == Told(Code.NONE, "beta", 2, parts())
    assert group.phase == "Reconciling"
    group, told = beaten(group, later("alpha", 1, 0, 1, 2, 3), LAYOUT, 0)
    assert told == Told(Code.NONE, "alpha", 1, parts(0, 1))
    group, told = beaten(group, later("alpha", 1, 0, 1, 2, 3), LAYOUT, 0)
    assert told == Told(Code.NONE, "alpha", 1)
    group, told = beaten(group, later("beta", 2), LAYOUT, 0)
    assert told.assigned is None
    group, told = beaten(group, later("alpha", 1, 0, 1), LAYOUT, 0)
    assert told == Told(Code.NONE, "alpha", 2)
    group, told = beaten(group, later("beta", 2), LAYOUT, 0)
    assert told == Told(Code.NONE, "beta", 2, parts(2, 3))
    assert group.phase == "Stable"


def test_who_does_not_give_up_in_time_is_out() -> None:
    group, _ = after(FIRST, replace(FIRST, member_id="beta"), later("alpha", 1, 0, 1, 2, 3))
    group, told = beaten(elapsed(group, LAYOUT, 20_000), later("beta", 2), LAYOUT, 20_000)
    assert told == Told(Code.NONE, "beta", 3, parts(0, 1, 2, 3))
    assert beaten(group, later("alpha", 1, 0), LAYOUT, 20_000)[1].error is Code.UNKNOWN_MEMBER_ID


def test_who_is_not_heard_of_is_out() -> None:
    assert elapsed(after(FIRST)[0], LAYOUT, SESSION_MS).is_unused


def test_an_answer_that_was_lost_is_given_again() -> None:
    group, _ = after(FIRST, replace(FIRST, member_id="beta"), later("alpha", 1, 0, 1, 2, 3), later("alpha", 1, 0, 1))
    group, told = beaten(group, later("alpha", 1, 0, 1), LAYOUT, 0)
    assert told == Told(Code.NONE, "alpha", 2, parts(0, 1))
    assert beaten(group, later("alpha", 1, 2), LAYOUT, 0)[1].error is Code.FENCED_MEMBER_EPOCH
    assert beaten(group, later("alpha", 7), LAYOUT, 0)[1].error is Code.FENCED_MEMBER_EPOCH


def test_a_static_member_comes_back_to_what_it_had() -> None:
    first = replace(FIRST, instance_id="one")
    group, _ = after(first)
    again = replace(first, member_id="other")
    assert beaten(group, again, LAYOUT, 0)[1].error is Code.UNRELEASED_INSTANCE_ID
    group, told = beaten(group, replace(later("alpha", -2), instance_id="one"), LAYOUT, 0)
    assert told == Told(Code.NONE, "alpha", -2)
    group, told = beaten(group, again, LAYOUT, 0)
    assert told == Told(Code.NONE, "other", 1, parts(0, 1, 2, 3))
    gone = replace(later("alpha", 1), instance_id="one")
    assert beaten(group, gone, LAYOUT, 0)[1].error is Code.FENCED_INSTANCE_ID


def test_what_is_not_known_is_refused() -> None:
    assert after(replace(FIRST, assignor="mine"))[1].error is Code.UNSUPPORTED_ASSIGNOR
    assert after(replace(FIRST, topics=None))[1].error is Code.INVALID_REQUEST
    assert after(later("alpha", 1))[1].error is Code.UNKNOWN_MEMBER_ID
    assert after(later("alpha", -1))[1].error is Code.UNKNOWN_MEMBER_ID


def test_only_members_of_this_epoch_commit() -> None:
    group, _ = after(FIRST)
    assert committing(group, "alpha", 1) is Code.NONE
    assert committing(group, "alpha", 0) is Code.STALE_MEMBER_EPOCH
    assert committing(group, "beta", 1) is Code.UNKNOWN_MEMBER_ID
    assert committing(group, "", -1) is Code.UNKNOWN_MEMBER_ID
    assert committing(ConsumerGroup(), "", -1) is Code.NONE


def test_patterns_match_whole_names() -> None:
    assert matching("shop.*", ["shop.a", "shop.b", "ashop"], lambda: 0) == {"shop.a", "shop.b"}
    assert matching("a|b", ["a", "ab", "b"], lambda: 0) == {"a", "b"}
