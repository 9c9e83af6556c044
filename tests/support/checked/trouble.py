"""Bad luck on the way of a verb: a port call of it is struck, or it is paused there while others work.

verb     load ─► write ─┤ strikes: fails, loses its answer, dies ├─► commit
verb     load ─► write ─┤ is paused: time passes, others do their verbs to the end ├─► commit
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from lithify.errors import LithifyError
from lithify.ports.store import Warehouse
from lithify.testing.fake_clock import FakeClock
from support.faults.ports import CrashError, FaultyEngine, Freezer, Injector, Kind, faulty
from support.topics.known_positions import KnownPositions

Strike = tuple[int, Kind]
"""Which port call of a verb is struck, from 1, and how."""


@dataclass(frozen=True, slots=True)
class Standstill:
    """Right before its port call `at`, from 1, a verb is paused until `others` are done."""

    at: int
    others: Callable[[], object]


Trouble = Strike | Standstill | None


@dataclass(frozen=True, slots=True)
class RandomPlace:
    """A store and an engine under test. Sizes of records are of the order of `size_unit` bytes."""

    warehouse: Warehouse
    engine: object
    clock: FakeClock
    size_unit: int = 1

    @property
    def groups(self) -> KnownPositions:
        assert isinstance(self.warehouse.groups, KnownPositions)
        return self.warehouse.groups


@dataclass(slots=True)
class Attempt:
    """What became of a verb that had bad luck, or none."""

    error: LithifyError | CrashError | None = None
    struck: bool = False
    calls: list[str] = field(default_factory=list)
    """The port calls that were made."""


Act = Callable[[RandomPlace], object]
Meanwhile = Callable[[Callable[[], object], Sequence[str]], object]
"""Has the others do theirs; it gets the calls that were made up to then."""


def attempt(place: RandomPlace, act: Act, trouble: Trouble, meanwhile: Meanwhile) -> Attempt:
    """Does it. What goes wrong with the others is raised, whatever the verb makes of it."""
    done = Attempt()
    raised: list[BaseException] = []

    def paused(others: Callable[[], object]) -> None:
        try:
            meanwhile(others, tuple(done.calls[:-1]))
        except BaseException as error:
            raised.append(error)
            raise

    striker: Freezer | Injector | None = None
    match trouble:
        case Standstill(at, others):
            striker = Freezer(at, lambda: paused(others), done.calls)
        case (at, kind):
            striker = Injector(at, kind, done.calls)
    behind = place
    if striker is not None:
        engine = FaultyEngine(place.engine, striker)
        behind = replace(place, warehouse=faulty(place.warehouse, striker), engine=engine)
    try:
        act(behind)
    except (LithifyError, CrashError) as error:
        done.error = error
    if raised:
        raise raised[0]
    done.struck = isinstance(striker, Injector) and striker.struck
    return done
