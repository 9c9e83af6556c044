"""Of which topic of another system a topic is a copy: a document beside it (C70), in JSON of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, astuple, dataclass
from typing import Any

_NO_ID = "A" * 22
"""128 bits of 0, as Kafka writes ids: earlier versions stored it for brokers that do not give topics an id."""


def known_id(written: str) -> str:
    """An id of Kafka's as it was stored; empty if that says that there was none."""
    return "" if written == _NO_ID else written


@dataclass(frozen=True, slots=True)
class Hole:
    """Offsets that Kafka had deleted before they were copied: [start_offset, end_offset)."""

    partition: int
    start_offset: int
    end_offset: int


@dataclass(frozen=True, slots=True)
class IdHole:
    """Entries that Pulsar had deleted before they were copied: those behind `after`, if it is known, up to `before`.

    As text, LEDGER:ENTRY; entry -1 is the start of a ledger. There may have been none.
    """

    partition: int
    after: str | None
    before: str


@dataclass(frozen=True, slots=True)
class CopiedTopic:
    """Of which topic of Kafka or Pulsar a topic is a copy, and what of it could not be copied.

    `topic_id` is the source's: a recreated topic has another one; empty where it is not known. So is `cluster_id`, of
    the cluster that it is in. `config` are the settings that were set on the source itself, at the last ingest; None
    where they are not known.
    """

    name: str
    topic_id: str
    holes: tuple[Hole | IdHole, ...] = ()
    promoted: bool = False
    """It is a copy no more, or soon (C70): said before the commit, so that `repair` cannot take it back."""
    config: Mapping[str, str] | None = None
    cluster_id: str = ""

    def to_json(self) -> dict[str, Any]:
        holes = [asdict(hole) for hole in self.holes]
        config = None if self.config is None else dict(self.config)
        return {
            "name": self.name,
            "topic_id": self.topic_id,
            "holes": holes,
            "promoted": self.promoted,
            "config": config,
            "cluster_id": self.cluster_id,
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> CopiedTopic:
        """The inverse of `to_json`. Raises `LookupError`, `TypeError` or `ValueError` for any other document."""
        holes = tuple(IdHole(**hole) if "before" in hole else Hole(**hole) for hole in data["holes"])
        given = data.get("config")
        config = None if given is None else dict(given)
        name, topic_id = data["name"], known_id(data["topic_id"])
        cluster_id = data.get("cluster_id", "")
        copied = CopiedTopic(name, topic_id, holes, bool(data.get("promoted", False)), config, cluster_id)
        texts = [copied.name, copied.topic_id, copied.cluster_id, *(h.before for h in holes if isinstance(h, IdHole))]
        texts += [text for pair in (config or {}).items() for text in pair]
        texts += [h.after for h in holes if isinstance(h, IdHole) and h.after is not None]
        numbers = [number for hole in holes if isinstance(hole, Hole) for number in astuple(hole)]
        numbers += [hole.partition for hole in holes]
        if {*map(type, texts)} - {str} or {*map(type, numbers)} - {int}:
            raise ValueError(f"{copied!r} is not a topic")
        return copied
