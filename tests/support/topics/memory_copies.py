"""Copies of what is in memory: of stores, files and clocks, which change, while frozen values are shared."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable
from io import BytesIO
from types import FunctionType
from typing import Any, TypeVar

from lithify.model.record import Record
from lithify.ports.store import Warehouse
from support.topics.replicas import Pair

Copied = TypeVar("Copied")

_HOLDERS = (Warehouse, Pair)
"""Frozen, but what they hold is not."""
_LOCKS: dict[type, Callable[[], Any]] = {type(make()): make for make in (threading.Lock, threading.RLock)}


def copies_of(original: Copied) -> Callable[[], Copied]:
    """A function that returns one new copy of the original, as it is now, for each call."""
    shared: list[Any] = []
    written = BytesIO()
    _Writer(written, shared).dump(original)
    content = written.getvalue()

    def copied() -> Copied:
        made: Copied = _Reader(BytesIO(content), shared).load()
        return made

    return copied


class _Writer(pickle.Pickler):
    def __init__(self, to: BytesIO, shared: list[Any]) -> None:
        super().__init__(to)
        self._shared = shared

    def persistent_id(self, value: Any) -> int | None:
        """Its place among the shared values, if it is one of them."""
        if isinstance(value, _HOLDERS) or not _is_frozen(value):
            return None
        self._shared.append(value)
        return len(self._shared) - 1

    def reducer_override(self, value: Any) -> Any:
        """A lock becomes a new one."""
        make = _LOCKS.get(type(value))
        return NotImplemented if make is None else (make, ())


def _is_frozen(value: Any) -> bool:
    if isinstance(value, tuple):
        return isinstance(value, Record) or (bool(value) and isinstance(value[0], Record))
    made_by = getattr(type(value), "__dataclass_params__", None)
    return isinstance(value, FunctionType) or (made_by is not None and made_by.frozen)


class _Reader(pickle.Unpickler):
    def __init__(self, content: BytesIO, shared: list[Any]) -> None:
        super().__init__(content)
        self._shared = shared

    def persistent_load(self, place: int) -> Any:
        return self._shared[place]
