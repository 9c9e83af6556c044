"""No append with a key is there twice, and none that was acknowledged is lost, whatever happens to gateways (C75).

A gateway fails, dies, loses an answer or is paused at each of its port calls, also of the database of notes. Clients
send the same again, to it or to another gateway.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest

from faults.keyed_appends import START_MS, Lake, calls, send_joined
from lithify.coordination.leases.gateways.appends_sql import open_append_notes
from lithify.errors import UnknownOutcomeError, WarehouseError
from lithify.gateway.appends.appends import Appends
from lithify.gateway.appends.forgetting import forget_old
from lithify.model.formats.warehouse_scope import WarehouseScope
from lithify.ports.store import CommitUnknownError
from lithify.service.round.compact import RunRequest, compact
from lithify.service.write.append import append
from lithify.testing.fake_clock import FakeClock
from lithify.testing.oracle_engine import OracleEngine
from support.faults.baton import TO_THE_END, Baton, Held
from support.faults.ports import LONG_MS, Freezer, Injector, Kind, faulty
from support.faults.topics import MAKERS, NAME, records
from support.topics.memory_topic import a_warehouse
from support.topics.whole_logs import contents

TWICE_STRUCK = 600
"""So many pairs of calls are tried, of many."""
SCHEDULES = 300


def made() -> Lake:
    return Lake.made(a_warehouse(now_ms=START_MS))


@pytest.mark.parametrize("kind", Kind)
@pytest.mark.parametrize("elsewhere", [False, True])
@pytest.mark.parametrize("known", [False, True])
def test_struck_at_each_call(kind: Kind, elsewhere: bool, known: bool) -> None:
    for striker in calls(lambda at: Injector(at, kind)):
        lake = made()
        if known:  # the topic has a chain
            lake.until_acknowledged(lake.gateway(), "before")
        gateway = lake.gateway(striker)
        lake.send(gateway, "a")
        lake.until_acknowledged(lake.gateway() if elsewhere else gateway, "a")
        lake.until_acknowledged(lake.gateway(), "a")
        lake.check(["a"])


def test_on_stored_tables(tmp_path: Path) -> None:
    for kind in (Kind.LOSES_ANSWER, Kind.CRASHES_AFTER):
        notes = open_append_notes(
            f"sqlite:///{tmp_path}/notes.db", None, WarehouseScope(kind.name, kind.name, kind.name)
        )
        lake = Lake.made(MAKERS["iceberg"](tmp_path / kind.name, START_MS), notes)
        lake.until_acknowledged(lake.gateway(), "before")
        for striker in calls(lambda at, kind=kind: Injector(at, kind)):
            text = f"a{striker.at}"
            lake.send(lake.gateway(striker), text)
            lake.until_acknowledged(lake.gateway(), text)
        lake.check([])


def nothing(_: Lake) -> None:
    pass


def other_appends(lake: Lake) -> None:
    lake.until_acknowledged(lake.gateway(), "other")
    append(lake.warehouse, NAME, records(range(4), keys=2))


def many_appends(lake: Lake) -> None:
    lake.until_acknowledged(lake.gateway(), "other")
    for n in range(10):  # more than the ids of runs that a log keeps
        append(lake.warehouse, NAME, records(range(n, n + 1), keys=1))


MEANWHILE = [nothing, other_appends, many_appends]


@pytest.mark.parametrize("before", MEANWHILE)
@pytest.mark.parametrize("after", MEANWHILE)
def test_paused_at_each_call_while_another_gateway_does_it(
    before: Callable[[Lake], None], after: Callable[[Lake], None]
) -> None:
    def freezer(at: int) -> Freezer:
        lake = lakes[-1]

        def meanwhile() -> None:
            before(lake)
            lake.until_acknowledged(lake.gateway(), "a")
            after(lake)

        return Freezer(at, meanwhile)

    lakes = [made()]
    for striker in calls(freezer):
        lake = lakes[-1]
        lake.send(lake.gateway(striker), "a")
        lake.check(["a"])
        lakes.append(made())


def test_paused_for_days_until_its_key_is_forgotten() -> None:
    lakes = [made()]

    def freezer(at: int) -> Freezer:
        lake = lakes[-1]

        def meanwhile() -> None:
            lake.until_acknowledged(lake.gateway(), "a")
            clock = lake.warehouse.clock
            assert isinstance(clock, FakeClock)
            clock.advance(LONG_MS)
            forget_old(lake.warehouse, lake.notes, lake.warehouse.clock.now_ms())
            assert lake.notes.find(NAME, ["a"]) == {}

        return Freezer(at, meanwhile)

    for striker in calls(freezer):
        lake = lakes[-1]
        lake.send(lake.gateway(striker), "a")
        assert all(isinstance(error, UnknownOutcomeError) for error in lake.errors)
        lake.check(["a"])
        lakes.append(made())


def test_forgotten_while_it_is_paused_it_does_not_land_later() -> None:
    """If it had not landed before, it is sent again as a new request, and is there once."""
    lakes = [made()]

    def freezer(at: int) -> Freezer:
        lake = lakes[-1]

        def meanwhile() -> None:
            lake.warehouse.clock.advance(LONG_MS)  # type: ignore[attr-defined]
            forget_old(lake.warehouse, lake.notes, lake.warehouse.clock.now_ms())
            if not any(contents(lake.warehouse, NAME)):
                lake.until_acknowledged(lake.gateway(), "a")

        return Freezer(at, meanwhile)

    for striker in calls(freezer):
        lake = lakes[-1]
        lake.send(lake.gateway(striker), "a")
        lake.check(["a"])
        lakes.append(made())


def test_not_forgotten_while_nobody_knows_whether_it_was_fenced() -> None:
    """The request that fences it is lost, and then the catalog is away: it may still land, so its note remains."""
    lakes = [made()]

    def freezer(at: int) -> Freezer:
        lake = lakes[-1]

        def meanwhile() -> None:
            if any(contents(lake.warehouse, NAME)):
                return
            lake.warehouse.clock.advance(LONG_MS)  # type: ignore[attr-defined]
            forget_old(faulty(lake.warehouse, Unfenced()), lake.notes, lake.warehouse.clock.now_ms())  # type: ignore[arg-type]

        return Freezer(at, meanwhile)

    for striker in calls(freezer):
        lake = lakes[-1]
        lake.send(lake.gateway(striker), "a")
        lake.until_acknowledged(lake.gateway(), "a")
        lake.check(["a"])
        lakes.append(made())


class Unfenced:
    """A catalog to which no request comes from the first commit on."""

    is_away = False

    def call(self, name: str, action: Callable[[], object]) -> object:
        if name == "commit":
            self.is_away = True
            raise CommitUnknownError("injected: commit")
        if self.is_away:
            raise WarehouseError(f"injected: {name}")
        return action()


@pytest.mark.parametrize("seed", range(3))
def test_the_second_gateway_is_struck_while_the_first_is_paused(seed: int) -> None:
    drawn = random.Random(seed)
    for _ in range(TWICE_STRUCK // 3):
        lake = made()
        if drawn.random() < 0.7:
            lake.until_acknowledged(lake.gateway(), "before")
        second = Injector(drawn.randrange(1, 25), drawn.choice(list(Kind)))

        def meanwhile(lake: Lake = lake, second: Injector = second) -> None:
            third = Freezer(drawn.randrange(1, 15), lambda: lake.send(lake.gateway(), "a"))
            lake.send(lake.gateway(second), "a")
            drawn.choice(MEANWHILE)(lake)
            if drawn.random() < 0.5:
                lake.send(lake.gateway(third), "a")
            drawn.choice(MEANWHILE)(lake)

        first = Freezer(drawn.randrange(1, 20), meanwhile)
        lake.send(lake.gateway(first), "a")
        drawn.choice(MEANWHILE)(lake)
        lake.until_acknowledged(lake.gateway(), "a")
        lake.check(["a"])


@pytest.mark.parametrize("kind", [Kind.FAILS, Kind.LOSES_REQUEST, Kind.LOSES_ANSWER])
def test_a_joined_commit_is_struck(kind: Kind) -> None:
    for striker in calls(lambda at: Injector(at, kind)):
        lake = made()
        send_joined(lake, striker, ["a", "b"])
        for text in ("a", "b"):
            lake.until_acknowledged(lake.gateway(), text)
        lake.check(["a", "b"])


def test_a_joined_commit_is_paused_while_one_of_it_is_done_elsewhere() -> None:
    lakes = [made()]

    def freezer(at: int) -> Freezer:
        lake = lakes[-1]
        return Freezer(at, lambda: lake.until_acknowledged(lake.gateway(), "a"))

    for striker in calls(freezer):
        lake = lakes[-1]
        send_joined(lake, striker, ["a", "b"])
        assert lake.errors == []
        lake.check(["a", "b"])
        lakes.append(made())


def test_appends_survive_a_round_in_between() -> None:
    """A round removes what a later record supersedes; the answer of a retry remains."""
    lake = made()
    first = lake.until_acknowledged(lake.gateway(), "a")
    append(lake.warehouse, NAME, records(range(4), keys=2))
    compact(lake.warehouse, OracleEngine(lake.warehouse.files), NAME, RunRequest())
    assert lake.until_acknowledged(lake.gateway(), "a") == first


def test_two_gateways_in_turns() -> None:
    """The first is paused, the second one begins the same, is paused, and the first one continues before it does."""
    drawn = random.Random(7)
    for first in range(1, 16):
        for second in range(1, 50):
            lake = made()
            lake.until_acknowledged(lake.gateway(), "before")
            baton = Baton([("a", first), ("b", second), ("a", drawn.choice([1, 2, 3, TO_THE_END])), ("b", TO_THE_END)])
            gateways = {who: lake.gateway(Held(baton, who)) for who in "ab"}
            baton.run({who: partial(lake.send, gateway, "a") for who, gateway in gateways.items()})
            lake.until_acknowledged(lake.gateway(), "a")
            lake.check(["a"])


def test_three_gateways_in_any_order() -> None:
    """Two begin the same append, and a third one other appends, which move the chain on."""
    for seed in range(SCHEDULES):
        drawn = random.Random(seed)
        lake = made()
        lake.until_acknowledged(lake.gateway(), "before")
        baton = Baton([(drawn.choice("abc"), drawn.randrange(1, 7)) for _ in range(40)])
        gateways = {who: lake.gateway(Held(baton, who)) for who in "abc"}
        works = {who: partial(lake.send, gateways[who], "a") for who in "ab"}
        baton.run({**works, "c": partial(send_all, lake, gateways["c"], ["c", "d", "a", "e", "f"])})
        for text in "acdef":
            lake.until_acknowledged(lake.gateway(), text)
        lake.check(["a", "c", "d", "e", "f"])


def send_all(lake: Lake, gateway: Appends, texts: Sequence[str]) -> None:
    for text in texts:
        lake.send(gateway, text)
