"""Files of Java properties, as every user of Kafka has one for its own tools: `client.properties`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from lithify.errors import RefusedError

LARGEST_FILE_BYTES = 2**20
MOST_SETTINGS = 1000
"""Of one file: Kafka's clients have some 300, and each that is not theirs is compared with all of these."""
_HINT = "name the client.properties of a Kafka client, in UTF-8"


def read_properties(path: Path) -> Mapping[str, str]:
    """The settings in a file of Java properties. Raises `RefusedError`."""
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE_BYTES + 1)
        text = content.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise RefusedError(f"{path} cannot be read: {error}", hint=_HINT) from error
    if len(content) > LARGEST_FILE_BYTES:
        raise RefusedError(f"{path} is larger than {LARGEST_FILE_BYTES} bytes: it is no file of settings", hint=_HINT)
    found = dict(_property(line) for line in _lines(text))
    if len(found) > MOST_SETTINGS:
        raise RefusedError(f"{path} has more than {MOST_SETTINGS} settings: it is no file of settings", hint=_HINT)
    return found


def _lines(text: str) -> Iterator[str]:
    """Without comments; a line that ends with a backslash continues in the next one."""
    begun = ""
    for line in map(str.lstrip, text.splitlines()):
        if not begun and (not line or line[0] in "#!"):
            continue
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            begun += line[:-1]
            continue
        yield begun + line
        begun = ""
    if begun:
        yield begun


_NAME = re.compile(r"((?:\\.|[^\\=:\s])*)\s*[=:]?\s*(.*)", re.DOTALL)
_ESCAPED = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_LETTERS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def _property(line: str) -> tuple[str, str]:
    match = _NAME.fullmatch(line)
    assert match is not None  # it matches everything
    name, value = (_ESCAPED.sub(_character, part) for part in match.groups())
    return name, value.rstrip()


def _character(escaped: re.Match[str]) -> str:
    found = escaped[1]
    return chr(int(found[1:], 16)) if len(found) == 5 else _LETTERS.get(found, found)
