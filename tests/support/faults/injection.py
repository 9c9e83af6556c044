"""Ports that fail on purpose: the N-th call fails, loses its acknowledgement, or kills the process.

service ──► FaultyPort ──► real store, files or engine
               │
            Injector: counts the calls of all ports of a run; the N-th is the one
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from lithify.errors import WarehouseError
from lithify.ports.store import CommitUnknownError, Warehouse
from support.faults.port_calls import NEVER_STRUCK, call_name


class CrashError(BaseException):
    """The process died here. A BaseException: no handler of the product may survive it."""


class Kind(Enum):
    """What becomes of the call."""

    FAILS = "fails before anything happens"
    LOSES_REQUEST = "never arrives, and the caller cannot tell"
    LOSES_ANSWER = "happens, but its answer is lost"
    CRASHES_BEFORE = "the process dies before it"
    CRASHES_AFTER = "the process dies after it"


@dataclass(slots=True)
class Injector:
    """Counts calls and strikes at the `at`-th one, counted from 1."""

    at: int
    kind: Kind
    calls: list[str] = field(default_factory=list)

    @property
    def struck(self) -> bool:
        return len(self.calls) >= self.at

    def call(self, name: str, action: Callable[[], Any]) -> Any:
        self.calls.append(name)
        if len(self.calls) != self.at:
            return action()
        lost = CommitUnknownError(f"injected: {name}") if name == "commit" else WarehouseError(f"injected: {name}")
        match self.kind:
            case Kind.FAILS:
                raise WarehouseError(f"injected: {name}")
            case Kind.LOSES_REQUEST:
                raise lost
            case Kind.LOSES_ANSWER:
                action()
                raise lost
            case Kind.CRASHES_BEFORE:
                raise CrashError(name)
            case Kind.CRASHES_AFTER:
                action()
                raise CrashError(name)


class FaultyPort:
    """Stands in for a port and passes every call through the injector."""

    def __init__(self, real: Any, injector: Injector) -> None:
        self._real = real
        self._injector = injector

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._real, name)
        if not callable(found) or name in NEVER_STRUCK:
            return found

        def through(*args: Any, **kwargs: Any) -> Any:
            return self._injector.call(call_name(name, args), lambda: found(*args, **kwargs))

        return through


class FaultyEngine:
    """An engine whose opening and both of whose steps can be struck."""

    def __init__(self, real: Any, injector: Injector) -> None:
        self._real = real
        self._injector = injector

    def open_round(self, *args: Any) -> Any:
        context = self._injector.call("open_round", lambda: self._real.open_round(*args))
        return _FaultyRoundContext(context, self._injector)


class _FaultyRoundContext:
    def __init__(self, real: Any, injector: Injector) -> None:
        self._real = real
        self._injector = injector

    def __enter__(self) -> Any:
        return FaultyPort(self._real.__enter__(), self._injector)

    def __exit__(self, *error: Any) -> Any:
        return self._real.__exit__(*error)


def faulty(warehouse: Warehouse, injector: Injector) -> Warehouse:
    """The same warehouse behind ports that the injector can strike."""
    return Warehouse(FaultyPort(warehouse.store, injector), FaultyPort(warehouse.files, injector), warehouse.clock)
