"""The small files of a log directory, in which a broker notes what it does not want to find out again.

*-offset-checkpoint        0                       version        leader-epoch-checkpoint    0
(of all logs)              2                       entries        (of one log)               1
                           orders 0 1500                                                     3 1200
                           orders 1 900                                           epoch, first offset

partition.metadata         version: 0              meta.properties    cluster.id=…  node.id=1
                           topic_id: xGg…
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

CLEANER, LOG_START, RECOVERY_POINT, REPLICATED = (
    f"{name}-offset-checkpoint" for name in ("cleaner", "log-start", "recovery-point", "replication")
)
"""In each log directory: the first dirty offset, the log start offset, up to where a log is on the disk, and up to
where all in-sync replicas have it. A log that is not in them is not known to have any."""
EPOCHS: Final = "leader-epoch-checkpoint"
METADATA: Final = "partition.metadata"
META_PROPERTIES: Final = "meta.properties"

_VERSION = 0
_PROPERTIES_VERSIONS = ("0", "1")
"""Of a cluster with ZooKeeper, and of one without."""


class CheckpointError(Exception):
    """A text that no broker writes; callers know the file, and say so."""


@dataclass(frozen=True, slots=True)
class EpochStart:
    """The first offset that was written in a leader epoch."""

    epoch: int
    offset: int


def offsets_in(text: str) -> Mapping[tuple[str, int], int]:
    """The offsets in a checkpoint, by topic and partition. Raises `CheckpointError`."""
    return {(topic, _number(partition)): _number(offset) for topic, partition, offset in _entries(text, 3)}


def with_offset(text: str, topic: str, partition: int, offset: int) -> str:
    """A checkpoint with the offset of one log. Raises `CheckpointError`."""
    offsets = {**offsets_in(text), (topic, partition): offset}
    lines = [str(_VERSION), str(len(offsets)), *(f"{name} {number} {at}" for (name, number), at in offsets.items())]
    return "".join(f"{line}\n" for line in lines)


def epochs_in(text: str) -> tuple[EpochStart, ...]:
    """The epochs of a log, in order. Raises `CheckpointError`."""
    return tuple(EpochStart(_number(epoch), _number(offset)) for epoch, offset in _entries(text, 2))


def topic_id_in(text: str) -> str:
    """The id of the topic that a log is of. Raises `CheckpointError`."""
    facts = dict(_pairs(text, ":"))
    if facts.get("version") != str(_VERSION) or not facts.get("topic_id"):
        raise CheckpointError("it is not a description of a partition in version 0")
    return facts["topic_id"]


def properties_in(text: str) -> Mapping[str, str]:
    """What a broker says of a directory, such as `cluster.id`. Raises `CheckpointError` for an unknown version."""
    properties = dict(_pairs(text, "="))
    if properties.get("version", "0") not in _PROPERTIES_VERSIONS:
        known = " or ".join(_PROPERTIES_VERSIONS)
        raise CheckpointError(f"its version is {properties['version'][:20]!r}, not {known}")
    return properties


def _pairs(text: str, sign: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        name, found, value = line.partition(sign)
        if found and not name.startswith("#"):
            yield name.strip(), value.strip()


def _entries(text: str, width: int) -> list[list[str]]:
    if not text:  # a broker makes the file before it has anything to note
        return []
    version, *rest = text.splitlines()
    if version.strip() != str(_VERSION):
        raise CheckpointError(f"its version is {version.strip()[:20]!r}, not {_VERSION}")
    stated, *lines = rest or [""]
    entries = [line.split() for line in lines]
    if _number(stated) != len(entries):
        raise CheckpointError(f"it states {stated.strip()[:20]} entries, but has {len(entries)}")
    if any(len(entry) != width for entry in entries):
        raise CheckpointError(f"an entry has other than {width} words")
    return entries


def _number(text: str) -> int:
    text = text.strip()
    if not (text.isascii() and text.removeprefix("-").isdigit() and len(text) < 21 and abs(int(text)) < 2**63):
        raise CheckpointError(f"{text[:20]!r} is not a number")
    return int(text)
