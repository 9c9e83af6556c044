"""What a process learns of its leases and of the others' leases: results of `coordination/leases/keeper.py`."""

from __future__ import annotations

from dataclasses import dataclass

from lithify.errors import CoordinationError, RefusedError


@dataclass(frozen=True, slots=True)
class Renewal:
    """The result of a renewal."""

    lost: frozenset[str] = frozenset()
    """Leases that this renewal found lost."""
    replaced_by: str | None = None
    """Another owner that now holds the lease of this cleaner's id; this one must end."""
    error: CoordinationError | None = None
    """Why the database could not be reached."""


@dataclass(frozen=True, slots=True)
class Registered:
    """This cleaner holds the lease of its id."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Another owner holds the lease of the id and may have died: register again, after `left_ms` at the latest."""

    left_ms: int


@dataclass(frozen=True, slots=True)
class Refused:
    """A running cleaner holds the lease of the id."""

    error: RefusedError


Registration = Registered | Waiting | Refused


@dataclass(frozen=True, slots=True)
class Watched:
    """A lease in the database as this process sees it."""

    owner: str
    left_ms: int
    """Until another process may take it; 0 or less: now."""
    renewed: bool
    """Whether this process has seen a renewal, so that its owner was alive a lease time ago at most."""
