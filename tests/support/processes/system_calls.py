"""Stops a piece of work at any of the calls with which it touches the world: files, folders, databases, connections.

    work ──► open ──► rename ──► connect ──► remove ──► ...
                        ▲ before the N-th: something else runs to its end, or the work dies here

Python itself reports these calls (audit events), so the code under test is what runs for real, all of it.
"""

from __future__ import annotations

import pkgutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from threading import get_ident
from typing import ClassVar

import lithify.columnar
import lithify.store

for package in (lithify.columnar, lithify.store):  # imported within a piece of work they would be steps of it
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        import_module(module.name)

EVENTS = frozenset(
    {
        "open", "os.remove", "os.rename", "os.rmdir", "os.mkdir", "shutil.rmtree", "sqlite3.connect",
        "http.client.send",
    }
)  # fmt: skip


class KilledError(BaseException):
    """The program ended here."""


def dies() -> None:
    raise KilledError


@dataclass(slots=True)
class Stop:
    """Within it, `act` runs once, before the call number `at` of this thread, from 0 on; `passed` counts calls."""

    at: int
    act: Callable[[], object]
    passed: int = 0
    thread: int = field(default_factory=get_ident)
    current: ClassVar[Stop | None] = None

    def __enter__(self) -> Stop:
        if not _installed:
            sys.addaudithook(_noticed)
            _installed.append(True)
        Stop.current = self
        return self

    def __exit__(self, *_: object) -> None:
        Stop.current = None

    @property
    def reached(self) -> bool:
        return self.passed > self.at


_installed: list[bool] = []


def _noticed(event: str, _arguments: object) -> None:
    stop = Stop.current
    if stop is None or event not in EVENTS or get_ident() != stop.thread:
        return
    stop.passed += 1
    if stop.passed == stop.at + 1:
        Stop.current = None  # what runs meanwhile is not stopped itself
        try:
            stop.act()
        finally:
            Stop.current = stop
