"""Small JSON files with a checksum of their content and path (C48).

    {"failures": ..., "checksum": "5d1c..."}     over the content and the path

This detects a document that was changed or copied to another path, even one that no commit refers to.
Documents written before format 3 have no checksum and are not verified.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from lithify.errors import DamagedError
from lithify.errors.redaction import one_line

CHECKSUM = "checksum"
CHECKSUM_DIGITS = 16

_FOLDERS = ("lithify", ".lithify")
"""The subfolders that hold documents: of a topic's folder, and of a warehouse."""
_RESTORE = "restore it from a backup; nothing was changed"


def checksum_of(content: bytes) -> str:
    """The first `CHECKSUM_DIGITS` hexadecimal digits of the SHA-256 of `content`."""
    return sha256(content).hexdigest()[:CHECKSUM_DIGITS]


def checksum_of_json(value: Any) -> str:
    """The checksum of a value as canonical JSON: names sorted, no spaces, ASCII only."""
    return checksum_of(json.dumps(value, sort_keys=True, separators=(",", ":")).encode())


def sealed(path: str, content: Mapping[str, Any]) -> bytes:
    """`content` as the JSON document to be written to `path`, with its checksum."""
    plain = json.loads(json.dumps(content))  # as a reader will parse it
    return json.dumps({**plain, CHECKSUM: _checksum(_place(path), plain)}, indent=1).encode()


def unsealed(path: str, text: bytes) -> dict[str, Any]:
    """The content of the document at `path`, without its checksum. Raises `DamagedError`, which names the path."""
    content = parsed_object(path, text)
    written = content.pop(CHECKSUM, None)
    if written is not None and all(written != _checksum(place, content) for place in (_place(path), _earlier(path))):
        raise DamagedError(f"{path}: the file is not what was written: its checksum differs", hint=_RESTORE)
    return content


def parsed_object(path: str, text: bytes) -> dict[str, Any]:
    """`text` parsed as a JSON object. Raises `DamagedError`, which names the path, even for too deep a nesting."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DamagedError(f"{path}: the file is no longer JSON: {one_line(str(error), 200)}", hint=_RESTORE) from error
    if not isinstance(content, dict):
        raise DamagedError(f"{path}: the file is no longer a JSON object", hint=_RESTORE)
    return content


def _checksum(place: str, content: Mapping[str, Any]) -> str:
    return checksum_of_json([place, content])


def _place(path: str) -> str:
    """The part of a path that identifies a document: from the topic's folder on, or from `.lithify` of a warehouse."""
    parts = path.split("/")
    start = max((n for n, part in enumerate(parts) if part in _FOLDERS), default=len(parts) - 1)
    of_topic = parts[start] != _FOLDERS[1]
    return "/".join(parts[max(0, start - of_topic) :])


def _earlier(path: str) -> str:
    """As documents of a warehouse were written before, if a folder above it is called `lithify`."""
    parts = path.split("/")
    start = max((n for n, part in enumerate(parts) if part == _FOLDERS[0]), default=len(parts) - 1)
    return "/".join(parts[max(0, start - 1) :])
