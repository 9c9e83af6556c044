"""What a topic is a replica of, as a table property and in records of closed versions (docs/reference/format.md).

lithify.replica     JSON: one `ReplicaOf`; null once it was promoted; absent of a topic that never was one
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, astuple
from typing import Any

from lithify.model.replicas.replica_of import CopiedLog, ReplicaOf
from lithify.model.topic.edit import TopicEdit

REPLICA = "lithify.replica"


def replica_in(properties: Mapping[str, str]) -> ReplicaOf | None:
    """What the properties say. Raises errors of JSON, `TypeError` or `ValueError` for anything else."""
    return replica_from_json(json.loads(properties.get(REPLICA, "null")))


def created(replica: ReplicaOf | None) -> dict[str, str]:
    """The property of a new topic, if it is a replica."""
    return {} if replica is None else _stated(replica)


def restated(properties: Mapping[str, str], base_version: int, version: int, edit: TopicEdit) -> dict[str, str]:
    """The property after the commit of `edit` as `version`, if there is one: every commit states it anew (C64)."""
    before = replica_in(properties)
    return {} if before is None else _stated(edit.replica_after(before, base_version, version))


def replica_to_json(replica: ReplicaOf | None) -> dict[str, Any] | None:
    """Of a record of a closed version. What no replica has that never compacted by itself is left out."""
    if replica is None:
        return None
    own = {"compact": replica.compact, "compacts": replica.compacts, "copied": [astuple(log) for log in replica.copied]}
    return {name: value for name, value in (asdict(replica) | own).items() if name not in own or value}


def replica_from_json(data: Mapping[str, Any] | None) -> ReplicaOf | None:
    """The inverse of `replica_to_json`. Raises `TypeError` or `ValueError` for anything else."""
    if data is None:
        return None
    copied = tuple(CopiedLog(*log) for log in data.get("copied", ()))
    replica = ReplicaOf(**{**data, "chain": tuple(data["chain"]), "copied": copied})
    texts = (replica.source, replica.identity, *replica.chain, *(log.run for log in copied))
    numbers = (replica.version, replica.written_at, *(log.epoch for log in copied))
    flags = (replica.compact, replica.compacts)
    if {*map(type, texts)} != {str} or {*map(type, numbers)} != {int} or {*map(type, flags)} != {bool}:
        raise ValueError(f"{replica!r} has no source")
    return replica


def _stated(replica: ReplicaOf | None) -> dict[str, str]:
    return {REPLICA: json.dumps(replica_to_json(replica), separators=(",", ":"))}
