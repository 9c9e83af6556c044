"""Files of Java properties, as every user of Kafka has one for its own tools: `client.properties`.

They are read here in a time that grows with the file: the library javaproperties takes 36 seconds for 75 kB of
continued lines. It reads the same, except blanks at the end of a value, which Java keeps.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from lithify.errors import RefusedError
from lithify.errors.given_files import read_given
from lithify.errors.redaction import keep_secret
from lithify.kafka_client.names import JAVA, LIBRDKAFKA

MOST_SETTINGS = 1000
"""Of one file: Kafka's clients have some 300, and each that is not theirs is compared with all of these."""
MOST_RESTS = 100
"""Lines that may be the rest of a value, as the certificates of a PEM file are: each is sought in all that is printed.

A file of data by mistake, with lines of a thousand characters, took minutes.
"""
_HINT = "give the client.properties of a Kafka client, in UTF-8"


def read_properties(path: Path) -> Mapping[str, str]:
    """The settings in a file of Java properties. Raises `RefusedError`."""
    try:
        text = read_given(path, pipes=True).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise RefusedError(f"{path} cannot be read: {why}", hint=_HINT) from error
    settings = dict(_property(line) for line in _lines(text))
    if len(settings) > MOST_SETTINGS:
        raise RefusedError(f"{path} has more than {MOST_SETTINGS} settings: it is not a file of settings", hint=_HINT)
    rests = [name for name, value in settings.items() if _may_be_of_a_value(name, value)]
    if len(rests) > MOST_RESTS:
        raise RefusedError(f"{path} has {len(rests)} lines without a setting: it is not a file of settings", hint=_HINT)
    for rest in rests:
        keep_secret(rest)  # unknown names are shown
    return settings


def _lines(text: str) -> Iterator[str]:
    """Without comments; a line that ends with a backslash continues in the next one."""
    begun: str | None = None
    ended = re.split(r"\r\n|\r|\n", text)  # Java knows no other ends: those may be in a password
    for line in (text.lstrip(_BLANKS) for text in ended):
        if begun is None and (not line or line[0] in "#!"):
            continue
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            begun = (begun or "") + line[:-1]
            continue
        if whole := (begun or "") + line:
            yield whole
        begun = None
    if begun:
        yield begun


_IN_PARTS = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)+")
_ONE_WORD = re.compile(r"[a-z_]+")


def _may_be_of_a_value(name: str, value: str) -> bool:
    """Whether it may be the rest of one, such as a password, that was broken into lines without a backslash."""
    if name in JAVA or name in LIBRDKAFKA or _IN_PARTS.fullmatch(name):
        return False
    return not value or not _ONE_WORD.fullmatch(name)


_BLANKS = " \t\f"
_NAME = re.compile(r"((?:\\.|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*(.*)", re.DOTALL)
_ESCAPED = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_LETTERS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def _property(line: str) -> tuple[str, str]:
    match = _NAME.fullmatch(line)
    assert match is not None  # it matches everything
    name, value = (_joined(_ESCAPED.sub(_character, part)) for part in match.groups())
    return name, value.rstrip(_BLANKS)


def _joined(text: str) -> str:
    """Java writes a character beyond U+FFFF as two escapes."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _character(escaped: re.Match[str]) -> str:
    code = escaped[1]
    return chr(int(code[1:], 16)) if len(code) == 5 else _LETTERS.get(code, code)
