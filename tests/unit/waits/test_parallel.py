"""Calls at once: how many, in which order their results come, and what an error leaves behind."""

from __future__ import annotations

from itertools import count
from threading import Barrier, Event, Lock

import pytest

from lithify.waits.parallel import AHEAD, for_each, parallel


@pytest.mark.parametrize("at_once", [1, 3])
def test_results_are_in_the_order_of_the_items(at_once):
    def slow_first(number):
        Event().wait(0.01 if number % 3 == 0 else 0)
        return -number

    assert list(parallel(slow_first, range(50), at_once)) == [-number for number in range(50)]


def test_so_many_calls_are_under_way_together():
    together = Barrier(3, timeout=10)
    assert list(parallel(lambda _: together.wait() >= 0, range(6), 3)) == [True] * 6


def test_no_more_than_that():
    lock, under_way, most = Lock(), [0], [0]

    def call(_):
        with lock:
            under_way[0] += 1
            most[0] = max(most[0], under_way[0])
        Event().wait(0.002)
        with lock:
            under_way[0] -= 1

    list(parallel(call, range(60), 4))
    assert most[0] <= 4


@pytest.mark.parametrize("ahead", [1, 2, AHEAD])
@pytest.mark.parametrize("at_once", [1, 2])
def test_of_endless_items_only_so_many_are_taken(at_once, ahead):
    taken = []
    items = (taken.append(number) or number for number in count())
    results = parallel(lambda number: number, items, at_once, ahead=ahead)
    assert [next(results) for _ in range(10)] == list(range(10))
    assert len(taken) <= 10 + ahead * at_once
    results.close()


@pytest.mark.parametrize("at_once", [1, 3])
def test_an_error_comes_in_its_turn_and_no_more_calls_begin(at_once):
    begun = []

    def call(number):
        begun.append(number)
        if number == 2:
            raise ValueError("the third")
        return number

    results = parallel(call, count(), at_once)
    assert [next(results), next(results)] == [0, 1]
    with pytest.raises(ValueError, match="the third"):
        next(results)
    assert len(begun) <= 3 + AHEAD * at_once


@pytest.mark.parametrize("at_once", [1, 3])
def test_what_is_done_for_each_is_done_before_it_returns(at_once):
    done = set()

    def call(number):
        if number == 20:
            raise ValueError("the last")
        done.add(number)

    for_each(call, range(20), at_once)
    assert done == set(range(20))
    with pytest.raises(ValueError, match="the last"):
        for_each(call, range(21), at_once)
