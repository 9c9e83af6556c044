"""JVMs for BookKeeper that are kept for a while after their work, since a start takes seconds.

    lent_jvm() ─► one that is kept, or a new one ─► work done ─► kept for KEPT_S ─► ended
                                                 └► work failed or was left unfinished ─► ended at once

They belong to the process that started them: workers of Spark run many tasks, one after the other.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock, Timer
from typing import Final

from lithify.pulsar.bookkeeper.ledger_jvm import JavaParts, LedgerJvm

KEPT_S: Final = 120.0
"""So that a program whose rounds are a minute apart starts one; it holds 200 MB meanwhile."""
KEPT_AT_MOST: Final = 2
"""In one process: a task reads and writes at once."""


@dataclass(frozen=True, slots=True)
class JvmKind:
    """JVMs of one kind can stand in for each other. `process` is the id of the one that may ask them."""

    process: int
    parts: JavaParts
    metadata_uri: str
    ledgers_path: str
    answer_s: float


@dataclass(frozen=True, slots=True, eq=False)
class _Kept:
    kind: JvmKind
    jvm: LedgerJvm
    end: Timer


_lock = Lock()
_kept: list[_Kept] = []


@contextmanager
def lent_jvm(parts: JavaParts, metadata_uri: str, ledgers_path: str, answer_s: float) -> Iterator[LedgerJvm]:
    """A JVM for one piece of work. Raises what its start raises.

    A piece of work that does not read all responses to its requests must end with an exception.
    """
    kind = JvmKind(os.getpid(), parts, metadata_uri, ledgers_path, answer_s)
    jvm = _taken(kind) or LedgerJvm(parts, metadata_uri, ledgers_path, answer_s)
    try:
        yield jvm
    except BaseException:
        jvm.end()
        raise
    _keep(kind, jvm)


def _taken(kind: JvmKind) -> LedgerJvm | None:
    while True:
        with _lock:
            kept = next((one for one in reversed(_kept) if one.kind == kind), None)
            if kept is None:
                return None
            _kept.remove(kept)
        kept.end.cancel()
        if kept.jvm.is_usable:
            return kept.jvm
        kept.jvm.end()


def _keep(kind: JvmKind, jvm: LedgerJvm) -> None:
    kept = _Kept(kind, jvm, Timer(KEPT_S, lambda: _end(kept)))
    with _lock:
        keeps = jvm.is_usable and len(_kept) < KEPT_AT_MOST
        if keeps:
            _kept.append(kept)
    if keeps:
        kept.end.daemon = True
        kept.end.start()
    else:
        jvm.end()


def _end(kept: _Kept) -> None:
    with _lock:
        if kept not in _kept:
            return  # it works again
        _kept.remove(kept)
    kept.jvm.end()
