"""Every port call of a round of a live Pulsar topic fails, in turn (C55).

Whatever is struck: readers get the earlier view or the new one, what the broker serves is there, the next round gets
through, and after it no ledger is left but the one that is served.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from lithify.errors import BrokerError, LithifyError, UnknownOutcomeError
from lithify.model.message import MessageId
from lithify.ports.pulsar.pulsar_cluster import TopicLook
from lithify.service.pulsar.left_ledgers import left_ledgers
from lithify.service.pulsar.leftovers import Leftovers
from lithify.service.pulsar.partition_round import RoundPorts
from lithify.service.pulsar.rounds import RoundRequest, compact_topic, plan_topic
from lithify.service.pulsar.uncompact import uncompact_topic
from lithify.service.pulsar.view_publisher import Publisher
from lithify.testing.fake_clock import FakeClock
from support.faults.ports import CrashError, Injector, Kind
from support.faults.struck import strikes
from support.pulsar.fake_cluster import FakeHold, FakePartition, FakePulsar
from support.pulsar.struck_rounds import TOPIC, StruckPulsar, a_cluster, a_round, messages


def reads(cluster: FakePulsar) -> dict[str, list[tuple[int, int]]]:
    return {name: cluster.compacted_read(name) for name in cluster.topics}


def wanted() -> dict[str, list[tuple[int, int]]]:
    cluster = a_cluster()
    assert not a_round(cluster).failed
    return reads(cluster)


def a_struck_round(cluster: FakePulsar, injector: Injector, *, small: bool) -> bool:
    """Whether it says that all went well."""
    try:
        report = a_round(cluster, injector, small=small)
    except (LithifyError, CrashError):
        return False
    return not report.failed


def live_rounds() -> None:
    """What the tests of this module go through, undisturbed and without the subscription."""
    cluster = a_cluster()
    cluster.loses_holds = True
    assert a_round(cluster).failed
    cluster.loses_holds = False
    cluster.begin_view(TOPIC, "killed")
    assert a_round(cluster).partitions[0].ledgers_deleted
    cluster.send(TOPIC, *messages(range(60, 61)))
    assert not plan_topic(cluster, TOPIC).partitions[0].idle
    with pytest.raises(UnknownOutcomeError):
        Publisher(cluster, FakeClock()).publish(TOPIC, FakeHold(cluster, TOPIC, is_open=False), MessageId(0, 0), 0)
    leftovers = Leftovers(cluster, cluster.open_ledgers)
    leftovers.delete_one(-1)
    cluster.note_unsettled(TOPIC, cluster.newest)
    leftovers.delete_all(TOPIC, cluster.newest)
    left = cluster.begin_view("persistent://t/n/gone", "killed")
    found = left_ledgers(cluster, cluster.open_ledgers, delete=True)
    assert [one.ledger for one in found.ledgers] == [left]
    assert uncompact_topic(cluster, cluster.open_ledgers, TOPIC).partitions[0].changed


@pytest.mark.parametrize("kind", Kind, ids=lambda kind: kind.name.lower())
@pytest.mark.parametrize("looks_until_done", [0, 3])
@pytest.mark.parametrize("small", [False, True], ids=["by tasks", "small"])
def test_a_struck_round_is_all_or_nothing(kind: Kind, looks_until_done: int, small: bool) -> None:
    """C55: and a round that says that it has published has."""
    for injector in strikes(kind):
        cluster = a_cluster()
        cluster.looks_until_done = looks_until_done
        before, after = reads(cluster), wanted()
        done = a_struck_round(cluster, injector, small=small)
        topic = cluster.topics[TOPIC]
        assert reads(cluster) in ([after] if done else [before, after]), injector
        assert topic.served in cluster.views, injector
        assert topic.hold is None
        for _ in range(looks_until_done):
            cluster.look(TOPIC)  # by now the broker has done what it was asked
        assert not a_round(cluster).failed
        assert reads(cluster) == after
        assert list(cluster.views) == [topic.served], injector
        assert topic.note is None
        assert not a_round(cluster).changed


def test_a_request_that_never_arrives_is_an_unknown_outcome() -> None:
    """C55: the broker may still get it, so the ledger stays until the next round."""
    cluster, clock = a_cluster(), FakeClock()
    injector = Injector(10**6, Kind.LOSES_REQUEST)
    a_round(a_cluster(), injector)
    at = injector.calls.index("acknowledge") + 1
    report = a_round(cluster, Injector(at, Kind.LOSES_REQUEST), clock)
    assert "does not report that it does" in str(report.failed[0].error)
    assert len(cluster.views) == 3  # the served one, one of the strike, and the one that may be served yet
    assert clock.monotonic_ms() >= 60_000
    assert a_round(cluster).partitions[0].ledgers_deleted
    assert len(cluster.views) == 1


@pytest.mark.parametrize(("what", "waits"), [("topic", False), ("cursor", True)])
def test_a_topic_that_is_gone_is_not_waited_for_and_leaves_no_ledger(what: str, waits: bool) -> None:
    """C55: nothing serves its view any more, and nothing would find the ledger; the other partitions get theirs."""
    cluster, clock = a_cluster(partitions=2), FakeClock()
    gone, other = cluster.topics
    cluster.vanishing[gone] = what
    began_ms = clock.monotonic_ms()
    report = a_round(cluster, clock=clock)
    first, second = report.partitions
    assert (clock.monotonic_ms() > began_ms) == waits
    assert "was deleted before the broker served the new compacted view" in str(first.error)
    assert (len(first.ledgers_deleted), second.changed, second.error) == (1, True, None)
    assert set(cluster.views) == {cluster.topics[other].served}


def test_a_ledger_stays_as_long_as_a_broker_may_serve_it() -> None:
    """C55: the cursor is there, or the subscription is held still, or the broker does not answer."""
    for state in ("cursor", "held", "away", "not found by the admin interface alone"):
        cluster, clock = a_cluster(), FakeClock()
        hold = FakeHold(cluster, TOPIC, is_open=state not in ("cursor", "away"))
        if state != "cursor":
            cluster.drop_view(TOPIC)
        if state.startswith("not found"):
            cluster.vanishing["look"] = TOPIC
        if state == "away":
            cluster.looks_fail_without_view, cluster.topics[TOPIC].served = True, -1
        cluster.looks_until_done = 10**6
        with pytest.raises(UnknownOutcomeError):
            Publisher(cluster, clock).publish(TOPIC, hold, MessageId(0, 0), cluster.newest)


def test_what_other_partitions_do_is_not_lost() -> None:
    """C55: a partition that fails leaves the others alone."""
    cluster = a_cluster(partitions=3)
    cluster.topics[f"{TOPIC}-partition-1"].hold = FakeHold(cluster, "")  # of the broker's own compaction
    report = a_round(cluster)
    assert [one.changed for one in report.partitions] == [True, False, True]
    assert "ConsumerBusy" in str(report.partitions[1].error)


def test_a_round_does_not_begin_between_the_phases_of_the_brokers_compaction() -> None:
    """C55: that goes on as soon as the subscription is free, so the round releases it before its other partitions."""
    cluster = a_cluster(partitions=2)
    before, first = reads(cluster), f"{TOPIC}-partition-0"
    cluster.topics[first].is_compacting = True
    held = []

    class Watched(FakePulsar):
        def look(self, partition: str) -> TopicLook:
            held.append(self.topics[first].hold)
            return super().look(partition)

    report = a_round(Watched(cluster.topics, cluster.views, cluster.newest))
    assert [one.changed for one in report.partitions] == [False, True]
    assert "its broker is compacting it" in str(report.partitions[0].error)
    assert cluster.compacted_read(first) == before[first]
    assert held and not any(held)


def test_damaged_entries_that_were_skipped_are_named() -> None:
    """C74: in the partition's report, and in a note."""
    cluster = a_cluster()
    cluster.damaged = ("5:1", "5:7")
    report = a_round(cluster)
    assert (report.partitions[0].damaged_entries, report.partitions[0].damaged_named) == (2, ("5:1", "5:7"))
    assert report.notes == (f"{TOPIC}: 2 damaged entries were kept whole: 5:1, 5:7",)


def test_a_broker_that_does_not_tell_whether_it_compacts_is_a_note() -> None:
    cluster = a_cluster()
    cluster.topics[TOPIC].is_compacting = None
    report = a_round(cluster)
    assert report.changed and not report.failed
    assert report.notes == (f"it is unknown whether the broker compacts {TOPIC} itself at the moment",)


def test_ledgers_of_another_compactor_that_are_left_are_deleted_too() -> None:
    """C55: they are newer than the note, and nobody holds the subscription but the round."""
    cluster = a_cluster()
    cluster.note_unsettled(TOPIC, cluster.newest)
    left = cluster.begin_view(TOPIC, None)
    other = cluster.begin_view("persistent://t/n/other", None)
    assert a_round(cluster).partitions[0].ledgers_deleted == (left,)
    assert other in cluster.views


def test_ledgers_of_a_compaction_that_took_over_are_not_deleted() -> None:
    """C55: a round that deletes slowly loses its subscription, and another one publishes meanwhile."""
    cluster = a_cluster()
    cluster.begin_view(TOPIC, "killed")
    cluster.note_unsettled(TOPIC, max(cluster.topics[TOPIC].ledgers))
    others = []

    @contextmanager
    def opened() -> Iterator[FakePulsar]:
        hold = cluster.topics[TOPIC].hold
        assert hold is not None
        hold.is_open = False
        others.append(cluster.begin_view(TOPIC, "another"))
        yield cluster

    world = RoundPorts(cluster, cluster, opened, FakeClock())
    report = compact_topic(world, RoundRequest(TOPIC), lambda *_: None).partitions[0]
    assert report.changed and report.error is None
    assert report.ledgers_deleted == ()
    assert others[0] in cluster.views
    assert cluster.topics[TOPIC].note is not None
    assert others[0] in a_round(cluster).partitions[0].ledgers_deleted
    assert len(cluster.views) == 1


def test_the_earlier_view_is_deleted_where_the_broker_died_before_it_did() -> None:
    """C55: it is older than the newest ledger of the topic."""
    cluster = a_cluster()
    assert (cluster.topics[TOPIC].view or 0) < max(cluster.topics[TOPIC].ledgers)
    cluster.dies_serving = True
    assert a_round(cluster).changed
    cluster.dies_serving = False
    assert len(cluster.views) == 2
    assert len(a_round(cluster).partitions[0].ledgers_deleted) == 1
    assert list(cluster.views) == [cluster.topics[TOPIC].served]


def test_a_round_that_loses_its_subscription_publishes_nothing() -> None:
    """C55: the broker was not asked, so the ledger can be deleted."""
    cluster = a_cluster()
    before, views = reads(cluster), set(cluster.views)
    cluster.loses_holds = True
    assert "was lost" in str(a_round(cluster).failed[0].error)
    assert reads(cluster) == before
    cluster.loses_holds = False
    assert a_round(cluster).changed
    assert len(cluster.views) == len(views)


def test_a_view_that_is_gone_fails_rounds_until_it_is_dropped() -> None:
    """C55: nothing smaller takes its place by itself."""
    cluster = a_cluster()
    cluster.delete(cluster.topics[TOPIC].view or 0)
    for _ in range(2):
        assert "cannot read its compacted ledger" in str(a_round(cluster).failed[0].error)
    assert uncompact_topic(cluster, cluster.open_ledgers, TOPIC).partitions[0].changed
    assert not uncompact_topic(cluster, cluster.open_ledgers, TOPIC).partitions[0].changed
    report = a_round(cluster).partitions[0]
    assert report.messages_in == len(cluster.topics[TOPIC].entries)


@pytest.mark.parametrize("view_is", ["there", "gone", "gone, and the broker tells nothing more"])
@pytest.mark.parametrize("kind", Kind, ids=lambda kind: kind.name.lower())
def test_a_view_is_dropped_with_what_killed_rounds_have_left(kind: Kind, view_is: str) -> None:
    """C55: whatever is struck, the next drop or round finds it; and nothing is served that is not there."""
    for injector in strikes(kind):
        cluster = a_cluster()
        cluster.note_unsettled(TOPIC, cluster.newest)
        cluster.begin_view(TOPIC, "killed")
        if view_is != "there":
            cluster.delete(cluster.topics[TOPIC].served or 0)
        cluster.looks_fail_without_view = view_is == "gone, and the broker tells nothing more"
        struck: Any = StruckPulsar(cluster, injector)
        with suppress(LithifyError, CrashError):
            uncompact_topic(struck, struck.open_ledgers, TOPIC)
        topic = cluster.topics[TOPIC]
        assert view_is != "there" or topic.served is None or topic.served in cluster.views, injector
        assert not uncompact_topic(cluster, cluster.open_ledgers, TOPIC).failed
        assert cluster.views == {}, injector
        assert topic.note is None
        assert a_round(cluster).changed


def test_a_view_is_not_dropped_beside_another_compaction() -> None:
    """C55: which may have made what looks as if it were left."""
    cluster = a_cluster()
    cluster.note_unsettled(TOPIC, cluster.newest)
    left = cluster.begin_view(TOPIC, None)
    cluster.topics[TOPIC].is_compacting = True
    assert "its broker is compacting it" in str(uncompact_topic(cluster, cluster.open_ledgers, TOPIC).failed[0].error)
    assert left in cluster.views and cluster.topics[TOPIC].note is not None


@pytest.mark.parametrize("kind", Kind, ids=lambda kind: kind.name.lower())
def test_leftovers_of_topics_that_are_gone_are_found_and_nothing_else(kind: Kind) -> None:
    """C55: not the ledgers of topics that are there, or in a cluster that shares BookKeeper, nor those of others."""
    gone, elsewhere = "persistent://t/n/gone", "persistent://t/n/elsewhere"
    for injector in strikes(kind):
        cluster = a_cluster(partitions=2)
        cluster.of_another_cluster = (elsewhere,)
        cluster.vanishing["look"] = f"{TOPIC}-partition-0"
        left = [cluster.begin_view(gone, "killed"), cluster.begin_view(f"{TOPIC}-partition-2", "killed")]
        cluster.begin_view(gone, None)
        cluster.begin_view(elsewhere, "served there")
        cluster.begin_view(f"{TOPIC}-partition-1", "killed")
        before = set(cluster.views)
        listed = left_ledgers(cluster, cluster.open_ledgers, delete=False)
        assert ([one.ledger for one in listed.ledgers], listed.deleted) == (left, False)
        assert set(cluster.views) == before
        struck: Any = StruckPulsar(cluster, injector)
        with suppress(LithifyError, CrashError):
            left_ledgers(struck, struck.open_ledgers, delete=True)
        assert before - set(left) <= set(cluster.views), injector
        assert left_ledgers(cluster, cluster.open_ledgers, delete=True).deleted
        assert set(cluster.views) == before - set(left), injector
        assert left_ledgers(cluster, cluster.open_ledgers, delete=True).ledgers == ()


def with_a_lost_note() -> tuple[FakePulsar, int]:
    """A round was killed, then `__compaction` was deleted with the note of that, then another round went through."""
    cluster = a_cluster()
    left = cluster.begin_view(TOPIC, "killed", horizon_of(cluster))
    cluster.begin_view(TOPIC, None, horizon_of(cluster))  # of Pulsar's own compactor
    cluster.begin_view(TOPIC, "of the same name in a cluster that shares BookKeeper", MessageId(1, 0))
    assert a_round(cluster).changed and left in cluster.views, "a round does not find it"
    return cluster, left


def horizon_of(cluster: FakePulsar) -> MessageId:
    return MessageId(*cluster.topics[TOPIC].entries[-1][:2])


@pytest.mark.parametrize("kind", Kind, ids=lambda kind: kind.name.lower())
def test_a_ledger_whose_note_was_deleted_is_found_and_nothing_else(kind: Kind) -> None:
    """C55: readers of the compacted topic get the same throughout, and rounds go through."""
    for injector in strikes(kind):
        cluster, left = with_a_lost_note()
        before, got = set(cluster.views), reads(cluster)
        listed = left_ledgers(cluster, cluster.open_ledgers, delete=False)
        assert [(one.ledger, one.gone) for one in listed.ledgers] == [(left, False)]
        assert set(cluster.views) == before
        struck: Any = StruckPulsar(cluster, injector)
        with suppress(LithifyError, CrashError):
            left_ledgers(struck, struck.open_ledgers, delete=True)
        assert before - {left} <= set(cluster.views), injector
        assert not left_ledgers(cluster, cluster.open_ledgers, delete=True).notes
        assert set(cluster.views) == before - {left} and reads(cluster) == got, injector
        cluster.send(TOPIC, *messages(range(60, 61)))
        assert a_round(cluster).changed


NOT_TOLD: dict[str, Callable[[FakePulsar, FakePartition], object]] = {
    "a round runs": lambda cluster, topic: setattr(topic, "hold", FakeHold(cluster, TOPIC)),
    "the broker compacts it": lambda _, topic: setattr(topic, "is_compacting", True),
    "a round did not end": lambda _, topic: setattr(topic, "note", 0),
    "no subscription": lambda cluster, _: cluster.drop_view(TOPIC),
    "it is served": lambda cluster, topic: cluster._serve(topic, horizon_of(cluster), min(cluster.views)),
    "the view is gone": lambda cluster, topic: (
        cluster.views.pop(topic.view or 0),
        setattr(cluster, "looks_fail_without_view", True),
    ),
    "the entry is trimmed": lambda cluster, topic: topic.ledgers.pop(horizon_of(cluster).ledger),
    "the topic is recreated": lambda cluster, _: (
        cluster.topics.pop(TOPIC),
        cluster.send(TOPIC, *messages(range(9))),
        a_round(cluster),
    ),
}


@pytest.mark.parametrize("case", NOT_TOLD)
def test_a_ledger_that_may_be_in_use_is_not_offered(case: str) -> None:
    cluster, left = with_a_lost_note()
    NOT_TOLD[case](cluster, cluster.topics[TOPIC])
    before = set(cluster.views)
    for delete in (False, True):
        assert left_ledgers(cluster, cluster.open_ledgers, delete=delete).ledgers == ()
    assert set(cluster.views) == before and left in before


def test_a_hold_that_is_lost_deletes_nothing() -> None:
    cluster, left = with_a_lost_note()
    with pytest.MonkeyPatch.context() as patch, pytest.raises(BrokerError, match="was lost"):
        patch.setattr(FakeHold, "is_confirmed", lambda _: False)
        left_ledgers(cluster, cluster.open_ledgers, delete=True)
    assert left in cluster.views


def test_topics_that_are_there_are_not_looked_at_in_a_bookkeeper_that_the_cluster_has_not_told() -> None:
    cluster, left = with_a_lost_note()
    found = left_ledgers(cluster, cluster.open_ledgers, delete=True, living=False)
    assert (found.ledgers, len(found.notes), left in cluster.views) == ((), 1, True)


def test_no_ledger_of_gone_topics_is_deleted_where_one_topic_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """C55: an error of the admin interface is no \"not found\"."""

    def refuse(_cluster: FakePulsar, _topic: str) -> dict[int, str]:
        raise BrokerError("the admin interface answers 403")

    cluster = a_cluster()
    left = cluster.begin_view("persistent://t/n/gone", "killed")
    monkeypatch.setattr(FakePulsar, "partitions", refuse)
    with pytest.raises(BrokerError, match="403"):
        left_ledgers(cluster, cluster.open_ledgers, delete=True)
    assert left in cluster.views


def test_the_numbers_are_those_of_the_engine() -> None:
    cluster = a_cluster()
    report = a_round(cluster).partitions[0]
    view = cluster.views[report.compacted_ledger or 0]
    assert report.messages_out == report.entries_out == len(view.entries)
    assert report.horizon is not None and cluster.topics[TOPIC].horizon is not None
    assert (report.horizon.ledger, report.horizon.entry) == cluster.topics[TOPIC].horizon[:2]
    cluster.send(TOPIC, *messages(range(60, 61)))
    assert a_round(cluster).partitions[0].messages_in == len(view.entries) + 1


def test_a_threshold_that_brokers_do_not_tell_is_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_cluster: FakePulsar, _topic: str) -> int:
        raise BrokerError("the admin interface answers 403")

    monkeypatch.setattr(FakePulsar, "automatic_threshold_bytes", refuse)
    cluster = a_cluster()
    report = a_round(cluster)
    assert not report.failed and reads(cluster) == wanted()
    assert "answers 403" in report.notes[0]
