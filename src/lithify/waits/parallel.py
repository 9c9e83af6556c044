"""Many small waits at once, with a bound on how many run and on how many results are held in memory.

items     a b c d e f g h ...
at once   [a b c] d e f              at most `ahead` times as many are submitted and not yet taken
results   a b c d e f g h ...        in the order of the items
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

AHEAD = 4

Item = TypeVar("Item")
Result = TypeVar("Result")


def parallel(
    function: Callable[[Item], Result], items: Iterable[Item], at_once: int, *, ahead: int = AHEAD
) -> Iterator[Result]:
    """`map` over `at_once` threads, results in the order of the items; with one at once it is `map`.

    An exception is raised at its item's turn, after the running calls have returned; no further ones start.
    """
    if at_once == 1:
        yield from map(function, items)
        return
    begun: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(at_once) as pool:
        try:
            for item in items:
                begun.append(pool.submit(function, item))
                if len(begun) == ahead * at_once:
                    yield begun.popleft().result()
            while begun:
                yield begun.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)


def for_each(function: Callable[[Item], None], items: Iterable[Item], at_once: int) -> None:
    """`parallel` for calls without a result; raises the first error in the order of the items."""
    for _ in parallel(function, items, at_once):
        pass
