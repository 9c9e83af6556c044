"""A commit whose answer was lost lands later, as a slow catalog has it, and a later call of the same run fails (C6).

run       commit ─► no answer    load    missing ╳ fails      "it may have landed"
catalog      └──────────────────────────────────── lands      before that call, or after the run has ended
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

from lithify.errors import LithifyError, UnknownOutcomeError, WarehouseError
from lithify.gateway.appends.appends import Appends
from lithify.ports.store import CommitUnknownError, StaleVersionError, Warehouse
from lithify.service.change.alter import alter
from lithify.service.commit import ATTEMPTS
from lithify.service.write.append import append
from support.faults.ports import faulty
from support.faults.topics import NAME, records
from support.topics.memory_topic import a_warehouse
from support.topics.whole_logs import check_whole, contents

BATCH = records(range(10), keys=6)
VERBS: dict[str, Callable[[Warehouse], object]] = {
    "append": lambda w: append(w, NAME, BATCH),
    "joined append": lambda w: Appends(w, None).append(NAME, BATCH),
    "alter": lambda w: alter(w, NAME, {"segment.bytes": 1_000_000}),
}


@dataclass(slots=True)
class SlowCatalog:
    """The first commit lands when `land` is called; the `at`-th call after it fails, right after that or before."""

    at: int
    lands_first: bool
    first: Callable[[], Any] | None = None
    calls: list[str] = field(default_factory=list)

    def call(self, name: str, action: Callable[[], Any]) -> Any:
        if self.first is None:
            if name != "commit":
                return action()
            self.first = action
            raise CommitUnknownError("injected: no answer")
        self.calls.append(name)
        if len(self.calls) != self.at:
            return action()
        if self.lands_first:
            self.land()
        raise WarehouseError(f"injected: {name}")

    def land(self) -> None:
        assert self.first is not None
        with suppress(StaleVersionError):
            self.first()


def seen(warehouse: Warehouse) -> object:
    state = warehouse.store.load(NAME)
    return state.settings, contents(warehouse, NAME)


@pytest.mark.parametrize("lands_first", [True, False])
@pytest.mark.parametrize("verb", VERBS)
def test_what_fails_later_does_not_say_that_nothing_was_changed(verb: str, lands_first: bool) -> None:
    for at in range(1, 20):
        warehouse = a_warehouse(NAME, partitions=2)
        catalog = SlowCatalog(at, lands_first)
        before, error = seen(warehouse), None
        try:
            VERBS[verb](faulty(warehouse, catalog))  # type: ignore[arg-type]
        except LithifyError as raised:
            error = raised
        catalog.land()
        check_whole(warehouse, NAME)
        changed = seen(warehouse) != before
        assert isinstance(error, UnknownOutcomeError) or changed == (error is None), (at, catalog.calls, error)
        assert sum(map(len, contents(warehouse, NAME))) in (0, len(BATCH))
        if len(catalog.calls) < at:
            assert at > 3
            return
    raise AssertionError("no commit makes so many calls")


class LandsAtTheEnd:
    """A store that answers no commit, until the first one lands right before the last attempt."""

    def __init__(self) -> None:
        self.commits: list[Callable[[], Any]] = []

    def call(self, name: str, action: Callable[[], Any]) -> Any:
        if name != "commit":
            return action()
        self.commits.append(action)
        if len(self.commits) < ATTEMPTS:
            raise CommitUnknownError("injected: no answer")
        self.commits[0]()
        return action()


def test_the_last_attempt_in_conflict_with_an_earlier_one_is_not_said_to_have_changed_nothing() -> None:
    warehouse = a_warehouse(NAME, partitions=2)
    with pytest.raises(UnknownOutcomeError):
        append(faulty(warehouse, LandsAtTheEnd()), NAME, BATCH)  # type: ignore[arg-type]
    assert sum(map(len, contents(warehouse, NAME))) == len(BATCH)


def test_a_lost_answer_that_is_certain_by_now_does_not_hide_a_later_error() -> None:
    """Another commit came first: the lost one cannot land any more, and what fails then has changed nothing."""
    warehouse = a_warehouse(NAME, partitions=2)
    calls: list[str] = []

    class Overtaken:
        def call(self, name: str, action: Callable[[], Any]) -> Any:
            calls.append(name)
            if calls.count("commit") == 1 and name == "commit":
                append(warehouse, NAME, records(range(4), keys=2))
                raise CommitUnknownError("injected: no answer")
            if calls.count("commit") == 1 and name == "missing":
                raise WarehouseError("injected: missing")
            return action()

    with pytest.raises(WarehouseError, match="injected: missing"):
        append(faulty(warehouse, Overtaken()), NAME, BATCH)  # type: ignore[arg-type]
    assert sum(map(len, contents(warehouse, NAME))) == 4
