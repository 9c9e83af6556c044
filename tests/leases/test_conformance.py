"""What every place for leases does, whatever it is made of."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from leases.places import LeasePlace
from lithify.coordination.leases.memory import MemoryCoordination
from lithify.model.cleaner_note import CleanerNote
from lithify.ports.leases import Coordination, Lease

ALPHA, BETA = "alpha/3f2a", "beta/90c1"
THREADS, ROUNDS, NAMES = 6, 10, 8


def by_name(coordination: Coordination) -> dict[str, Lease]:
    return {lease.name: lease for lease in coordination.leases()}


def test_at_first_there_are_none(place: LeasePlace) -> None:
    assert place.coordination.leases() == ()
    assert place.coordination.renew(ALPHA, 1) == frozenset()
    assert place.coordination.take([], {}) == frozenset()


def test_a_free_lease_is_given_once(place: LeasePlace) -> None:
    assert place.coordination.take([Lease("orders", ALPHA, 1)], {}) == {"orders"}
    assert place.opened().take([Lease("orders", BETA, 1)], {}) == frozenset()
    assert place.opened().leases() == (Lease("orders", ALPHA, 1),)


def test_of_several_those_are_given_that_are_as_they_were_seen(place: LeasePlace) -> None:
    place.coordination.take([Lease("moved", ALPHA, 1), Lease("still", ALPHA, 1), Lease("new", ALPHA, 1)], {})
    seen = {name: Lease(name, ALPHA, 1) for name in ("moved", "still", "gone")}
    place.coordination.release(ALPHA, ["moved", "new"])
    place.coordination.take([Lease("moved", ALPHA, 2), Lease("new", ALPHA, 2)], {})

    wanted = [Lease(name, BETA, 7) for name in ("still", "moved", "free", "new", "gone")]
    assert place.opened().take(wanted, seen) == {"still", "free"}

    assert by_name(place.coordination) == {
        "moved": Lease("moved", ALPHA, 2),
        "still": Lease("still", BETA, 7),
        "new": Lease("new", ALPHA, 2),
        "free": Lease("free", BETA, 7),
    }


def test_a_lease_of_the_same_owner_is_taken_like_another_ones(place: LeasePlace) -> None:
    place.coordination.take([Lease("orders", ALPHA, 1)], {})
    assert place.coordination.take([Lease("orders", ALPHA, 2)], {}) == frozenset()
    assert place.coordination.take([Lease("orders", ALPHA, 3)], {"orders": Lease("orders", ALPHA, 1)}) == {"orders"}


def test_renewing_moves_all_leases_of_an_owner_and_no_others(place: LeasePlace) -> None:
    place.coordination.take([Lease("orders", ALPHA, 1), Lease("payments", ALPHA, 1)], {})
    place.coordination.take([Lease("clicks", BETA, 1)], {})

    assert place.opened().renew(ALPHA, 5) == {"orders", "payments"}

    assert {lease.name: lease.beats for lease in place.coordination.leases()} == {
        "orders": 5,
        "payments": 5,
        "clicks": 1,
    }


def test_a_number_never_gets_smaller(place: LeasePlace) -> None:
    place.coordination.take([Lease("orders", ALPHA, 9)], {})
    assert place.coordination.renew(ALPHA, 4) == {"orders"}
    assert place.coordination.leases() == (Lease("orders", ALPHA, 9),)


def test_only_the_owner_gives_a_lease_back(place: LeasePlace) -> None:
    place.coordination.take([Lease("orders", ALPHA, 1), Lease("payments", ALPHA, 1)], {})

    place.coordination.release(BETA, ["orders"])
    place.coordination.release(ALPHA, ["payments", "unknown"])

    assert place.opened().leases() == (Lease("orders", ALPHA, 1),)
    assert place.coordination.take([Lease("payments", BETA, 1)], {}) == {"payments"}


def test_many_are_taken_renewed_and_given_back_at_once(place: LeasePlace) -> None:
    names = [f"topic{number:04d}" for number in range(1_234)]
    assert place.coordination.take([Lease(name, ALPHA, 1) for name in names], {}) == set(names)
    assert place.coordination.renew(ALPHA, 2) == set(names)
    seen = by_name(place.coordination)
    assert place.coordination.take([Lease(name, BETA, 1) for name in names], seen) == set(names)
    place.coordination.release(BETA, names[1:])
    assert place.coordination.leases() == (Lease(names[0], BETA, 1),)


def test_names_and_owners_are_taken_as_they_are(place: LeasePlace) -> None:
    odd = ["role:upkeep@läke", "it's; DROP TABLE lithify_leases", "100%s :name", "ключ" * 100, " "]
    assert place.coordination.take([Lease(name, "o'owner:%s", 1) for name in odd], {}) == set(odd)
    assert {lease.name for lease in place.opened().leases()} == set(odd)
    assert place.coordination.renew("o'owner:%s", 2) == set(odd)
    place.coordination.release("o'owner:%s", odd)
    assert place.coordination.leases() == ()


def test_of_threads_that_race_for_leases_one_gets_each(place: LeasePlace) -> None:
    names = [f"topic{number}" for number in range(NAMES)]
    dead = [Lease(name, "dead", 1) for name in names[::2]]  # half of them are takeovers
    barrier = Barrier(THREADS)

    def race(thread: int) -> list[frozenset[str]]:
        won = []
        for beats in range(1, ROUNDS + 1):
            barrier.wait(60)
            if thread == 0:
                place.coordination.take([Lease(lease.name, "dead", beats) for lease in dead], {})
            barrier.wait(60)
            seen = by_name(place.coordination)
            barrier.wait(60)
            wanted = names if thread % 2 else names[::-1]
            won.append(place.coordination.take([Lease(name, f"owner{thread}", beats) for name in wanted], seen))
            place.coordination.renew(f"owner{thread}", beats)
            barrier.wait(60)
            place.coordination.release(f"owner{thread}", names)
        return won

    with ThreadPoolExecutor(THREADS) as threads:
        wins = list(threads.map(race, range(THREADS)))

    for taken in zip(*wins, strict=True):
        assert sorted(name for names_of_one in taken for name in names_of_one) == sorted(names)


OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("take"), st.sampled_from((ALPHA, BETA)), st.sets(st.sampled_from("abcd"), min_size=1)),
        st.tuples(st.just("renew"), st.sampled_from((ALPHA, BETA)), st.integers(0, 30)),
        st.tuples(st.just("release"), st.sampled_from((ALPHA, BETA)), st.sets(st.sampled_from("abcd"))),
        st.tuples(st.just("look"), st.just(""), st.none()),
    ),
    max_size=20,
)


@given(operations=OPERATIONS)
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_place_does_what_memory_does(place: LeasePlace, operations: list[tuple[str, str, object]]) -> None:
    place.coordination.release(ALPHA, "abcd")
    place.coordination.release(BETA, "abcd")
    both: tuple[Coordination, Coordination] = (MemoryCoordination(), place.coordination)
    seen: dict[str, Lease] = {}
    for number, (operation, owner, what) in enumerate(operations):
        match operation, what:
            case "take", set():
                wanted = [Lease(name, owner, 2 * number + 1) for name in what]  # a number that nothing has
                taken = {frozenset(one.take(wanted, seen)) for one in both}
                assert len(taken) == 1
            case "renew", int():
                assert len({one.renew(owner, 2 * what) for one in both}) == 1
            case "release", set():
                for one in both:
                    one.release(owner, what)
            case _:
                seen = by_name(both[0])
        assert by_name(both[0]) == by_name(both[1])


def test_those_are_removed_that_are_as_they_were_seen(place: LeasePlace) -> None:
    stands, moved, taken = (Lease(name, ALPHA, 1) for name in ("stands", "moved", "taken"))
    place.coordination.take([stands, moved, taken], {})
    place.coordination.release(ALPHA, ["moved", "taken"])
    place.coordination.take([Lease("moved", ALPHA, 2)], {})
    place.coordination.take([Lease("taken", BETA, 1)], {})
    place.opened().remove([stands, moved, taken, Lease("never there", ALPHA, 1)])
    assert set(place.coordination.leases()) == {Lease("moved", ALPHA, 2), Lease("taken", BETA, 1)}


def test_thousands_are_removed_at_once(place: LeasePlace) -> None:
    many = [Lease(f"cleaner:pod-{number:05}", f"pod-{number:05}/abc", 7) for number in range(2_000)]
    for lease in many[:3]:
        place.coordination.take([lease], {})
    place.coordination.remove(many)
    assert place.coordination.leases() == ()


class TestNotes:
    """What cleaners say of themselves, for people."""

    NOTE = CleanerNote("alpha", "s3://lake", 15_000, 1_000_000, None)

    def test_at_first_there_are_none(self, place: LeasePlace) -> None:
        assert place.coordination.notes() == ()
        place.coordination.drop_note("alpha")

    def test_the_last_one_of_each_is_seen_by_others(self, place: LeasePlace) -> None:
        other = replace(self.NOTE, cleaner="beta")
        for note in (self.NOTE, other, replace(self.NOTE, looked_ms=1_500_000)):
            place.coordination.put_note(note)
        assert set(place.opened().notes()) == {other, replace(self.NOTE, looked_ms=1_500_000)}
        place.opened().drop_note("alpha")
        assert place.coordination.notes() == (other,)

    def test_those_of_cleaners_that_are_gone_for_a_day_go(self, place: LeasePlace) -> None:
        place.coordination.put_note(replace(self.NOTE, cleaner="gone"))
        newer = replace(self.NOTE, looked_ms=self.NOTE.started_ms + 86_400_001)
        place.coordination.put_note(newer)
        assert place.coordination.notes() == (newer,)
