"""The collector of reference cycles is on again, whatever threads did."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from itertools import permutations
from threading import Thread
from types import FrameType

import pytest

from lithify.service.snapshot.collector import collector_at_rest

ORDERS = sorted({tuple(order) for order in permutations("aabbcc")})
"""Three threads begin and end in some order, as their names come first and again."""


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    yield
    gc.enable()


@pytest.mark.parametrize("switch", [gc.enable, gc.disable])
def test_it_is_as_before_once_all_have_ended(switch: Callable[[], None]) -> None:
    for order in ORDERS:
        switch()
        before = gc.isenabled()
        resting: dict[str, AbstractContextManager[None]] = {}
        for thread in order:
            if thread in resting:
                resting.pop(thread).__exit__(None, None, None)
            else:
                resting[thread] = collector_at_rest()
                resting[thread].__enter__()
                assert not gc.isenabled()
        assert gc.isenabled() is before, order


def test_one_that_ends_while_another_begins_is_not_overruled(monkeypatch: pytest.MonkeyPatch) -> None:
    first, asked = collector_at_rest(), gc.isenabled
    first.__enter__()
    ends = Thread(target=first.__exit__, args=(None, None, None))

    def ended_after_the_question() -> bool:
        was_on = asked()
        ends.start()
        ends.join(0.2)
        return was_on

    monkeypatch.setattr(gc, "isenabled", ended_after_the_question)
    with collector_at_rest():
        ends.join()
    assert asked()


@pytest.mark.parametrize("behind", range(1, 10))
def test_it_is_on_after_an_interrupt_behind_any_call(behind: int) -> None:
    """Python raises the interrupt of a signal where a call has returned, also within the switch itself."""
    calls = 0

    def interrupted(_frame: FrameType, event: str, _called: object) -> None:
        nonlocal calls
        calls += event == "c_return"
        if event == "c_return" and calls == behind:
            raise KeyboardInterrupt

    with suppress(KeyboardInterrupt):
        sys.setprofile(interrupted)
        with collector_at_rest():
            pass
    sys.setprofile(None)
    assert gc.isenabled()
    assert calls < 9, "the last has no interrupt"
