"""Turns of callers that append to one topic: nobody waits for ever, and each gets the outcome of its own work."""

from __future__ import annotations

import random
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from time import monotonic, sleep

import pytest

from lithify.errors import BusyError
from lithify.gateway.appends.turns import Limits, Turns
from lithify.model.names import TopicName

NAME = TopicName("default", "orders")
ENOUGH_S = 60


class Held:
    """A commit that waits until it is let go; notes the turns."""

    def __init__(self) -> None:
        self.begun, self.let_go = threading.Event(), threading.Event()
        self.turns: list[list[int]] = []

    def __call__(self, topic: TopicName, works: Sequence[int]) -> list[int]:
        self.turns.append(list(works))
        self.begun.set()
        assert self.let_go.wait(ENOUGH_S)
        return [10 * work for work in works]


def now_ms() -> int:
    return int(1000 * monotonic())


def waiting(turns: Turns[int, int], count: int) -> None:
    while len(turns._queues[NAME].waiting) != count:
        sleep(0.001)


def test_those_that_wait_are_done_in_their_order_the_first_one_first() -> None:
    held = Held()
    turns: Turns[int, int] = Turns(held, Limits(), now_ms)
    with ThreadPoolExecutor(5) as pool:
        asked = [pool.submit(turns.done, NAME, 0, 1)]
        assert held.begun.wait(ENOUGH_S)
        for work in range(1, 5):
            asked.append(pool.submit(turns.done, NAME, work, 1, first=work >= 3))
            waiting(turns, work)
        held.let_go.set()
        assert [one.result(ENOUGH_S) for one in asked] == [0, 10, 20, 30, 40]
    assert held.turns == [[0], [3, 1, 2], [4]]


def test_a_turn_waits_for_the_callers_of_the_last_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else these and those that waited would take turns, and each commit would have half of all appends."""
    held = Held()
    turns = _of_long_pauses(held, monkeypatch)

    def twice() -> list[int]:
        answers = [turns.done(NAME, 0, 1)]
        sleep(0.1)  # a turn that does not wait has begun by then
        return [*answers, turns.done(NAME, 2, 1)]

    with ThreadPoolExecutor(3) as pool:
        again = pool.submit(twice)
        assert held.begun.wait(ENOUGH_S)
        meanwhile = pool.submit(turns.done, NAME, 1, 1)
        waiting(turns, 1)
        held.let_go.set()
        assert (again.result(ENOUGH_S), meanwhile.result(ENOUGH_S)) == ([0, 20], 10)
    assert held.turns == [[0], [1, 2]]


def test_a_turn_waits_for_callers_who_were_all_gone_for_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    held = Held()
    turns = _of_long_pauses(held, monkeypatch)
    with ThreadPoolExecutor(3) as pool:
        asked = [pool.submit(turns.done, NAME, 0, 1)]
        assert held.begun.wait(ENOUGH_S)
        asked += [pool.submit(turns.done, NAME, work, 1) for work in (1, 2)]
        waiting(turns, 2)
        held.let_go.set()
        # The turn of two waits for the first caller, who comes again.
        asked.append(pool.submit(turns.done, NAME, 3, 1))
        assert [one.result(ENOUGH_S) for one in asked] == [0, 10, 20, 30]
        assert sorted(held.turns[1]) == [1, 2, 3]
        again = [pool.submit(turns.done, NAME, 4, 1)]
        waiting(turns, 1)
        again += [pool.submit(turns.done, NAME, work, 1) for work in (5, 6)]
        assert [one.result(ENOUGH_S) for one in again] == [40, 50, 60]
    assert len(held.turns) == 3


def test_few_queues_are_kept_of_topics_to_which_nobody_appends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lithify.gateway.appends.turns.QUEUES_KEPT", 1)
    held = Held()
    turns: Turns[int, int] = Turns(held, Limits(), now_ms)
    for number in range(3):
        name = TopicName("default", f"t{number}")
        held.begun.clear()
        held.let_go.clear()
        with ThreadPoolExecutor(3) as pool:
            asked = [pool.submit(turns.done, name, 0, 1)]
            assert held.begun.wait(ENOUGH_S)
            asked += [pool.submit(turns.done, name, work, 1) for work in (1, 2)]
            while len(turns._queues[name].waiting) < 2:
                sleep(0.001)
            held.let_go.set()
            assert [one.result(ENOUGH_S) for one in asked] == [0, 10, 20]
    assert list(turns._queues) == [TopicName("default", "t0")]


def _of_long_pauses(held: Held, monkeypatch: pytest.MonkeyPatch) -> Turns[int, int]:
    """Each turn waits until all that are expected are there, as if commits took minutes."""
    monkeypatch.setattr("lithify.gateway.appends.turns.PAUSE_S", ENOUGH_S)
    times = count(step=2_000 * ENOUGH_S)
    return Turns(held, Limits(), lambda: next(times))


def test_one_that_gives_up_leaves_its_turn_to_the_next() -> None:
    held = Held()
    turns: Turns[int, int] = Turns(held, Limits(wait_s=0.2), now_ms)
    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(turns.done, NAME, 0, 1)
        assert held.begun.wait(ENOUGH_S)
        gives_up = pool.submit(turns.done, NAME, 1, 1)
        with pytest.raises(BusyError, match="no turn"):
            gives_up.result(ENOUGH_S)
        turns._limits = Limits()
        next_one = pool.submit(turns.done, NAME, 2, 1)
        waiting(turns, 1)
        held.let_go.set()
        assert (first.result(ENOUGH_S), next_one.result(ENOUGH_S)) == (0, 20)
    assert held.turns == [[0], [2]]


@pytest.mark.parametrize("seed", range(3))
def test_nobody_waits_for_ever(seed: int) -> None:
    """Some commits fail, some callers give up."""
    drawn = random.Random(seed)

    def commit(topic: TopicName, works: Sequence[int]) -> list[int]:
        if drawn.random() < 0.1:
            raise ValueError("injected")
        sleep(drawn.random() / 500)
        return [10 * work for work in works]

    turns: Turns[int, int] = Turns(commit, Limits(commit_appends=5, wait_s=0.02), now_ms)
    done: list[int] = []

    def client(number: int) -> None:
        for one in range(20):
            work = 100 * number + one
            try:
                assert turns.done(NAME, work, 1, first=one % 7 == 0) == 10 * work
            except (BusyError, ValueError):
                continue
            done.append(work)

    with ThreadPoolExecutor(16) as pool:
        for one in [pool.submit(client, number) for number in range(16)]:
            one.result(ENOUGH_S)
    assert len(done) == len(set(done)) > 0
    assert (turns._bytes, turns._appends) == (0, 0)
