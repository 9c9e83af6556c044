"""Segments that tiered storage has copied out of brokers, where their bytes are as they were (KIP-405).

LocalTieredStorage of Kafka     orders-0-xGgq…/      00000000000000000000-UUID.log     an id of 22 characters
Aiven's plugin                  orders-xGgq…/0/      00000000000000000000-UUID.log     .rsm-manifest beside it

A manifest says whether the plugin has compressed or encrypted a segment. A segment may be there twice: it was uploaded
again. Which one counted only the cluster's metadata said, so the batches decide (`tiered_log.py`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from lithify.kafka_log.directories.files import text_of
from lithify.kafka_log.directories.segment_names import OFFSETS

_ID: Final = "[a-zA-Z0-9_-]{22}"
_TOPIC: Final = "[a-zA-Z0-9._-]{1,249}"
_SEGMENT: Final = re.compile(rf"([0-9]{{1,20}})-{_ID}\.log")
_LOCAL: Final = re.compile(rf"({_TOPIC})-([0-9]{{1,10}})-({_ID})")
_OF_TOPIC: Final = re.compile(rf"({_TOPIC})-({_ID})")
_PARTITION: Final = re.compile(r"[0-9]{1,10}")
_MANIFEST: Final = ".rsm-manifest"


class TieredError(Exception):
    """Why segments cannot be read; callers know the folder, and say so."""


@dataclass(frozen=True, slots=True)
class TieredFolder:
    """What there is of one partition; several files may have the same base offset."""

    path: Path
    topic: str
    partition: int
    topic_id: str
    segments: Sequence[tuple[int, Path]]


def tiered_folders(path: Path, entries: Sequence[Path]) -> Iterator[TieredFolder]:
    """Of a directory with these entries, or of one partition's folder in it. Raises `OSError` or `TieredError`."""
    for each in (path, *entries):
        if (folder := _folder(each)) is not None:
            yield folder
        elif _OF_TOPIC.fullmatch(each.name) and each.is_dir():
            yield from (folder for inner in sorted(each.iterdir()) if (folder := _folder(inner)) is not None)


def _folder(path: Path) -> TieredFolder | None:
    if match := _LOCAL.fullmatch(path.name):
        topic, partition, topic_id = match.groups()
    elif _PARTITION.fullmatch(path.name) and (match := _OF_TOPIC.fullmatch(path.parent.name)):
        (topic, topic_id), partition = match.groups(), path.name
    else:
        return None
    if not path.is_dir():
        return None
    names = sorted(each.name for each in path.iterdir())
    found = [(name, match[1]) for name in names if (match := _SEGMENT.fullmatch(name))]
    segments = [(int(base), path / name) for name, base in found if int(base) < OFFSETS]
    if not segments:
        return None
    _check_raw(segments, has_manifests=any(name.endswith(_MANIFEST) for name in names))
    return TieredFolder(path, topic, int(partition), topic_id, segments)


def _check_raw(segments: Sequence[tuple[int, Path]], *, has_manifests: bool) -> None:
    for _, path in segments if has_manifests else ():
        try:
            manifest = json.loads(text_of(path.with_suffix(_MANIFEST)))
        except FileNotFoundError:
            raise TieredError(f"{path.name} has no {_MANIFEST}, so that it may be compressed or encrypted") from None
        except (ValueError, RecursionError) as error:
            raise TieredError(f"the {_MANIFEST} of {path.name} is damaged: {error}") from error
        if (how := _changed(manifest)) is not None:
            raise TieredError(f"{path.name} was {how} by the plugin of tiered storage")


def _changed(manifest: Any) -> str | None:
    if not isinstance(manifest, Mapping) or not isinstance(manifest.get("compression"), bool):
        return "written in a way that is not known"
    if manifest["compression"]:
        return "compressed"
    return "encrypted" if manifest.get("encryption") else None
