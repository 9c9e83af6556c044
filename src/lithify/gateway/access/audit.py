"""The audit log: a line of JSON for each request that changes something, or is refused to its sender.

Work that outlives its request gets one more line at its end. A gateway begins with a line about its start.

    {"time": "2026-11-29T10:00:00.000Z", "who": "alice", "token": "3f9c1a2b4d5e6f70", "address": "10.0.0.7",
     "what": "compact", "topic": "shop/orders", "status": 200, "code": null, "run": "5f2c…", "version": 12}

`code` names the error. Texts of a client are cut, and JSON escapes what could begin another line. No header, body
or query is in it.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any, Protocol

from lithify.errors.redaction import redacted
from lithify.gateway.access.callers import Scope
from lithify.model.settings.units import format_time

TEXT_CHARACTERS = 300
"""A longer value is cut, so that a line has at most some 4 KiB."""
FACTS = ("what", "topic", "partition", "code", "run", "version", "job", "state", "duration_ms")
"""What an application may note of a request."""
REFUSALS_PENDING = 1_000
"""With more lines that could not be written yet, one of a refused request is dropped: it changed nothing."""
FREE_BYTES = 2**20
"""Of the disk, else nothing is changed: the lines of all requests that are under way fit in."""
_KEY, _LATER = "lithify.audit", "lithify.audit.later"


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One line. `who` is null if no token was right; `status` at the end of a job, and if no answer was sent."""

    time_ms: int
    who: str | None
    token: str | None
    address: str
    status: int | None
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_refusal(self) -> bool:
        """Whether nothing was changed."""
        return self.status is not None and (400 <= self.status < 500 or self.status == 503)

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


def put_later(scope: Scope, write: Callable[..., None]) -> None:
    """Has `later` write one more line of this request, whose facts are its arguments."""
    scope[_LATER] = write


def drop_later(scope: Scope) -> None:
    """The request is over: else it and its scope would hold each other until a full garbage collection."""
    del scope[_LATER]


def later(scope: Scope) -> Callable[..., None]:
    """Writes one more line of this request, from any thread, by names in `FACTS`: at the end of what it began."""
    write: Callable[..., None] = scope[_LATER]
    return write


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
    full disk, the line is kept, and `check` raises until it is written. For several threads.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.told: Callable[[OSError | None], None] = lambda _error: None
        """Gets why lines cannot be written, and None whenever a check finds that they can."""
        self._file: int | None = None
        self._broken = False
        self._pending: deque[bytes] = deque()
        self._lock = Lock()

    def check(self) -> None:
        with self._lock, self._telling():
            _check_free(self._flushed())
            self.told(None)

    def write(self, entry: AuditEntry) -> None:
        with self._lock:
            if entry.is_refusal and len(self._pending) >= REFUSALS_PENDING:
                return
            self._pending.append(json.dumps(entry.to_json()).encode() + b"\n")
            with suppress(OSError), self._telling():  # the next request that changes something is refused
                self._flushed()

    def close(self) -> tuple[str, ...]:
        """Closes it; returns the lines that could not be written."""
        with self._lock:
            with suppress(OSError):
                self._flushed()
            self._close()
            return tuple(line.decode().rstrip() for line in self._pending)

    @contextmanager
    def _telling(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.told(error)
            raise

    def _flushed(self) -> int:
        """The open file, with all lines."""
        file = self._opened()
        while self._pending:
            self._append(file, self._pending[0])
            self._pending.popleft()
        return file

    def _close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _opened(self) -> int:
        if self._file is None or self._is_moved(self._file):
            self._close()
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK  # a pipe may have no reader
            self._file = os.open(self._path, flags, 0o600)
        return self._file

    def _is_moved(self, file: int) -> bool:
        try:
            there = self._path.stat()
        except FileNotFoundError:
            return True
        here = os.fstat(file)
        return (there.st_dev, there.st_ino) != (here.st_dev, here.st_ino)

    def _append(self, file: int, line: bytes) -> None:
        """One write for a line, so that the lines of several processes do not mix."""
        data = b"\n" + line if self._broken else line
        written = os.write(file, data)
        if written < len(data):
            self._broken = True
            raise _full()
        self._broken = False


def _check_free(file: int) -> None:
    """Raises `OSError` where the disk of a file is nearly full, before the first line that finds no room."""
    if stat.S_ISREG(os.fstat(file).st_mode):
        disk = os.fstatvfs(file)
        if disk.f_blocks > 0 and disk.f_bavail * disk.f_frsize < FREE_BYTES:
            raise _full()


def _full() -> OSError:
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
