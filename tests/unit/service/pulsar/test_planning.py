"""What a round of a live topic reads, and up to where (C54)."""

from __future__ import annotations

import pytest

from lithify.errors import BrokerError, DamagedError
from lithify.model.message import MessageId
from lithify.ports.pulsar.pulsar_cluster import TopicLedger, TopicLook
from lithify.ports.pulsar.views import EntryRange, ServedView
from lithify.service.pulsar.planning import MANY_ENTRIES, MOST_RANGES, RANGE_BYTES, SMALL_RANGE_BYTES, plan_round

VIEW = TopicLedger(50, 3, 300)


def a_look(*ledgers: tuple[int, int], last: str | None, horizon: str | None = None, served=VIEW) -> TopicLook:
    """Ledgers as (id, entries), of 100 bytes an entry; a view if there is a horizon."""
    return TopicLook(
        tuple(TopicLedger(ledger, entries, 100 * entries) for ledger, entries in ledgers),
        id_of(last),
        id_of(horizon),
        50 if horizon else None,
        served if horizon else None,
        None,
    )


def id_of(text: str | None) -> MessageId | None:
    return None if text is None else MessageId(*map(int, text.split(":")))


def shown(one: EntryRange) -> str:
    start = "earliest" if one.start is None else str(one.start)
    return f"{'view ' if one.compacted else ''}{start} to {one.end if one.end.entry < 10**6 else one.end.ledger}"


PLANS = {
    "nothing was ever sent": (a_look((5, 0), last=None), []),
    "nothing is new": (a_look((5, 10), last="5:9", horizon="5:9"), []),
    "nothing is new, and the ledger was closed": (a_look((5, 10), (6, 0), last="5:9", horizon="5:9"), []),
    "what was new is trimmed": (a_look((9, 0), last="7:3"), []),
    "a first round": (a_look((5, 10), (9, 4), last="9:3"), ["5:0 to 9:3"]),
    "the topic grew since": (a_look((5, 10), (9, 4), last="9:1"), ["5:0 to 9:1"]),
    "a later round": (a_look((5, 10), (9, 4), last="9:3", horizon="5:6"), ["view earliest to 5:6", "5:7 to 9:3"]),
    "the horizon ends a ledger": (
        a_look((5, 10), (9, 4), last="9:3", horizon="5:9"),
        ["view earliest to 5:9", "9:0 to 9:3"],
    ),
    "the ledger of the horizon was trimmed": (
        a_look((9, 4), last="9:3", horizon="5:9"),
        ["view earliest to 8", "9:0 to 9:3"],
    ),
    "an empty view": (
        a_look((5, 10), last="5:9", horizon="5:6", served=TopicLedger(50, 0, 0)),
        ["5:7 to 5:9"],
    ),
}


@pytest.mark.parametrize("look, ranges", PLANS.values(), ids=PLANS)
def test_a_round_reads_the_view_and_what_is_after_it(look, ranges):
    plan = plan_round("p", look)
    assert [shown(one) for one in plan.view.ranges] == ranges if plan.view else not ranges
    if plan.view:
        assert plan.view.horizon == look.last


def test_a_round_says_how_many_entries_the_view_has():
    """C55: what is read of it is held to that."""
    view = plan_round("p", a_look((5, 10), (9, 4), last="9:3", horizon="5:6")).view
    assert view is not None
    assert [one.view for one in view.ranges] == [ServedView(50, 3), None]


def test_a_view_that_the_broker_cannot_read_fails_the_round():
    """C55: a missing compacted ledger is named, also where nothing is new."""
    with pytest.raises(DamagedError, match="cannot read its compacted ledger 50"):
        plan_round("p", a_look((5, 10), last="5:9", horizon="5:9", served=None))


def test_a_view_that_the_broker_has_not_stored_is_not_called_gone():
    """C55: what is served is there, so nobody is told to drop it."""
    with pytest.raises(BrokerError, match="serves compacted ledger 49, but its cursor has 50") as refused:
        plan_round("p", a_look((5, 10), last="5:9", horizon="5:9", served=TopicLedger(49, 3, 300)))
    assert "uncompact" not in str(refused.value)


def test_a_last_entry_in_a_ledger_that_is_not_listed_fails_the_round():
    """C55: entries before it would be in no view."""
    with pytest.raises(BrokerError, match="does not list ledger 7"):
        plan_round("p", a_look((5, 10), last="7:3", horizon="5:6"))


def test_large_ledgers_are_cut_and_small_ones_are_joined():
    big, small = 10 * SMALL_RANGE_BYTES // 100, 3
    ledgers = [(5, big), *((6 + number, small) for number in range(50)), (90, 0)]
    plan = plan_round("p", a_look(*ledgers, last=f"55:{small - 1}"))
    assert plan.view is not None
    ranges = plan.view.ranges
    assert len(ranges) == 11
    assert shown(ranges[-1]) == "6:0 to 55:2"
    assert sum(one.size_bytes for one in ranges) == pytest.approx(100 * (big + 50 * small), rel=0.01)
    ends = [(one.end.ledger, one.end.entry + 1) for one in ranges[:9]]
    assert ends == [(one.start.ledger, one.start.entry) for one in ranges[1:10] if one.start]
    assert plan.new_entries == big + 50 * small


def test_a_huge_topic_has_no_more_ranges_than_a_driver_can_plan():
    entries = MOST_RANGES * RANGE_BYTES
    plan = plan_round("p", a_look((5, entries), last=f"5:{entries - 1}"))
    assert plan.view is not None
    assert len(plan.view.ranges) <= MOST_RANGES + 1


def test_many_small_entries_are_read_past_the_broker_in_larger_ranges():
    entries = 4 * SMALL_RANGE_BYTES // 100
    small = plan_round("p", a_look((5, entries), last=f"5:{entries - 1}")).view
    few = plan_round("p", a_look((5, MANY_ENTRIES - 1), last=f"5:{MANY_ENTRIES - 2}")).view
    large = plan_round("p", TopicLook((TopicLedger(5, 10**5, 10**9),), MessageId(5, 10**5 - 1), None, None, None, None))
    assert small is not None and few is not None and large.view is not None
    assert (small.small_entries, few.small_entries, large.view.small_entries) == (True, False, False)
    assert len(small.ranges) == 4
    assert len(large.view.ranges) == -(-(10**9) // RANGE_BYTES)
