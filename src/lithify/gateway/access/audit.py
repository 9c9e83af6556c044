"""The audit log: a line of JSON for each request that changes something, or is refused to its sender.

    {"time": "2026-11-29T10:00:00.000Z", "who": "alice", "token": "3f9c1a2b4d5e6f70", "address": "10.0.0.7",
     "what": "compact", "topic": "shop/orders", "status": 200, "code": null, "run": "5f2c…", "version": 12}

`code` names the error. Texts of a client are cut, and JSON escapes what could begin another line. No header, body
or query is in it.
"""

from __future__ import annotations

import errno
import json
import os
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from lithify.errors.redaction import redacted
from lithify.gateway.access.callers import Scope
from lithify.model.settings.units import format_time

TEXT_CHARACTERS = 300
"""A longer value is cut, so that a line has at most some 4 KiB."""
FACTS = ("what", "topic", "partition", "code", "run", "version", "job")
"""What an application may note of a request."""
PENDING_AT_MOST = 1_000
"""Lines that could not be written yet."""
_KEY = "lithify.audit"


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One line. `who` is null if no token was right, `status` if the gateway ended before it answered."""

    time_ms: int
    who: str | None
    token: str | None
    address: str
    status: int | None
    facts: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        facts = {name: _cut(value) for name, value in self.facts.items() if name in FACTS}
        head = {"time": format_time(self.time_ms), "who": self.who, "token": self.token, "address": self.address}
        last = {"what": None, "topic": None} | facts | {"status": self.status, "code": facts.get("code")}
        return {**head, **last}


def _cut(value: Any) -> Any:
    if isinstance(value, int) or value is None:
        return value
    text = redacted(str(value))
    return text if len(text) <= TEXT_CHARACTERS else f"{text[:TEXT_CHARACTERS]}…"


def begin_notes(scope: Scope) -> None:
    """Has notes of the application come here, even if it passes on a copy of the scope."""
    scope[_KEY] = {}


def note(scope: Scope, **facts: Any) -> None:
    """Has the line of this request say more, by names in `FACTS`."""
    scope.setdefault(_KEY, {}).update(facts)


def noted(scope: Scope) -> Mapping[str, Any]:
    facts: Mapping[str, Any] = scope.get(_KEY, {})
    return facts


class Audit(Protocol):
    """Where lines go."""

    def check(self) -> None:
        """Raises `OSError` if no line can be written now: then nothing is to be changed."""

    def write(self, entry: AuditEntry) -> None:
        """Writes a line, or keeps it until it can be written. Raises nothing."""


@dataclass(frozen=True, slots=True)
class ToldAudit:
    """Lines among the events of the gateway."""

    tell: Callable[[AuditEntry], None]

    def check(self) -> None:
        """Events are not asked for."""

    def write(self, entry: AuditEntry) -> None:
        self.tell(entry)


class AuditFile:
    """Lines at the end of a file, which is readable by its owner only if it is created.

    It is opened again once it has been moved away, so that `logrotate` needs no signal. After a failed write, as on a
    full disk, the line is kept, and `check` raises until it is written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None
        self._broken = False
        self._pending: deque[bytes] = deque(maxlen=PENDING_AT_MOST)

    def check(self) -> None:
        self._open()
        while self._pending:
            self._append(self._pending[0])
            self._pending.popleft()

    def write(self, entry: AuditEntry) -> None:
        self._pending.append(json.dumps(entry.to_json()).encode() + b"\n")
        with suppress(OSError):  # the next request that changes something is refused
            self.check()

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _open(self) -> None:
        if self._file is not None and not self._is_moved(self._file):
            return
        self.close()
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK  # a pipe may have no reader
        self._file = os.open(self._path, flags, 0o600)

    def _is_moved(self, file: int) -> bool:
        try:
            there = self._path.stat()
        except FileNotFoundError:
            return True
        here = os.fstat(file)
        return (there.st_dev, there.st_ino) != (here.st_dev, here.st_ino)

    def _append(self, line: bytes) -> None:
        """One write for a line, so that the lines of several processes do not mix."""
        assert self._file is not None
        data = b"\n" + line if self._broken else line
        written = os.write(self._file, data)
        if written < len(data):
            self._broken = True
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path))
        self._broken = False
