"""Small JSON files beside a table: reports, and records of closed versions.

A local one appears whole or not at all: it is written under another name first.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from threading import get_ident
from typing import Any

from lithify.columnar.access import FileAccess, local_path
from lithify.columnar.durable import sync_folder
from lithify.columnar.segment_reader import damage_named
from lithify.errors import DamagedError
from lithify.store.iceberg.local_io import LocalOutput


def write_document(access: FileAccess, path: str, content: Mapping[str, Any]) -> None:
    """Raises `OSError`."""
    text = json.dumps(content, indent=1).encode()
    local = local_path(path)
    if local is None:
        with access.create(path) as sink:
            sink.write(text)
        return
    part = f"{local}.{os.getpid()}-{get_ident()}.part"  # two may write one document at a time
    with LocalOutput(part).create(overwrite=True) as sink:
        sink.write(text)
    Path(part).replace(local)
    sync_folder(Path(local).parent)


def read_document(access: FileAccess, path: str) -> dict[str, Any]:
    """Raises `DamagedError`, which names the file."""
    with damage_named(path), access.open(path) as source:
        return _parsed(path, bytes(source.read()))


def read_document_if_there(access: FileAccess, path: str) -> dict[str, Any] | None:
    """None if there is no such file. Raises `DamagedError`, which names it, or `OSError`."""
    try:
        with access.open(path) as source:
            text = bytes(source.read())
    except FileNotFoundError:
        return None
    return _parsed(path, text)


def _parsed(path: str, text: bytes) -> dict[str, Any]:
    try:
        content = json.loads(text)
    except ValueError as error:
        raise DamagedError(
            f"{path}: the file is not JSON any more: {error}", hint="restore it from a backup"
        ) from error
    if not isinstance(content, dict):
        raise DamagedError(f"{path}: the file is not a JSON object any more", hint="restore it from a backup")
    return content
