"""Small JSON files with a checksum of their content and path (C48).

    {"failures": ..., "checksum": "5d1c..."}     of the content and of where it belongs

So a document that was changed, or that stands in the place of another one, is noticed even where
no commit names it. One of before format 3 has no checksum and is read as it is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from lithify.errors import DamagedError

CHECKSUM = "checksum"
CHECKSUM_DIGITS = 16

_FOLDER = "lithify"
"""Of a topic's folder, the part where its documents are; `.lithify` in that of a warehouse."""
_RESTORE = "restore it from a backup; nothing was changed"


def checksum_of(content: bytes) -> str:
    """The first digits of its SHA-256, as `sha256sum` prints it."""
    return sha256(content).hexdigest()[:CHECKSUM_DIGITS]


def checksum_of_json(value: Any) -> str:
    """That of a value as JSON in its one form: names sorted, no spaces, nothing beyond ASCII."""
    return checksum_of(json.dumps(value, sort_keys=True, separators=(",", ":")).encode())


def sealed(path: str, content: Mapping[str, Any]) -> bytes:
    """A document as it is to stand at `path`."""
    plain = json.loads(json.dumps(content))  # as a reader will get it
    return json.dumps({**plain, CHECKSUM: _checksum(path, plain)}, indent=1).encode()


def unsealed(path: str, text: bytes) -> dict[str, Any]:
    """The document that was written to `path`. Raises `DamagedError`, which names it."""
    content = parsed_object(path, text)
    written = content.pop(CHECKSUM, None)
    if written is not None and written != _checksum(path, content):
        raise DamagedError(f"{path}: the file is not what was written to it: its checksum is another", hint=_RESTORE)
    return content


def parsed_object(path: str, text: bytes) -> dict[str, Any]:
    """A JSON object, however deep or large its text is made. Raises `DamagedError`, which names the file."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        why = " ".join(str(error).split())[:200]
        raise DamagedError(f"{path}: the file is not JSON any more: {why}", hint=_RESTORE) from error
    if not isinstance(content, dict):
        raise DamagedError(f"{path}: the file is not a JSON object any more", hint=_RESTORE)
    return content


def _checksum(path: str, content: Mapping[str, Any]) -> str:
    return checksum_of_json([_place(path), content])


def _place(path: str) -> str:
    """What of a path tells one document from the others: the topic's folder, and the path within it."""
    parts = path.split("/")
    start = max((n for n, part in enumerate(parts) if part == _FOLDER), default=len(parts) - 1)
    return "/".join(parts[max(0, start - 1) :])
