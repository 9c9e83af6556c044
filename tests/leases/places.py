"""Places where leases can be, and one whose trouble a test makes up."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from lithify.coordination.leases.sql_coordination import open_coordination
from lithify.errors import CoordinationError
from lithify.model.cleaner_note import CleanerNote
from lithify.ports.leases import Coordination, Lease

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class LeasePlace:
    """`opened` is as another process would open it; `url` is None where no other process can."""

    url: str | None
    coordination: Coordination

    def opened(self) -> Coordination:
        return self.coordination if self.url is None else open_coordination(self.url)


def nothing(_operation: str) -> None:
    """What goes on around an operation when all is well."""


class TroubledCoordination:
    """Another one, with `before` and `after` called around each operation: they may fail, take time, or do things."""

    def __init__(self, inner: Coordination) -> None:
        self._inner = inner
        self.before: Callable[[str], None] = nothing
        self.after: Callable[[str], None] = nothing

    @property
    def shared(self) -> bool:
        return self._inner.shared

    def leases(self, prefix: str = "") -> tuple[Lease, ...]:
        return self._around("leases", lambda: self._inner.leases(prefix))

    def take(self, leases: Sequence[Lease], seen: Mapping[str, Lease]) -> frozenset[str]:
        return self._around("take", lambda: self._inner.take(leases, seen))

    def renew(self, owner: str, beats: int) -> frozenset[str]:
        return self._around("renew", lambda: self._inner.renew(owner, beats))

    def release(self, owner: str, names: Collection[str]) -> None:
        return self._around("release", lambda: self._inner.release(owner, names))

    def remove(self, seen: Sequence[Lease]) -> None:
        return self._around("remove", lambda: self._inner.remove(seen))

    def put_note(self, note: CleanerNote) -> None:
        return self._around("put_note", lambda: self._inner.put_note(note))

    def notes(self) -> tuple[CleanerNote, ...]:
        return self._around("notes", self._inner.notes)

    def drop_note(self, cleaner: str) -> None:
        return self._around("drop_note", lambda: self._inner.drop_note(cleaner))

    def _around(self, operation: str, work: Callable[[], T]) -> T:
        self.before(operation)
        result = work()
        self.after(operation)
        return result

    def mend(self) -> None:
        self.before = self.after = nothing


def down(_operation: str) -> None:
    """A database that is not there; as `after`, one whose answers get lost."""
    raise CoordinationError("the database is down")
