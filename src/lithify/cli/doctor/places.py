"""The catalog, and where it keeps files: whether they can be listed, written and deleted."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from lithify.cli.doctor.check import Check
from lithify.cli.invocation import Invocation
from lithify.errors import LithifyError
from lithify.model.settings.units import format_bytes, plural

if TYPE_CHECKING:
    from lithify.api.lake import Lake
    from lithify.api.wiring.store_probe import Store

LITTLE_SPACE_BYTES = 2**30


def places(invocation: Invocation) -> list[Check]:
    """The catalog, then its files. A store is tried first: reading what a catalog has waits longer for one."""
    from lithify.api.wiring.store_probe import store_of
    from lithify.columnar.files.access import local_path  # imports Arrow

    try:
        lake = invocation.open_lake()
        store = store_of(lake.warehouse)
    except LithifyError as error:
        return [_failed("catalog", error)]
    folder = None if store is None else local_path(store.folder)
    if folder is not None:
        return [_catalog(lake), *_folder(Path(folder))]
    if store is None:
        return _chosen_by_the_catalog(lake)
    files = _store(lake, store)
    catalog = _catalog(lake) if files.ok else Check("catalog", True, "it answers; its topics are not checked")
    return [catalog, files]


def _failed(name: str, error: LithifyError) -> Check:
    return Check(name, False, error.message, error.hint)


def _catalog(lake: Lake) -> Check:
    try:
        return Check("catalog", True, plural(len(lake.topics()), "topic"))
    except LithifyError as error:
        return _failed("catalog", error)


def _chosen_by_the_catalog(lake: Lake) -> list[Check]:
    """Where only the catalog knows where topics are: the store of the first one."""
    from lithify.api.wiring.store_probe import store_of_topic

    catalog = _catalog(lake)
    if not catalog.ok:
        return [catalog]
    topics = lake.topics()
    if not topics:
        untried = "not tried: the catalog chooses the folders of topics, and there are no topics yet"
        return [catalog, Check("store", True, untried)]
    try:
        return [catalog, _store(lake, store_of_topic(lake.warehouse, topics[0].topic_name))]
    except LithifyError as error:
        return [catalog, _failed("store", error)]


def _store(lake: Lake, store: Store) -> Check:
    from lithify.api.wiring.store_probe import try_store

    where = f"{store.folder}{f' at {store.endpoint}' if store.endpoint else ''}"
    trial = try_store(lake.warehouse, store)
    if trial.error is None:
        return Check("store", True, f"{where}, listed; a small file was written, read and deleted")
    why = trial.error.message.removeprefix(store.folder).removeprefix(" cannot be reached").removeprefix(": ")
    left = f"; {trial.left} may be left there" if trial.left else ""
    return Check("store", False, f"{where} cannot be {trial.step}: {why}{left}", trial.error.hint)


def _folder(folder: Path) -> list[Check]:
    """Whether a local folder can be written to and has room."""
    place = next(parent for parent in (folder, *folder.parents) if parent.exists())
    try:
        with tempfile.TemporaryFile(dir=place):
            pass
        free = shutil.disk_usage(place).free
    except OSError as error:
        detail = f"{folder} cannot be written: {error.strerror}"
        return [Check("warehouse", False, detail, "make it writable for this user, or choose another with --warehouse")]
    room = free >= LITTLE_SPACE_BYTES
    return [
        Check("warehouse", True, f"{folder}, {'writable' if folder.exists() else 'made with the first topic'}"),
        Check("free space", room, format_bytes(free), "" if room else "a round needs space for the segments it writes"),
    ]
