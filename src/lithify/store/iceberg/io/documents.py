"""Small JSON files beside a table: reports, records of closed versions, failures, sources, rates.

A local one appears whole or not at all: it is written under another name first, and only where its topic's folder
is still there (its disk may have been unmounted). One in an object store is padded, and read again where a read does
not hold (`looks`). What it says is checked when it is read (`sealed`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from threading import get_ident
from typing import Any

from lithify.columnar.files.access import FileAccess, local_path, make_folders
from lithify.columnar.files.looks import padded, read_sealed
from lithify.columnar.files.replaced import sync_folder
from lithify.columnar.files.sealed import sealed

ATTEMPTS = 3
"""Times that a document is written before it counts as a failure that it was gone when it was to be renamed."""


def write_document(access: FileAccess, path: str, content: Mapping[str, Any]) -> None:
    """Raises `OSError`."""
    text = sealed(path, content)
    local = local_path(path)
    if local is None:
        with access.create(path) as sink:
            sink.write(padded(text))
        return
    from lithify.store.iceberg.io.local_io import LocalOutput  # imports PyIceberg

    part = f"{local}.{os.getpid()}-{get_ident()}.part"  # two may write one document at a time
    for attempt in count(1):
        make_folders(Path(local))
        with LocalOutput(part).create(overwrite=True) as sink:
            sink.write(text)
        try:
            Path(part).replace(local)
            break
        except FileNotFoundError:  # this process stalled for longer than the grace, and a sweep deleted the file (C45)
            if attempt == ATTEMPTS or not Path(part).parent.is_dir():  # or the topic was deleted
                raise
    sync_folder(Path(local).parent)


def read_document(access: FileAccess, path: str) -> dict[str, Any]:
    """Raises `DamagedError`, which names the file."""
    from lithify.columnar.segment.checked_file import damage_named  # imports PyArrow

    with damage_named(path):
        return read_sealed(access, path)


def read_document_if_there(access: FileAccess, path: str) -> dict[str, Any] | None:
    """None if there is no such file. Raises `DamagedError`, which names it, or `OSError`."""
    try:
        return read_sealed(access, path)
    except FileNotFoundError:
        return None
