"""What a cleaner holds, takes over and loses: by clocks that only the tests move."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pytest

from leases.places import TroubledCoordination, down, nothing
from lithify.coordination.leases.keeper import LeaseKeeper
from lithify.coordination.leases.memory import MemoryCoordination
from lithify.coordination.leases.outcomes import Refused, Registered, Renewal, Waiting
from lithify.errors import CoordinationError
from lithify.ports.leases import Lease

LEASE_MS = 30_000
BEAT_MS = 5_000


@dataclass
class Fleet:
    """Keepers that share a database, each with a wire and a clock of its own."""

    database: MemoryCoordination = field(default_factory=MemoryCoordination)
    now_ms: int = 0
    wires: dict[str, TroubledCoordination] = field(default_factory=dict)

    def keeper(self, owner: str, clock_ahead_ms: int = 0) -> LeaseKeeper:
        self.wires[owner] = TroubledCoordination(self.database)
        return LeaseKeeper(self.wires[owner], owner, LEASE_MS, lambda: self.now_ms + clock_ahead_ms)

    def owners(self) -> dict[str, str]:
        return {lease.name: lease.owner for lease in self.database.leases()}


def test_one_cleaner_takes_a_free_lease() -> None:
    fleet = Fleet()
    alpha, beta = fleet.keeper("alpha"), fleet.keeper("beta")
    assert alpha.take(["orders", "payments"]) == {"orders", "payments"}
    assert beta.take(["payments", "clicks"]) == {"clicks"}
    assert alpha.holds("orders") and alpha.holds("payments") and beta.holds("clicks")
    assert not beta.holds("payments")


def test_what_is_held_is_not_given_again() -> None:
    alpha = Fleet().keeper("alpha")
    assert alpha.take(["orders"]) == {"orders"}
    assert alpha.take(["orders", "payments"]) == {"payments"}
    alpha.observe()
    assert alpha.take(["orders"]) == frozenset()


def test_what_is_given_back_is_free_at_once() -> None:
    fleet = Fleet()
    alpha, beta = fleet.keeper("alpha"), fleet.keeper("beta")
    alpha.take(["orders"])
    beta.observe()
    alpha.release(["orders", "unknown"])
    assert not alpha.holds("orders")
    beta.observe()
    assert beta.take(["orders"]) == {"orders"}


def test_the_lease_of_one_who_renews_is_never_taken_over() -> None:
    fleet = Fleet()
    alpha, beta = fleet.keeper("alpha"), fleet.keeper("beta", clock_ahead_ms=-600_000)
    alpha.take(["orders"])
    for _ in range(100):
        beta.observe()
        assert beta.take(["orders"]) == frozenset()
        fleet.now_ms += BEAT_MS
        assert alpha.renew() == Renewal()
        assert alpha.holds("orders")


def test_a_dead_cleaners_lease_is_taken_over_once_it_was_not_renewed_for_the_time_of_a_lease() -> None:
    fleet = Fleet()
    alpha, beta, gamma = fleet.keeper("alpha"), fleet.keeper("beta", 90_000), fleet.keeper("gamma", -90_000)
    alpha.take(["orders"])
    fleet.now_ms += 4 * LEASE_MS  # for all that the others saw, it may have moved just now
    for watcher in (beta, gamma):
        watcher.observe()
        assert watcher.take(["orders"]) == frozenset()
    fleet.now_ms += LEASE_MS - 1
    assert beta.take(["orders"]) == frozenset()
    fleet.now_ms += 1
    assert beta.take(["orders"]) == {"orders"}
    assert gamma.take(["orders"]) == frozenset()
    assert fleet.owners() == {"orders": "beta"}


def test_a_lease_that_was_not_looked_at_for_long_is_taken_only_if_it_did_not_move_meanwhile() -> None:
    fleet = Fleet()
    alpha, beta = fleet.keeper("alpha"), fleet.keeper("beta")
    alpha.take(["orders"])
    beta.observe()
    alpha.renew()
    fleet.now_ms += 2 * LEASE_MS
    assert beta.take(["orders"]) == frozenset()


def test_a_lease_that_is_taken_and_given_back_all_the_time_does_not_look_dead() -> None:
    fleet = Fleet()
    alpha, beta = fleet.keeper("alpha"), fleet.keeper("beta")
    for _ in range(20):
        assert alpha.take(["orders"]) == {"orders"}
        beta.observe()
        assert beta.take(["orders"]) == frozenset()
        alpha.release(["orders"])
        fleet.now_ms += BEAT_MS


def test_a_lease_is_doubtful_once_its_time_is_over_and_sure_again_after_a_renewal() -> None:
    fleet = Fleet()
    alpha = fleet.keeper("alpha")
    alpha.take(["orders"])
    fleet.now_ms += LEASE_MS - 1
    assert alpha.holds("orders")
    fleet.now_ms += 1
    assert not alpha.holds("orders") and not alpha.lost("orders")
    assert alpha.renew() == Renewal()
    assert alpha.holds("orders")


def test_the_time_of_a_lease_begins_before_the_renewal() -> None:
    fleet = Fleet()
    alpha = fleet.keeper("alpha")

    def freeze(_operation: str) -> None:
        fleet.now_ms += LEASE_MS

    fleet.wires["alpha"].after = freeze
    assert alpha.take(["orders"]) == {"orders"}
    assert not alpha.holds("orders")
    alpha.renew()
    assert not alpha.holds("orders")


def test_the_time_without_a_renewal_begins_after_the_look() -> None:
    fleet = Fleet()
    alpha, beta = fleet.keeper("alpha"), fleet.keeper("beta")
    alpha.take(["orders"])

    def renew_late(_operation: str) -> None:
        fleet.wires["beta"].mend()
        fleet.now_ms += BEAT_MS
        alpha.renew()

    fleet.wires["beta"].before = renew_late
    beta.observe()
    fleet.now_ms += LEASE_MS - BEAT_MS
    assert beta.take(["orders"]) == frozenset()
    assert alpha.holds("orders")


def test_one_that_was_frozen_and_replaced_loses_the_lease_with_its_first_renewal() -> None:
    fleet = Fleet()
    alpha, beta = fleet.keeper("alpha"), fleet.keeper("beta")
    alpha.take(["orders", "payments"])
    beta.observe()
    fleet.now_ms += LEASE_MS
    assert beta.take(["orders"]) == {"orders"}

    assert not alpha.holds("orders")
    assert alpha.renew() == Renewal(lost=frozenset({"orders"}))

    assert alpha.lost("orders") and not alpha.holds("orders")
    assert alpha.holds("payments") and not alpha.lost("payments")
    alpha.release(["orders"])
    assert not alpha.lost("orders")
    assert fleet.owners() == {"orders": "beta", "payments": "alpha"}


def test_a_lost_lease_can_be_ours_again() -> None:
    fleet = Fleet()
    alpha = fleet.keeper("alpha")
    alpha.take(["orders"])
    fleet.database.release("alpha", ["orders"])
    assert alpha.renew().lost == {"orders"}
    assert alpha.take(["orders"]) == {"orders"}
    assert alpha.holds("orders") and not alpha.lost("orders")


def test_an_outage_costs_nothing_while_it_is_shorter_than_a_lease() -> None:
    fleet = Fleet()
    alpha = fleet.keeper("alpha")
    alpha.take(["orders"])
    fleet.wires["alpha"].before = down
    for _ in range(5):
        fleet.now_ms += BEAT_MS
        renewal = alpha.renew()
        assert isinstance(renewal.error, CoordinationError) and renewal.lost == frozenset()
        assert alpha.holds("orders")
    fleet.wires["alpha"].mend()
    assert alpha.renew() == Renewal()
    assert alpha.holds("orders")


def test_in_an_outage_longer_than_a_lease_everything_is_lost_and_is_free_afterwards() -> None:
    fleet = Fleet()
    alpha, beta = fleet.keeper("alpha"), fleet.keeper("beta")
    alpha.take(["orders", "payments"])
    beta.observe()
    fleet.wires["alpha"].before = down
    fleet.now_ms += LEASE_MS
    renewal = alpha.renew()
    assert renewal.lost == {"orders", "payments"} and renewal.error is not None
    assert alpha.renew().lost == frozenset()
    assert beta.take(["orders"]) == {"orders"}

    fleet.wires["alpha"].mend()
    assert alpha.renew() == Renewal()
    assert alpha.lost("payments")
    assert fleet.owners() == {"orders": "beta"}  # who comes back gives back what it did not know it had


def test_a_database_that_is_down_gives_no_lease_and_tells_the_next_look() -> None:
    fleet = Fleet()
    alpha = fleet.keeper("alpha")
    fleet.wires["alpha"].before = down
    assert alpha.take(["orders"]) == frozenset()
    assert _raises(alpha.observe)
    assert _raises(lambda: alpha.register("one"))
    fleet.wires["alpha"].mend()
    assert alpha.take(["orders"]) == {"orders"}


def test_a_lease_whose_taking_got_no_answer_is_given_back_by_the_next_renewal() -> None:
    fleet = Fleet()
    alpha, beta = fleet.keeper("alpha"), fleet.keeper("beta")
    fleet.wires["alpha"].after = down
    assert alpha.take(["orders"]) == frozenset()
    assert fleet.owners() == {"orders": "alpha"}
    fleet.wires["alpha"].mend()
    assert alpha.renew() == Renewal()
    assert beta.take(["orders"]) == {"orders"}


def test_a_lease_whose_taking_got_no_answer_can_be_taken_again_by_the_same() -> None:
    fleet = Fleet()
    alpha = fleet.keeper("alpha")
    fleet.wires["alpha"].after = down
    alpha.take(["orders"])
    fleet.wires["alpha"].mend()
    alpha.observe()
    assert alpha.take(["orders"]) == {"orders"}


def test_what_could_not_be_given_back_is_given_back_by_the_next_renewal() -> None:
    fleet = Fleet()
    alpha = fleet.keeper("alpha")
    alpha.take(["orders", "payments"])
    fleet.wires["alpha"].before = down
    alpha.release(["orders"])
    assert not alpha.holds("orders")
    fleet.wires["alpha"].mend()
    assert alpha.renew() == Renewal()
    assert fleet.owners() == {"payments": "alpha"}


def test_what_is_taken_in_the_middle_of_a_renewal_is_neither_lost_nor_given_back() -> None:
    fleet = Fleet()
    alpha = fleet.keeper("alpha")
    wire = fleet.wires["alpha"]
    alpha.take(["orders", "payments"])

    def in_the_middle(operation: str) -> None:
        wire.mend()
        assert operation == "renew"
        assert alpha.take(["clicks"]) == {"clicks"}
        alpha.release(["orders"])
        assert alpha.take(["orders"]) == {"orders"}
        alpha.release(["payments"])

    wire.after = in_the_middle
    assert alpha.renew() == Renewal()
    assert alpha.holds("clicks") and alpha.holds("orders") and not alpha.holds("payments")
    assert fleet.owners() == {"orders": "alpha", "clicks": "alpha"}


def test_a_lease_that_is_lost_and_taken_anew_in_the_middle_of_a_renewal_is_not_lost() -> None:
    fleet = Fleet()
    alpha = fleet.keeper("alpha")
    wire = fleet.wires["alpha"]
    alpha.take(["orders"])
    fleet.database.release("alpha", ["orders"])

    def in_the_middle(_operation: str) -> None:
        wire.mend()
        alpha.release(["orders"])
        assert alpha.take(["orders"]) == {"orders"}

    wire.after = in_the_middle
    assert alpha.renew() == Renewal()
    assert alpha.holds("orders")


def test_a_renewal_in_the_middle_of_taking_or_giving_back_changes_nothing() -> None:
    fleet = Fleet()
    alpha = fleet.keeper("alpha")
    wire = fleet.wires["alpha"]
    renewals: list[Renewal] = []

    def renewal(_operation: str) -> None:
        wire.mend()
        renewals.append(alpha.renew())
        assert alpha.take(["orders"]) == frozenset()  # another thread has it on its way

    wire.after = renewal
    assert alpha.take(["orders"]) == {"orders"}
    assert alpha.holds("orders")
    wire.before = renewal
    alpha.release(["orders"])
    assert fleet.owners() == {}
    assert renewals == [Renewal(), Renewal()]


def test_of_the_threads_of_one_cleaner_one_has_a_lease_at_a_time() -> None:
    fleet = Fleet()
    alpha = fleet.keeper("alpha")
    names = [f"topic{number}" for number in range(4)]
    working: Counter[str] = Counter()
    had: Counter[str] = Counter()

    def work(thread: int) -> None:
        for _ in range(300):
            taken = alpha.take(names[thread % 2 :: 2] + names[::-1])
            for name in taken:
                working[name] += 1
                assert working[name] == 1 and alpha.holds(name)
                had[name] += 1
            for name in taken:
                working[name] -= 1
            alpha.release(taken)
            assert alpha.renew() == Renewal()
            alpha.observe()

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(work, range(4)))
    assert fleet.owners() == {}
    assert set(had) == set(names)


def test_cleaners_are_counted_while_they_give_signs_of_life() -> None:
    fleet = Fleet()
    alpha, beta = fleet.keeper("alpha"), fleet.keeper("beta")
    assert alpha.cleaners() == 1
    alpha.register("one")
    beta.register("two")
    alpha.observe()
    beta.observe()
    assert (alpha.cleaners(), beta.cleaners()) == (2, 2)
    fleet.now_ms += LEASE_MS
    beta.renew()
    beta.observe()
    assert beta.cleaners() == 1


def test_a_free_id_is_registered_and_kept_by_renewals() -> None:
    fleet = Fleet()
    alpha, beta = fleet.keeper("alpha"), fleet.keeper("beta")
    assert alpha.register("one") == Registered()
    assert beta.register("two") == Registered()
    for _ in range(20):
        fleet.now_ms += BEAT_MS
        assert alpha.renew() == beta.renew() == Renewal()
    assert fleet.owners() == {"cleaner:one": "alpha", "cleaner:two": "beta"}


def test_an_id_whose_cleaner_renews_it_is_refused() -> None:
    fleet = Fleet()
    alpha, beta = fleet.keeper("alpha"), fleet.keeper("beta", clock_ahead_ms=60_000)
    alpha.register("one")
    assert beta.register("one") == Waiting(LEASE_MS)
    fleet.now_ms += BEAT_MS
    alpha.renew()
    refused = beta.register("one")
    assert isinstance(refused, Refused)
    assert "another cleaner with the id one is running (owner alpha)" in str(refused.error)
    assert "cleaner_id=... of a cleaner, name=... of a gateway" in refused.error.hint and refused.error.exit_code == 2


def test_the_id_of_a_dead_cleaner_is_taken_over_after_the_time_of_a_lease_by_one() -> None:
    fleet = Fleet()
    alpha, beta, gamma = (fleet.keeper(owner) for owner in ("alpha", "beta", "gamma"))
    alpha.register("one")
    assert beta.register("one") == gamma.register("one") == Waiting(LEASE_MS)
    fleet.now_ms += LEASE_MS - 1
    assert beta.register("one") == gamma.register("one") == Waiting(1)
    fleet.now_ms += 1
    assert beta.register("one") == Registered()
    assert isinstance(gamma.register("one"), Refused)
    assert fleet.owners() == {"cleaner:one": "beta"}


def test_of_two_that_want_a_free_id_at_once_the_slower_one_asks_again() -> None:
    fleet = Fleet()
    alpha, beta = fleet.keeper("alpha"), fleet.keeper("beta")
    wire = fleet.wires["beta"]

    def overtake(operation: str) -> None:
        if operation == "take":
            wire.mend()
            assert alpha.register("one") == Registered()

    wire.before = overtake
    assert beta.register("one") == Waiting(0)
    assert beta.register("one") == Waiting(LEASE_MS)


def test_a_cleaner_whose_id_was_taken_over_hears_of_it_with_each_renewal() -> None:
    fleet = Fleet()
    alpha, beta = fleet.keeper("alpha"), fleet.keeper("beta")
    alpha.register("one")
    alpha.take(["orders"])
    beta.register("one")
    fleet.now_ms += LEASE_MS
    assert beta.register("one") == Registered()
    assert alpha.renew() == alpha.renew() == Renewal(replaced_by="beta")
    assert beta.renew() == Renewal()


def test_a_cleaner_keeps_its_id_through_an_outage_in_which_no_other_took_it() -> None:
    fleet = Fleet()
    alpha = fleet.keeper("alpha")
    alpha.register("one")
    fleet.wires["alpha"].before = down
    fleet.now_ms += 10 * LEASE_MS
    assert alpha.renew().lost == frozenset()
    fleet.wires["alpha"].mend()
    assert alpha.renew() == Renewal()
    assert fleet.owners() == {"cleaner:one": "alpha"}


def test_a_cleaner_registers_again_in_a_database_that_was_emptied() -> None:
    fleet = Fleet()
    alpha = fleet.keeper("alpha")
    alpha.register("one")
    alpha.take(["orders"])
    fleet.database.release("alpha", ["cleaner:one", "orders"])
    assert alpha.renew() == Renewal(lost=frozenset({"orders"}))
    assert fleet.owners() == {"cleaner:one": "alpha"}
    assert alpha.renew() == Renewal()


def test_what_is_lost_is_reported_although_the_database_goes_down_in_the_middle_of_a_renewal() -> None:
    fleet = Fleet()
    alpha = fleet.keeper("alpha")
    alpha.register("one")
    alpha.take(["orders"])
    fleet.database.release("alpha", ["cleaner:one", "orders"])

    def down_after_renewing(operation: str) -> None:
        (nothing if operation == "renew" else down)(operation)

    fleet.wires["alpha"].before = down_after_renewing
    renewal = alpha.renew()
    assert renewal.lost == {"orders"} and renewal.error is not None


def test_who_leaves_leaves_nothing_behind() -> None:
    fleet = Fleet()
    alpha, beta = fleet.keeper("alpha"), fleet.keeper("beta")
    alpha.register("one")
    alpha.take(["orders"])
    alpha.leave()
    assert fleet.owners() == {}
    assert beta.register("one") == Registered()
    assert fleet.database.leases() == (Lease("cleaner:one", "beta", 1),)


def test_leaving_while_the_database_is_down_is_no_error() -> None:
    fleet = Fleet()
    alpha = fleet.keeper("alpha")
    alpha.register("one")
    fleet.wires["alpha"].before = down
    alpha.leave()


def _raises(work: Callable[[], object]) -> bool:
    try:
        work()
    except CoordinationError:
        return True
    return False


class TestGone:
    """Rows of owners that are gone, one for each name of a pod, do not pile up (C50)."""

    def renews(self, fleet: Fleet, keeper: LeaseKeeper, leases: float) -> None:
        ends_ms = fleet.now_ms + int(leases * LEASE_MS)
        while fleet.now_ms < ends_ms:
            fleet.now_ms += BEAT_MS
            keeper.renew()
            keeper.observe()

    def test_what_is_not_renewed_for_ten_leases_is_removed(self) -> None:
        fleet = Fleet()
        for number in range(3):
            assert isinstance(fleet.keeper(f"pod{number}/1").register(f"pod{number}"), Registered)
        fleet.keeper("pod3/1").take(["a deleted topic"])
        alpha = fleet.keeper("alpha/1")
        alpha.register("alpha")
        self.renews(fleet, alpha, 9.5)
        assert len(fleet.owners()) == 5
        self.renews(fleet, alpha, 1)
        assert fleet.owners() == {"cleaner:alpha": "alpha/1"}

    def test_what_moves_stays(self) -> None:
        fleet = Fleet()
        alpha, beta = fleet.keeper("alpha"), fleet.keeper("beta")
        beta.take(["orders"])
        for _ in range(100):
            self.renews(fleet, alpha, 0.5)
            beta.renew()
        assert beta.holds("orders")

    def test_a_cleaner_that_wakes_up_after_that_has_lost_it_and_can_have_it_again(self) -> None:
        fleet = Fleet()
        alpha, beta = fleet.keeper("alpha/1"), fleet.keeper("beta/1")
        beta.register("beta")
        beta.take(["orders"])
        self.renews(fleet, alpha, 11)
        assert fleet.owners() == {}
        assert beta.renew().lost == {"orders"}
        assert fleet.owners() == {"cleaner:beta": "beta/1"}
        assert beta.take(["orders"]) == {"orders"}

    def test_so_many_are_removed_at_once_and_the_others_after_them(self) -> None:
        fleet = Fleet()
        many = [Lease(f"cleaner:pod-{number:05}", f"pod-{number:05}/1", 7) for number in range(12_000)]
        for lease in many:
            fleet.database.take([lease], {})
        alpha = fleet.keeper("alpha")
        alpha.observe()
        fleet.now_ms += 10 * LEASE_MS
        left = []
        for _ in range(3):
            alpha.observe()
            left.append(len(fleet.owners()))
        assert left == [7_000, 2_000, 0]

    def test_a_database_that_is_down_then_is_reported_and_tried_again(self) -> None:
        fleet = Fleet()
        fleet.keeper("pod/1").register("pod")
        alpha = fleet.keeper("alpha")
        self.renews(fleet, alpha, 9.5)
        wire = fleet.wires["alpha"]
        fleet.now_ms += LEASE_MS
        wire.before = lambda operation: down(operation) if operation == "remove" else None
        with pytest.raises(CoordinationError):
            alpha.observe()
        wire.mend()
        alpha.observe()
        assert fleet.owners() == {}
