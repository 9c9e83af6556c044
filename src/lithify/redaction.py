"""Texts without secrets, for errors and whatever is printed.

    known      values of the configuration in use, as `keep_secret` was told them: also where a library repeats them
    patterns   passwords of URLs, secrets among parameters and headers: also those of a configuration of others

What is short would hide half of a text: below `SHORT` characters only whole words are hidden, below `LEAST` nothing.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from threading import Lock
from urllib.parse import quote, quote_plus, unquote

HIDDEN = "***"
SHORT, LEAST = 8, 4
KNOWN = 1000
"""Secrets that are remembered in a process; with more of them the oldest are forgotten."""

_UP_TO_AT = re.compile(r"(?<!\S)\S+@")
_PASSWORD = re.compile(r"(://[^\s/:@]*):(?!PASSWORD@).*@")
"""The password of a URL, any characters up to the last '@' of the word; our own hints have that very word there.

Sought in such words only: a text of thousands of URLs without blanks and '@' would take the square of its length.
"""

_PARAMETER = re.compile(
    r"""((?:^|[?&;,\s({\[])['"]?[\w.-]{0,40}
         (?:password|passwd|secret|token|credential|signature|api_?key|access_?key|account_?key|\b(?:sig|pwd)) \s?=\s?)
        (?!['"]?(?:\$\{|\.\.\.|PASSWORD\b))
        (?:"(?:[^"\\]|\\.)*(?:"|\\?\Z)|'(?:[^'\\]|\\.)*(?:'|\\?\Z)|[^\s&#'"]+)""",
    re.I | re.X | re.S,
)
"""A secret among the parameters of a URL, a connection string or a login, as services and databases take it.

A quoted one has blanks and escaped quotes, and ends with the text if that was cut."""

_BEARER = re.compile(r"\b(Bearer|Basic)\s+(?=[^\s'\"]*\d)[\w.~+/=-]{8,}", re.I)


class _Known:
    """The secrets that were told; safe to use from several threads, and a text needs no lock."""

    def __init__(self) -> None:
        self._values: dict[str, None] = {}
        """Never changed: replaced."""
        self._sought: tuple[dict[str, None], re.Pattern[str] | None] = self._values, None
        """The pattern of some values: made for a text, not for each value, as it takes as long as there are values."""
        self._lock = Lock()

    def add(self, value: str) -> None:
        with self._lock:
            if value in self._values or len(value) < LEAST:
                return
            self._values = dict.fromkeys([*self._values, value][-KNOWN:])

    def hidden(self, text: str) -> str:
        of, pattern = self._sought
        if of is not (values := self._values):
            forms = {form for known in values for form in _forms(known) if len(form) >= LEAST}
            sought = map(_sought, sorted(forms, key=len, reverse=True))
            pattern = re.compile("|".join(sought)) if forms else None
            self._sought = values, pattern
        return text if pattern is None else pattern.sub(HIDDEN, text)

    def clear(self) -> None:
        with self._lock:
            self._values = {}


KNOWN_SECRETS = _Known()
"""Of this process."""


def keep_secret(value: str) -> None:
    """From now on no text of this process has this value in it, as it is, quoted or on one line."""
    KNOWN_SECRETS.add(value)


def redacted(text: str) -> str:
    """Any text without the secrets that are known, or that look like some."""
    text = _UP_TO_AT.sub(_without_password, KNOWN_SECRETS.hidden(text))
    return _BEARER.sub(rf"\1 {HIDDEN}", _PARAMETER.sub(rf"\1{HIDDEN}", text))


def _without_password(word: re.Match[str]) -> str:
    return _PASSWORD.sub(rf"\1:{HIDDEN}@", word[0])


def redact_handled() -> None:
    """Takes secrets out of the exception that is being handled and those before it: Python prints them as causes."""
    for error in _chain(sys.exc_info()[1]):
        error.args = tuple(redacted(part) if isinstance(part, str) else part for part in error.args)
        if isinstance(error, OSError):  # it has its text twice
            for name in ("strerror", "filename"):
                if isinstance(text := getattr(error, name), str):
                    setattr(error, name, redacted(text))


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """An exception, what caused it, what was handled meanwhile, and those that it has as arguments."""
    left, seen = [error], set[int]()
    while left:
        one = left.pop()
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            left += [one.__cause__, one.__context__, *(part for part in one.args if isinstance(part, BaseException))]
            yield one


def _forms(value: str) -> set[str]:
    """How a value may be written: as a part of a URL, of JSON, of Python's `repr`, and on one line."""
    plain = value.encode(errors="surrogatepass")
    written = {value, " ".join(value.split()), unquote(value), quote(plain, safe=""), quote(plain), quote_plus(plain)}
    return written | {json.dumps(value)[1:-1], repr(value)[1:-1]}


def _sought(form: str) -> str:
    return re.escape(form) if len(form) >= SHORT else rf"(?<!\w){re.escape(form)}(?!\w)"
