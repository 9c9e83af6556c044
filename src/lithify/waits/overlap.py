"""Input and output beside the work on them, one step away from it, so that memory holds one step more.

one_ahead      reads  b │ c │ d        while a │ b │ c is worked on
several_ahead  reads  b and c │ d and e, each on a thread of its own
one_behind     writes a │ b │ c        while b │ c │ d is worked on
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from itertools import cycle
from typing import Final, TypeVar

Item = TypeVar("Item")

_END: Final = object()


def one_ahead(items: Iterable[Item]) -> Generator[Item, None, None]:
    """The same items; each is made on another thread while the caller works on the one before.

    An exception comes at its item's turn. `items` is closed, if it can be, when this is. Items are not kept once they
    are given out.
    """
    source = iter(items)
    with ThreadPoolExecutor(1) as thread:
        coming: Future[object] = thread.submit(next, source, _END)
        try:
            while (made := [coming.result()])[0] is not _END:
                coming = thread.submit(next, source, _END)
                yield made.pop()  # type: ignore[misc]
        finally:
            del coming  # an error in it holds this frame: it and all that met it would stay until they are collected
            if close := getattr(source, "close", None):
                thread.submit(close).result()


def several_ahead(items_of: Callable[[int], Iterable[tuple[Item, bool]]], threads: int) -> Generator[Item, None, None]:
    """The items of `items_of(0)`, `items_of(1)` and so on in turns, each's made `one_ahead` on its own thread.

    With each item comes whether it is the last of its turn. Each has as many turns as the next, or one more. Ends when
    all have, so that an exception of any comes out.
    """
    with ExitStack() as open_ones:
        sources = [open_ones.enter_context(closing(one_ahead(items_of(number)))) for number in range(threads)]
        ended = 0
        for source in cycle(sources):
            turn_ends = False
            while not turn_ends and (made := next(source, None)) is not None:
                given, turn_ends = [made[0]], made[1]
                del made  # so that no reference stays here while the caller works on it
                yield given.pop()
            ended += not turn_ends
            if ended == threads:
                return


@contextmanager
def one_behind(function: Callable[[Item], None]) -> Iterator[Callable[[Item], None]]:
    """The same function, whose calls run one after the other on another thread, at most one of them unfinished.

    What a call raises is raised by the next one, or at the end of the block unless that raises itself.
    """
    with ThreadPoolExecutor(1) as thread:
        begun: deque[Future[None]] = deque()

        def call(item: Item) -> None:
            if begun:
                begun.popleft().result()
            begun.append(thread.submit(function, item))

        yield call
        if begun:
            begun.popleft().result()
