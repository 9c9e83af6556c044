"""What the runs of a job print: the last lines of both streams, as the page shows them.

    stdout   a JSON object a line, an event or a report        the last one is the job's report
    stderr   notes, errors as JSON objects                     the last one with a code and an exit code is its error
             whatever a library prints                         shown as text

Lines are kept as they come, and read only when they are asked for: a process that prints without end costs little.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable
from threading import Lock
from typing import Any, cast

from lithify.errors.redaction import error_text, redacted_json
from lithify.reports.jobs import printed_object

KEPT_LINES = 100
LINE_BYTES = 8_192
"""Of a longer line the beginning is kept, as text."""
TEXT_CHARACTERS = 500
REPORT_CHARACTERS = 4_000
"""Of a longer report the texts and numbers are kept that are not in lists."""
_AT_ONCE = 65_536
_PAUSE_S = 0.01
"""After a full read: at most some 6 MiB a second are read of one process."""


class JobOutput:
    """The last lines of a job, over its runs. For several threads."""

    def __init__(self, sleep: Callable[[float], None]) -> None:
        self._sleep = sleep
        self._lock = Lock()
        self._lines: deque[bytes] = deque(maxlen=KEPT_LINES)
        self._report: bytes | None = None
        self._error: bytes | None = None

    def begin(self) -> None:
        """A new run begins: the report and the error of the one before are not its own."""
        with self._lock:
            self._report = self._error = None

    def follow(self, read: Callable[[int], bytes], *, errors: bool) -> None:
        """Reads a stream to its end."""
        rest, skips = b"", False
        while data := read(_AT_ONCE):
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                if not skips:
                    self._take(line, errors)
                skips = False
            if len(rest) > LINE_BYTES:
                if not skips:
                    self._take(rest, errors)
                rest, skips = b"", True
            if len(data) == _AT_ONCE:
                self._sleep(_PAUSE_S)
        if rest and not skips:
            self._take(rest, errors)

    def _take(self, line: bytes, errors: bool) -> None:
        if not line.strip():
            return
        with self._lock:
            self._lines.append(line[:LINE_BYTES])
            if not line.startswith(b"{"):
                return
            if not errors:
                self._report = line[:LINE_BYTES]
            elif b'"exit_code"' in line:
                self._error = line[:LINE_BYTES]

    def events(self) -> list[dict[str, Any]]:
        """The last lines, the oldest first: JSON objects as they are, anything else as `text`. Without secrets."""
        with self._lock:
            lines = list(self._lines)
        return [_object(line) or {"text": error_text(_text(line), TEXT_CHARACTERS)} for line in lines]

    def report(self) -> str | None:
        """The last object of stdout as JSON, bounded."""
        value = None if (line := self._report) is None else _object(line)
        if value is None:
            return None
        text = json.dumps(value)
        if len(text) > REPORT_CHARACTERS:
            value = {name: one for name, one in value.items() if not isinstance(one, dict | list)}
            text = json.dumps(value)
        return text if len(text) <= REPORT_CHARACTERS else None

    def error(self) -> tuple[str | None, str | None]:
        """The last error of stderr, and its code."""
        value = (None if (line := self._error) is None else _object(line)) or {}
        message, code = value.get("message"), value.get("code")
        hint = value.get("hint")
        if not isinstance(message, str):
            return None, None
        text = f"{message} ({hint})" if isinstance(hint, str) and hint else message
        return _storable(error_text(text)), _storable(code[:100]) if isinstance(code, str) else None


def _object(line: bytes) -> dict[str, Any] | None:
    """The JSON object of a line, without secrets; None if it is anything else."""
    if not line.startswith(b"{"):
        return None
    value = printed_object(line)
    try:
        return None if value is None else cast("dict[str, Any]", redacted_json(value))
    except RecursionError:
        return None


def _storable(text: str) -> str:
    """As every database takes it: without NUL, and without halves of characters."""
    return text.encode("utf-8", "replace").decode().replace("\0", "�")


def _text(line: bytes) -> str:
    return line.decode("utf-8", "replace")
