"""Texts without secrets, for errors and whatever is printed.

    known      values of the configuration in use, as `keep_secret` was told them: also where a library repeats them
    patterns   passwords of URLs, secrets among parameters and headers: also those of a configuration of others

`error_text` bounds what an error says, so that a value of a megabyte that it repeats fills no terminal and no log.

What is short would hide half of a text: below `SHORT` characters only whole words are hidden, below `LEAST` nothing.
What may be a word, as the password `postgres`, is not hidden inside of others below `LONG` characters.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from html import escape
from itertools import takewhile
from threading import Lock
from typing import Any
from urllib.parse import unquote

HIDDEN = "***"
LONG, SHORT, LEAST = 16, 8, 4
LONGEST = 2_000
"""Characters of the message of an error, and of its hint."""
_LEFT_OUT = 50
"""At most those that say what was left out."""
LARGE, _BEGIN, _END = 4096, 1024, 256
"""A value that is longer than the first, such as a file of credentials, is sought by this many characters of its
beginning and end. All between them is removed, or all after its beginning if a text was cut. A pattern takes time to
compile."""
_PIECE = 8
"""Characters of a secret that are hidden beside an ellipsis: a library leaves out the middle or the end of a value."""
SOUGHT = 16_384
"""Characters at each end of what an error says in which secrets are sought, as that takes seconds for a megabyte, in
which no other thread runs. What is between them is left out."""
KNOWN = 2000
"""Secrets that are remembered in a process; with more of them neither the first, of its configuration, are forgotten,
nor the last, of tokens that it renews."""

_BEFORE_A_WORD = r"(?:(?<![A-Za-z])|(?<=%[0-9A-Fa-f]{2})|(?<=\\[abfnrtv])|(?<=\\x[0-9a-f]{2})|(?<=\\u[0-9a-f]{4}))"
"""No letter, unless it is the end of what a URL, JSON or Python writes for another character."""

_UP_TO_AT = re.compile(r"(?<!\S)\S+@")
_PASSWORD = re.compile(r"(://[^\s/:@]*):(?!PASSWORD@).*@")
"""The password of a URL, any characters up to the last '@' of the word; our own hints have that very word there.

Sought in such words only: a text of thousands of URLs without blanks and '@' would take the square of its length.
"""

_PARAMETER = re.compile(
    r"""((?:^|[?&;,\s({\[])['"]?[\w.-]{0,40}
         (?:password|passwd|secret|token|credential|signature|api[_-]?key|access[_-]?key|account[_-]?key
           |\b(?:sig|pwd)) \s?=\s?)
        (?!['"]?(?:\$\{|\.\.\.|PASSWORD\b))
        (?:"(?:[^"\\]|\\.)*(?:"|\\?\Z)|'(?:[^'\\]|\\.)*(?:'|\\?\Z)|[^\s&#'"]+)""",
    re.I | re.X | re.S,
)
"""A secret among the parameters of a URL, a connection string or a login, as services and databases take it.

A quoted one has blanks and escaped quotes, and ends with the text if that was cut."""

_FIELD = re.compile(
    r"""((?:(?P<quote>['"])[\w.-]{0,40}(?:password|passwd|secret|token|credential|signature|api[_-]?key|access[_-]?key
           |account[_-]?key)(?P=quote)
         |(?<![\w.-])(?:[\w.-]{0,40}[._-])?(?:password|passwd|(?<=[._-])(?:secret|token|credential|key)))\s?:\s?)
        (?!['"]?(?:\$\{|\.\.\.|PASSWORD\b|null\b|\*{3}))
        (?:"(?:[^"\\]|\\.)*(?:"|\\?\Z)|'(?:[^'\\]|\\.)*(?:'|\\?\Z)
           |[^\s,{}\[\]'"]++(?=\s*(?:[,}\]'"]|\Z)|[ \t]*\n|\s+[\w.-]+:(?:\s|\Z)))""",
    re.I | re.X | re.S,
)
"""The same among the fields of JSON or YAML, as a catalog's answer repeats a configuration. Without quotes the name is
one of a setting, or a password's, and the value ends a line, an item or the text: all else is a sentence."""

_BEARER = re.compile(r"\b(Bearer|Basic)\s+(?=[^\s'\"]*\d)[\w.~+/=-]{8,}", re.I)

_TOKEN = re.compile(r"\b(lithify_[0-9a-f]{16})_[0-9a-f]{4,}", re.I)
"""A token of a gateway, also one that was cut: its id remains, by which `lithify token list` shows whose it is."""


class _Known:
    """The secrets that were given; safe to use from several threads, and a text needs no lock."""

    def __init__(self) -> None:
        self._values: dict[str, None] = {}
        """Never changed: replaced."""
        self._sought: tuple[dict[str, None], tuple[re.Pattern[str], ...]] = self._values, ()
        """The patterns of some values, made for a text: most processes show none."""
        self._lock = Lock()

    def add(self, value: str) -> None:
        with self._lock:
            if value in self._values or len(value) < LEAST:
                return
            values = [*self._values, value]
            if len(values) > KNOWN:
                del values[KNOWN // 2]
            self._values = dict.fromkeys(values)

    def hidden(self, text: str) -> str:
        of, patterns = self._sought
        if of is not (values := self._values):
            given = {one for known in values for one in (known, unquote(known)) if len(one.strip()) >= LEAST}
            patterns = tuple(map(_pattern, sorted(given, key=len, reverse=True)))
            self._sought = values, patterns
        for pattern in patterns:
            text = pattern.sub(HIDDEN, text)
        if _ELLIPSIS.search(text):
            for value in {form for known in values if len(known) >= LONG for form in (known, repr(known)[1:-1])}:
                text = _without_pieces(text, value)
        return text

    @property
    def longest(self) -> int:
        return max(map(len, self._values), default=0)

    def clear(self) -> None:
        with self._lock:
            self._values = {}


KNOWN_SECRETS = _Known()
"""Of this process."""


def keep_secret(value: str) -> None:
    """From now on no text of this process has this value in it, as it is, quoted or on one line.

    It may have been given as a part of a URL.
    """
    KNOWN_SECRETS.add(value)


def redacted(text: str) -> str:
    """Any text without the secrets that are known, or that look like some."""
    text = _UP_TO_AT.sub(_without_password, KNOWN_SECRETS.hidden(text))
    text = _BEARER.sub(rf"\1 {HIDDEN}", _FIELD.sub(rf"\1{HIDDEN}", _PARAMETER.sub(rf"\1{HIDDEN}", text)))
    return _TOKEN.sub(rf"\1_{HIDDEN}", text)


def redacted_json(value: Any) -> Any:
    """A JSON value without secrets in its texts."""
    match value:
        case str():
            return redacted(value)
        case Mapping():
            return {name: redacted_json(one) for name, one in value.items()}
        case list() | tuple():
            return [redacted_json(one) for one in value]
        case _:
            return value


def error_text(text: str, most: int = LONGEST) -> str:
    """What an error says: without secrets, and with at most this number of characters (50 or more).

    The middle is left out, where a value that was given repeats itself, and never before secrets are looked for: half
    of one is not recognized.
    """
    return _cut(ends_redacted(text), most)


def one_line(text: str, most: int) -> str:
    """The same of what a library or a service says, on one line."""
    return _cut(" ".join(ends_redacted(text).split()), most)


def ends_redacted(text: str) -> str:
    """A text without secrets; of a long one its ends, with blanks between them.

    What may be half of a secret where the text was cut is left out as well. All is sought for a very long known one.
    """
    if len(text) <= 2 * SOUGHT or KNOWN_SECRETS.longest > LARGE:
        return redacted(text)
    begin, end = redacted(text[:SOUGHT])[:-LARGE], redacted(text[-SOUGHT:])[LARGE:]
    return f"{begin}{' ' * (len(text) - len(begin) - len(end))}{end}"


def _cut(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    kept = most - _LEFT_OUT
    head = kept * 2 // 3
    return f"{text[:head]} … {len(text) - kept:,} characters left out … {text[len(text) - kept + head :]}"


def _without_password(word: re.Match[str]) -> str:
    return _PASSWORD.sub(rf"\1:{HIDDEN}@", word[0])


@lru_cache(2 * KNOWN)
def _pattern(value: str) -> re.Pattern[str]:
    """Finds a value as it is, and as texts, URLs, JSON, HTML and Python write it, also in each other."""
    if len(value) > LARGE:
        begin, end, least = value[:_BEGIN], value[-_END:], len("".join(value[_BEGIN:-_END].split()))
        return re.compile(rf"{_spelled(begin)}(?:[\s\S]{{{least},}}?{_spelled(end)}|[\s\S]*\Z)")
    spellings = _spelled(value)
    if len(value) < SHORT:
        return re.compile(rf"(?<!\w){spellings}(?!\w)")
    if len(value) < LONG and value.isalpha() and value.isascii():
        return re.compile(rf"{_BEFORE_A_WORD}{spellings}(?![A-Za-z])")
    return re.compile(spellings)


_ELLIPSIS = re.compile(r"\.{3}|…")


def _without_pieces(text: str, value: str) -> str:
    """Hides the beginning of a value before an ellipsis, and its end behind one; it is found by `_PIECE` characters."""
    text = _without_beginnings(text, value)
    return _without_beginnings(text[::-1], value[::-1])[::-1]


def _without_beginnings(text: str, value: str) -> str:
    parts, done = [], 0
    at = text.find(value[:_PIECE])
    while at >= 0:
        end = at + sum(
            1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(text[at : at + len(value)], value, strict=False))
        )
        if text.startswith(("...", " ...", "…", " …"), end):
            parts += [text[done:at], HIDDEN]
            done = end
        at = text.find(value[:_PIECE], end)
    return "".join([*parts, text[done:]])


def _spelled(value: str) -> str:
    parts = re.split(r"\s+", value.strip())
    return _BETWEEN.join("".join(_written(character) for character in part) for part in parts)


_BETWEEN = r"(?:\s|\+|%(?:25){0,2}(?:20|0[9adAD])|\\{1,8}[nrt]|&(?:amp;)?#(?:32|9|10|13);){1,99}"
"""For what is blank in a value: it may be on one line."""


def _written(character: str) -> str:
    """A pattern of the ways to write a character; runs of backslashes are bounded, for texts that have nothing else."""
    if character.isascii() and (character.isalnum() or character == "_"):
        return character
    plain, number = character.encode(errors="surrogatepass"), ord(character)
    units = re.findall("....", character.encode("utf-16-be", errors="surrogatepass").hex())
    ways = [
        rf"\\{{0,8}}{re.escape(character)}",
        "".join(rf"%(?:25){{0,2}}{byte:02x}" for byte in plain),
        "".join(rf"\\{{1,8}}u{unit}" for unit in units),
        "".join(rf"\\{{1,8}}x{byte:02x}" for byte in plain),
        rf"&(?:amp;)?#(?:x{number:x}|{number});",
    ]
    if (named := escape(character)) != character:
        ways.append(f"&(?:amp;)?{re.escape(named[1:])}")
    return f"(?i:{'|'.join(ways)})"
