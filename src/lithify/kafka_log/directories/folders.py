"""The logs in log directories: a folder for each partition, `TOPIC-PARTITION`.

kafka-logs/     .lock     *-offset-checkpoint     meta.properties
  orders-0/     00000000000000000000.log  .index  .timeindex  .snapshot     leader-epoch-checkpoint  ...
  orders-1/
  payments-0.5f2c…-delete/     deleted, or moved to another disk, or of no topic: not logs
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import BinaryIO, TypeVar

from lithify.kafka_log.directories.checkpoints import (
    CLEANER,
    EPOCHS,
    LOG_START,
    META_PROPERTIES,
    METADATA,
    RECOVERY_POINT,
    REPLICATED,
    CheckpointError,
    EpochStart,
    epochs_in,
    offsets_in,
    properties_in,
    topic_id_in,
)
from lithify.kafka_log.directories.files import opened, text_of
from lithify.kafka_log.directories.segment_names import segment_names
from lithify.kafka_log.directories.tiered import tiered_folders

Noted = TypeVar("Noted")

_FOLDER = re.compile(r"([a-zA-Z0-9._-]{1,249})-(0|[1-9][0-9]{0,9})")
_LOCK = ".lock"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
"""A broker that stops in order leaves it, and removes it when it starts."""
_mutex = Lock()
_held_here = set[tuple[int, int]]()
"""Devices and inodes of the locks that this process holds, as the system gives a process the same lock again."""


@dataclass(frozen=True, slots=True)
class LogFolder:
    """One replica of one partition, and what its broker has noted of it: None where there is nothing."""

    path: Path
    topic: str
    partition: int
    cluster: str | None = None
    topic_id: str | None = None
    epochs: tuple[EpochStart, ...] = ()
    log_start: int | None = None
    first_dirty: int | None = None
    recovery_point: int | None = None
    replicated_to: int | None = None
    tiered: tuple[tuple[int, Path], ...] = ()
    """Segments of tiered storage with their base offsets, instead of a broker's."""

    @property
    def is_internal(self) -> bool:
        """Whether it is of a topic of Kafka's own, such as `__consumer_offsets`."""
        return self.topic.startswith("__")


@dataclass(frozen=True, slots=True)
class LogDirectory:
    """A directory of a broker, or one partition's folder that was copied out of one."""

    path: Path
    folders: tuple[LogFolder, ...]
    was_shut_down: bool
    """Whether its broker has stopped in order."""


def is_in_use(path: Path) -> bool:
    """Whether a broker that runs on this machine has the directory, or this process. Raises `OSError`."""
    with _mutex:
        try:
            if _identity((path / _LOCK).stat()) in _held_here:
                return True
            lock = opened(path / _LOCK)
        except FileNotFoundError:
            return False
        with lock:
            return not _is_locked(lock, fcntl.LOCK_SH)


@contextmanager
def held(path: Path) -> Iterator[bool]:
    """Takes a directory as a broker does, so that none starts on it meanwhile; false if one has it, or this process.

    Nothing else may open its lock within: the lock of a process ends with the first of its files that is closed.
    Raises `OSError`.
    """
    lock = _taken(path / _LOCK)
    try:
        yield lock is not None
    finally:
        if lock is not None:
            with _mutex:
                _held_here.remove(_identity(os.fstat(lock.fileno())))
                lock.close()


def _taken(path: Path) -> BinaryIO | None:
    with _mutex:
        if path.exists() and _identity(path.stat()) in _held_here:
            return None
        lock = opened(path, os.O_RDWR | os.O_CREAT)
        if not _is_locked(lock, fcntl.LOCK_EX):
            lock.close()
            return None
        _held_here.add(_identity(os.fstat(lock.fileno())))
        return lock


def _is_locked(lock: BinaryIO, how: int) -> bool:
    try:
        fcntl.lockf(lock, how | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def log_directory(path: Path) -> LogDirectory:
    """What there is in a directory, or in one folder of it. Raises `OSError`, `CheckpointError` or `TieredError`."""
    entries = sorted(path.iterdir())
    names = segment_names(each.name for each in entries)
    is_folder = bool(names.segments or names.swaps)
    root = path.resolve().parent if is_folder else path
    noted = ((name, noted_in(root / name, offsets_in)) for name in (CLEANER, LOG_START, RECOVERY_POINT, REPLICATED))
    checkpoints = {name: offsets for name, offsets in noted if offsets is not None}
    cluster = (noted_in(root / META_PROPERTIES, properties_in) or {}).get("cluster.id")
    tiered = {one.path: one for one in tiered_folders(path, entries)}
    if is_folder:
        name = path.name if _FOLDER.fullmatch(path.name) else path.resolve().name
        places = {path: name}
    else:
        places = {each: each.name for each in entries if each.is_dir() and each not in tiered}
    folders = (_folder(each, name, cluster, checkpoints) for each, name in places.items())
    found = [one for one in folders if one is not None]
    found += [
        LogFolder(one.path, one.topic, one.partition, topic_id=one.topic_id, tiered=tuple(one.segments))
        for one in tiered.values()
    ]
    return LogDirectory(path, tuple(found), (root / CLEAN_SHUTDOWN).exists())


def _folder(
    path: Path, name: str, cluster: str | None, checkpoints: Mapping[str, Mapping[tuple[str, int], int]]
) -> LogFolder | None:
    match = _FOLDER.fullmatch(name)
    if match is None:
        return None
    topic, partition = match[1], int(match[2])
    noted = {name: offsets.get((topic, partition)) for name, offsets in checkpoints.items()}
    return LogFolder(
        path,
        topic,
        partition,
        cluster,
        noted_in(path / METADATA, topic_id_in),
        noted_in(path / EPOCHS, epochs_in) or (),
        noted.get(LOG_START),
        noted.get(CLEANER),
        noted.get(RECOVERY_POINT),
        noted.get(REPLICATED),
    )


def noted_in(path: Path, read: Callable[[str], Noted]) -> Noted | None:
    """What a file says; None if it is not there. Raises `OSError`, or `CheckpointError` with its path."""
    try:
        return read(text_of(path))
    except FileNotFoundError:
        return None
    except CheckpointError as error:
        raise CheckpointError(f"{path}: {error}") from error
