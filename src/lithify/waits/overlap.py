"""Input and output beside the work on them, one step away from it, so that memory holds one step more.

one_ahead    reads  b │ c │ d        while a │ b │ c is worked on
one_behind   writes a │ b │ c        while b │ c │ d is worked on
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Final, TypeVar

Item = TypeVar("Item")

_END: Final = object()


def one_ahead(items: Iterable[Item]) -> Iterator[Item]:
    """The same items; each is made on another thread while the caller works on the one before.

    An exception comes at its item's turn. `items` is closed, if it can be, when this is.
    """
    source = iter(items)
    with ThreadPoolExecutor(1) as thread:
        coming: Future[object] = thread.submit(next, source, _END)
        try:
            while (item := coming.result()) is not _END:
                coming = thread.submit(next, source, _END)
                yield item  # type: ignore[misc]
        finally:
            if close := getattr(source, "close", None):
                thread.submit(close).result()


@contextmanager
def one_behind(function: Callable[[Item], None]) -> Iterator[Callable[[Item], None]]:
    """The same function, whose calls run one after the other on another thread, at most one of them unfinished.

    What a call raises comes out of the next one, or out of the end of the block unless that raises itself.
    """
    with ThreadPoolExecutor(1) as thread:
        begun: Future[None] | None = None

        def call(item: Item) -> None:
            nonlocal begun
            if begun is not None:
                begun.result()
            begun = thread.submit(function, item)

        yield call
        if begun is not None:
            begun.result()
