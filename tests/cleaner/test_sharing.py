"""One rate for all cleaners of a catalog: divided by those that run, whichever start, end or die (C40)."""

from __future__ import annotations

from dataclasses import dataclass, field

from leases.places import TroubledCoordination, down
from lithify.coordination.leases.keeper import LeaseKeeper
from lithify.coordination.leases.memory import MemoryCoordination
from lithify.daemons.cleaner.cleaner_count import CleanerCount
from lithify.model.cleaner_note import CleanerNote
from lithify.model.settings.rates import Rates, RatesDocument
from lithify.ports.documents import DocumentKind
from lithify.ports.engine import RunLimits
from lithify.service.cleaner_rates import rates_of_cleaners, with_rates_of_cleaners
from lithify.service.documents import put_rates, rates_note
from lithify.testing.fake_clock import FakeClock
from lithify.testing.memory_files import MemoryFiles
from lithify.testing.memory_store import MemoryStore

LEASE_MS = 30_000
BEAT_MS = 5_000
SHARED = RatesDocument("shared", Rates(100, 50), shared=True)


class SharedMemory(MemoryCoordination):
    """Leases that other processes are said to see."""

    shared = True


@dataclass
class Fleet:
    """Cleaners of one catalog, with the clock that all have."""

    database: MemoryCoordination = field(default_factory=SharedMemory)
    store: MemoryStore = field(default_factory=lambda: MemoryStore(FakeClock().new_id, MemoryFiles()))
    now_ms: int = 0
    running: dict[str, tuple[LeaseKeeper, CleanerCount, TroubledCoordination]] = field(default_factory=dict)

    def start(self, name: str, scope: str = "here") -> None:
        wire = TroubledCoordination(self.database)
        keeper = LeaseKeeper(wire, f"{name}/1", LEASE_MS, lambda: self.now_ms)
        keeper.register(name)
        wire.put_note(CleanerNote(name, scope, 1, self.now_ms, None))
        self.running[name] = keeper, CleanerCount(self.store, wire, keeper, scope), wire
        self._count(name)

    def beat(self) -> int | None:
        """A heartbeat of all; returns the number that tasks then divide by."""
        self.now_ms += BEAT_MS
        for name, (keeper, _, wire) in self.running.items():
            if keeper.renew().error is None and wire.before is not down:
                keeper.observe()
                self._count(name)
        return self.stored

    def _count(self, name: str) -> None:
        count = self.running[name][1]
        count.observed.set()
        count.store_when_observed(0)

    @property
    def stored(self) -> int | None:
        content = self.store.get_document(None, DocumentKind.CLEANERS)
        return None if content is None else content["cleaners"]


def test_each_that_starts_takes_its_share_at_once_and_the_dead_give_theirs_back() -> None:
    fleet = Fleet()
    for number, name in enumerate(("one", "two", "three"), 1):
        fleet.start(name)
        assert fleet.stored == number
        assert fleet.beat() == number
    del fleet.running["two"]  # killed: its lease ends
    seen = [fleet.beat() for _ in range(2 * LEASE_MS // BEAT_MS)]
    assert seen[0] == 3 and seen[-1] == 2 and seen == sorted(seen, reverse=True)
    fleet.running.pop("one")[0].leave()
    assert fleet.beat() == 1


def test_a_wrong_number_of_one_that_stalled_is_put_right_at_the_next_heartbeat() -> None:
    fleet = Fleet()
    fleet.start("one")
    fleet.start("two")
    assert fleet.beat() == 2
    fleet.store.put_document(None, DocumentKind.CLEANERS, {"cleaners": 1})
    assert fleet.beat() == 2
    fleet.store.put_document(None, DocumentKind.CLEANERS, {"cleaners": "many"})
    assert fleet.beat() == 2


def test_the_number_stays_while_the_database_cannot_be_reached() -> None:
    fleet = Fleet()
    fleet.start("one")
    fleet.start("two")
    assert fleet.beat() == 2
    for _, _, wire in fleet.running.values():
        wire.before = down
    assert {fleet.beat() for _ in range(3 * LEASE_MS // BEAT_MS)} == {2}


def test_cleaners_of_another_catalog_in_the_same_database_do_not_count() -> None:
    fleet = Fleet()
    fleet.start("one")
    fleet.start("elsewhere", scope="there")
    fleet.running.pop("elsewhere")[0].renew()
    fleet.store.put_document(None, DocumentKind.CLEANERS, {"cleaners": 7})
    fleet.start("two")
    assert fleet.beat() == 2


def test_cleaners_that_share_no_database_count_nothing() -> None:
    fleet = Fleet(MemoryCoordination())
    fleet.start("one")
    assert fleet.beat() is None


def test_a_cleaner_that_starts_keeps_to_what_was_set_before_and_to_what_comes_later() -> None:
    store, own = MemoryStore(FakeClock().new_id, MemoryFiles()), RunLimits(read_rate_bytes=7)
    assert with_rates_of_cleaners(store, own).read_rate_bytes == 7
    put_rates(store, None, SHARED)
    limits = with_rates_of_cleaners(store, own)
    assert (limits.read_rate_bytes, limits.write_rate_bytes) == (100, 50)
    assert [note.id for note in limits.notes] == [None], "tasks follow it from the start"
    shown = rates_of_cleaners(store)
    assert shown is not None and shown.shared


def test_no_limit_is_for_those_that_run_and_so_are_rates_of_earlier_versions() -> None:
    store, own = MemoryStore(FakeClock().new_id, MemoryFiles()), RunLimits(read_rate_bytes=7)
    for document in (RatesDocument("none", Rates(), shared=False), RatesDocument("earlier", Rates(5))):
        put_rates(store, None, document)
        limits = with_rates_of_cleaners(store, own)
        assert limits.read_rate_bytes == 7
        assert [note.id for note in limits.notes] == [document.id]
        assert rates_note(store, None).id == document.id
        assert rates_of_cleaners(store) is None
