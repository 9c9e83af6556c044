"""Reading one step ahead and writing one step behind: order, errors, and how far."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from threading import Event, get_ident

import pytest

from lithify.waits.overlap import one_ahead, one_behind, several_ahead
from lithify.waits.parallel import parallel

BOUND_S = 10.0


def test_items_come_in_order():
    assert list(one_ahead(range(100))) == list(range(100))
    assert list(one_ahead([])) == []


def test_the_next_item_is_made_meanwhile_and_no_more():
    made, next_one = [], Event()

    def items() -> Iterator[int]:
        for number in range(4):
            made.append(number)
            if number == 1:
                next_one.set()
            yield number

    ahead = one_ahead(items())
    assert next(ahead) == 0
    assert next_one.wait(BOUND_S)
    Event().wait(0.05)
    assert made == [0, 1]
    ahead.close()


def test_an_error_comes_at_its_turn():
    def items() -> Iterator[int]:
        yield 1
        yield 2
        raise KeyError("third")

    ahead = one_ahead(items())
    assert [next(ahead), next(ahead)] == [1, 2]
    with pytest.raises(KeyError, match="third"):
        next(ahead)


def test_what_is_left_in_the_middle_is_closed():
    closed = Event()

    def items() -> Iterator[int]:
        try:
            yield from range(10)
        finally:
            closed.set()

    ahead = one_ahead(items())
    next(ahead)
    ahead.close()
    assert closed.is_set()


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("count", [0, 1, 5, 6, 7])
def test_items_of_several_come_in_turns(threads, count):
    makers = set()

    def items_of(thread: int) -> Iterator[tuple[int, bool]]:
        for number in range(thread, count, threads):
            makers.add((thread, get_ident()))
            yield number, True

    assert list(several_ahead(items_of, threads)) == list(range(count))
    assert len(makers) == len({ident for _, ident in makers}) == min(threads, count)


def test_an_error_of_one_of_several_closes_the_others():
    closed = [Event(), Event()]

    def items_of(thread: int) -> Iterator[tuple[int, bool]]:
        try:
            yield thread, True
            if thread:
                raise KeyError("second")
            yield from ((number, True) for number in range(10))
        finally:
            closed[thread].set()

    with pytest.raises(KeyError, match="second"):
        list(several_ahead(items_of, 2))
    assert all(event.is_set() for event in closed)


def test_calls_run_in_order_on_another_thread():
    seen = []
    with one_behind(lambda item: seen.append((item, get_ident() == here))) as call:
        here = get_ident()
        for number in range(50):
            call(number)
    assert seen == [(number, False) for number in range(50)]


def test_one_call_at_most_is_unfinished():
    go, begun = Event(), []

    def slow(item: int) -> None:
        begun.append(item)
        assert go.wait(BOUND_S)

    with one_behind(slow) as call:
        call(1)  # returns while it runs
        assert not go.is_set()
        go.set()
        call(2)
    assert begun == [1, 2]


def fails(item: int) -> None:
    if item == 2:
        raise KeyError("the second")


def test_an_error_comes_out_of_the_next_call():
    called = []
    with pytest.raises(KeyError, match="the second"), one_behind(fails) as call:
        for number in range(5):
            call(number)
            called.append(number)
    assert called == [0, 1, 2]


def test_the_last_calls_error_comes_out_of_the_block():
    with pytest.raises(KeyError, match="the second"), one_behind(fails) as call:
        call(2)


def test_the_blocks_own_error_goes_before_that_of_a_call():
    with pytest.raises(ValueError, match="of the block"), one_behind(fails) as call:
        call(2)
        raise ValueError("of the block")


def fails_behind() -> None:
    with one_behind(fails) as call:
        for number in range(5):
            call(number)


@pytest.mark.parametrize(
    "meet",
    [
        lambda: list(one_ahead(map(fails, range(5)))),
        lambda: list(several_ahead(lambda _: ((fails(number), True) for number in range(5)), 2)),
        lambda: list(parallel(fails, range(5), 2)),
        fails_behind,
    ],
    ids=["one_ahead", "several_ahead", "in_threads", "one_behind"],
)
def test_what_is_held_where_an_error_comes_is_freed_once_it_was_handled(meet: Callable[[], object]) -> None:
    """Not when garbage is collected: the next task of a worker gets its memory (C38)."""
    held: list[weakref.ref[Event]] = []

    def hold() -> None:
        much = Event()
        held.append(weakref.ref(much))
        meet()

    gc.disable()
    try:
        with pytest.raises(KeyError, match="the second"):
            hold()
        assert held[0]() is None
    finally:
        gc.enable()
