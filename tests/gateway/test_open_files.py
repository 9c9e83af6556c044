"""The limit of open files, and which connections are closed if there are too many."""

from __future__ import annotations

from dataclasses import dataclass, field
from resource import RLIM_INFINITY

import pytest

from lithify.gateway.listening import connections, open_files
from lithify.gateway.listening.connections import SPARE, make_room
from lithify.gateway.listening.open_files import FILES, NEEDED, allow_files


@pytest.fixture
def limits(monkeypatch) -> dict[str, tuple[int, int]]:
    """The limit of this process, as the system would keep it."""
    kept = {"now": (1024, 4096)}
    monkeypatch.setattr(open_files, "getrlimit", lambda _kind: kept["now"])
    monkeypatch.setattr(open_files, "setrlimit", lambda _kind, limit: kept.update(now=limit))
    return kept


@pytest.mark.parametrize(
    ("given", "then", "is_told"),
    [
        ((1024, 2**20), (FILES, 2**20), False),
        ((1024, RLIM_INFINITY), (FILES, RLIM_INFINITY), False),
        ((2**19, 2**20), (2**19, 2**20), False),
        ((RLIM_INFINITY, RLIM_INFINITY), (RLIM_INFINITY, RLIM_INFINITY), False),
        ((1024, 4096), (4096, 4096), True),
        ((NEEDED, NEEDED), (NEEDED, NEEDED), False),
    ],
)
def test_the_limit_is_raised_as_far_as_it_may_be(limits, given, then, is_told):
    limits["now"] = given
    told = allow_files()
    assert limits["now"] == then
    assert [f"may have {then[0]} files open" in one for one in told] == [True] * is_told


def test_a_limit_that_cannot_be_raised_is_told(limits, monkeypatch):
    def refused(_kind, _limit):
        raise ValueError("not allowed")

    monkeypatch.setattr(open_files, "setrlimit", refused)
    assert "may have 1024 files open" in allow_files()[0]


@dataclass(eq=False)
class One:
    """A connection of a host since a second."""

    host: str
    strange_since_s: float
    all: set[One]
    is_strange: bool = True
    is_closed: bool = field(default=False)

    def give_up(self) -> None:
        self.all.discard(self)
        self.is_closed = True


def connected(*hosts: str) -> list[One]:
    """One after the other."""
    together: set[One] = set()
    for second, host in enumerate(hosts):
        together.add(One(host, float(second), together))
    return sorted(together, key=lambda one: one.strange_since_s)


@pytest.mark.parametrize(
    ("hosts", "closed"),
    [
        ("aaaaa", [0]),  # the oldest
        ("abbbb", [1]),  # of the address with most
        ("bbbba", [0]),
        ("aabbbbb", [2, 3, 4]),
        ("abcde", [0]),
        ("bbbaaa", [0, 3]),
    ],
)
def test_the_address_with_most_connections_gives_way(monkeypatch, hosts, closed):
    monkeypatch.setattr(connections, "CONNECTIONS_AT_MOST", 4)
    all_of_them = connected(*hosts)
    gone = make_room(all_of_them[0].all)
    assert [n for n, one in enumerate(all_of_them) if one.is_closed] == closed
    assert {*gone} == {all_of_them[n] for n in closed}
    assert make_room(all_of_them[0].all) == ()


def test_some_more_are_closed_if_there_are_many_but_never_the_newest(monkeypatch):
    monkeypatch.setattr(connections, "CONNECTIONS_AT_MOST", 10 * SPARE)
    all_of_them = connected(*["a"] * (10 * SPARE + 1))
    assert make_room(all_of_them[0].all) == all_of_them[:11]
    assert not all_of_them[-1].is_closed
    all_of_them = connected(*["a"] * (10 * SPARE + 1))
    for one in all_of_them[:-2]:
        one.is_strange = False
    assert make_room(all_of_them[0].all) == all_of_them[-2:-1]
