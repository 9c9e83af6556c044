"""Ports at whose N-th call something happens: it fails, the process dies, or others work while it is paused.

service ──► FaultyPort ──► real store, files or engine
               │
            Injector   counts the calls of all ports of a run; the N-th fails, loses its answer or kills the process
            Freezer    likewise; right before the N-th, another service runs to its end, days later

A pause is what a suspended laptop, a frozen virtual machine or a long garbage collection makes: time passes every
grace period and lease, others work, and then the first one continues as if nothing had happened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from lithify.errors import LithifyError, WarehouseError
from lithify.ports.store import CommitUnknownError, Warehouse

NEVER_STRUCK = ("commit_lock", "edit_lock", "document_path")
"""The lock is for progress only, and a path is put together."""

LONG_MS = 10 * 86_400_000
"""Longer than every grace period, lease and retention of the topics that these tests make."""

Verb = Callable[[Warehouse], object]


OUTAGE_CALLS = 4


class CrashError(BaseException):
    """The process died here. A BaseException: no handler of the product may survive it."""


class Kind(Enum):
    """What becomes of the call."""

    FAILS = "fails before anything happens"
    LOSES_REQUEST = "never arrives, and the caller cannot tell"
    LOSES_ANSWER = "happens, but its answer is lost"
    CRASHES_AFTER = "the process dies after it, and so before the next one"


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
            case Kind.CRASHES_AFTER:
                action()
                raise CrashError(name)


@dataclass(slots=True)
class Freezer:
    """Counts port calls; right before the `at`-th one, counted from 1, `meanwhile` happens."""

    at: int
    meanwhile: Callable[[], object]
    calls: list[str] = field(default_factory=list)

    @property
    def reached(self) -> bool:
        return len(self.calls) >= self.at

    def call(self, name: str, action: Callable[[], Any]) -> Any:
        """Iterators are run to their end, so that what they read is read here."""
        self.calls.append(name)
        if len(self.calls) == self.at:
            self.meanwhile()
        answer = action()
        return iter(list(answer)) if isinstance(answer, Iterator) else answer


@dataclass(slots=True)
class Outage:
    """Counts port calls; the `at`-th one, counted from 1, and some after it find that the catalog is away."""

    at: int
    calls: list[str] = field(default_factory=list)

    @property
    def reached(self) -> bool:
        return len(self.calls) >= self.at

    def call(self, name: str, action: Callable[[], Any]) -> Any:
        self.calls.append(name)
        if self.at <= len(self.calls) < self.at + OUTAGE_CALLS:
            error = WarehouseError("catalog prod cannot be reached: Connection refused")
            error.is_outage = True
            raise error
        return action()


class FaultyPort:
    """Stands in for a port and passes every call through an injector or a freezer."""

    def __init__(self, real: Any, striker: Injector | Freezer | Outage) -> None:
        self._real = real
        self._striker = striker

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._real, name)
        if not callable(found) or name in NEVER_STRUCK:
            return found

        def through(*args: Any, **kwargs: Any) -> Any:
            return self._striker.call(call_name(name, args), lambda: found(*args, **kwargs))

        return through


class FaultyEngine:
    """An engine whose opening and both of whose steps can be struck."""

    def __init__(self, real: Any, striker: Injector | Freezer | Outage) -> None:
        self._real = real
        self._striker = striker

    @contextmanager
    def open_round(self, *args: Any) -> Iterator[Any]:
        with self._striker.call("open_round", lambda: self._real.open_round(*args)) as round_:
            yield FaultyPort(round_, self._striker)


def faulty(warehouse: Warehouse, striker: Injector | Freezer | Outage) -> Warehouse:
    """The same warehouse behind ports that can be struck."""
    store, files, groups = (FaultyPort(p, striker) for p in (warehouse.store, warehouse.files, warehouse.groups))
    return Warehouse(store, files, warehouse.clock, groups)


def call_name(method: str, given: tuple[object, ...]) -> str:
    """The name of its method; of a document, with its kind."""
    return f"{method} {given[1]}" if method in ("get_document", "put_document") else method


def outcome(verb: Verb, warehouse: Warehouse) -> LithifyError | None:
    """The result of a service: an error, or success."""
    try:
        verb(warehouse)
    except LithifyError as error:
        return error
    return None
