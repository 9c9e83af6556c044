"""The logs in log directories: a folder for each partition, `TOPIC-PARTITION`.

kafka-logs/     .lock     *-offset-checkpoint     meta.properties
  orders-0/     00000000000000000000.log  .index  .timeindex  .snapshot     leader-epoch-checkpoint  ...
  orders-1/
  payments-0.5f2c…-delete/     deleted, or moved to another disk, or of no topic: not logs
"""

from __future__ import annotations

import fcntl
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from lithify.kafka_log.directories.checkpoints import (
    CLEANER,
    EPOCHS,
    LOG_START,
    META_PROPERTIES,
    METADATA,
    RECOVERY_POINT,
    REPLICATED,
    EpochStart,
    epochs_in,
    offsets_in,
    properties_in,
    topic_id_in,
)

_FOLDER = re.compile(r"([a-zA-Z0-9._-]{1,249})-(\d{1,10})")
_LOCK = ".lock"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
"""A broker that stops in order leaves it, and removes it when it starts."""


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
    """Whether a broker that runs on this machine has the directory."""
    try:
        with (path / _LOCK).open("rb") as lock:
            fcntl.lockf(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except (BlockingIOError, PermissionError):
        return True
    return False


def log_directory(path: Path) -> LogDirectory:
    """What there is in a directory, or in one folder of it. Raises `OSError` or `CheckpointError`."""
    is_folder = any(path.glob("*.log"))
    root = path.resolve().parent if is_folder else path
    checkpoints = {
        name: offsets_in(text)
        for name in (CLEANER, LOG_START, RECOVERY_POINT, REPLICATED)
        if (text := _text(root / name)) is not None
    }
    cluster = properties_in(_text(root / META_PROPERTIES) or "").get("cluster.id")
    places = [path] if is_folder else [each for each in sorted(path.iterdir()) if each.is_dir()]
    folders = (_folder(each, cluster, checkpoints) for each in places)
    was_shut_down = (root / CLEAN_SHUTDOWN).exists()
    return LogDirectory(path, tuple(one for one in folders if one is not None), was_shut_down)


def _folder(
    path: Path, cluster: str | None, checkpoints: Mapping[str, Mapping[tuple[str, int], int]]
) -> LogFolder | None:
    match = _FOLDER.fullmatch(path.resolve().name)
    if match is None:
        return None
    topic, partition = match[1], int(match[2])
    noted = {name: checkpoints.get(name, {}).get((topic, partition)) for name in checkpoints}
    metadata, epochs = _text(path / METADATA), _text(path / EPOCHS)
    return LogFolder(
        path,
        topic,
        partition,
        cluster,
        None if metadata is None else topic_id_in(metadata),
        () if epochs is None else epochs_in(epochs),
        noted.get(LOG_START),
        noted.get(CLEANER),
        noted.get(RECOVERY_POINT),
        noted.get(REPLICATED),
    )


def _text(path: Path) -> str | None:
    with suppress(FileNotFoundError):
        return path.read_text(encoding="utf-8", errors="replace")
    return None
