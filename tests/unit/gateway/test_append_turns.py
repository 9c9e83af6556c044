"""Turns of callers that append to one topic: nobody waits for ever, and each gets the outcome of its own work."""

from __future__ import annotations

import random
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from time import sleep

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


def waiting(turns: Turns[int, int], count: int) -> None:
    while len(turns._queues[NAME].waiting) != count:
        sleep(0.001)


def test_those_that_wait_are_done_in_their_order_the_first_one_first() -> None:
    held = Held()
    turns: Turns[int, int] = Turns(held, Limits())
    with ThreadPoolExecutor(5) as pool:
        asked = [pool.submit(turns.done, NAME, 0, 1)]
        assert held.begun.wait(ENOUGH_S)
        for work in range(1, 5):
            asked.append(pool.submit(turns.done, NAME, work, 1, first=work >= 3))
            waiting(turns, work)
        held.let_go.set()
        assert [one.result(ENOUGH_S) for one in asked] == [0, 10, 20, 30, 40]
    assert held.turns == [[0], [3, 1, 2], [4]]
    assert turns._queues == {}


def test_one_that_gives_up_leaves_its_turn_to_the_next() -> None:
    held = Held()
    turns: Turns[int, int] = Turns(held, Limits(wait_s=0.2))
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

    turns: Turns[int, int] = Turns(commit, Limits(commit_appends=5, wait_s=0.02))
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
    assert turns._queues == {}
    assert (turns._bytes, turns._appends) == (0, 0)
