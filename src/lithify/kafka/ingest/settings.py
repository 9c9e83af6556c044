"""The settings of a topic in the lake that is a copy of a Kafka topic.

They have Kafka's compaction settings, but not its retention: the lake keeps the history, and only
`--config` makes a copy delete records by itself.
"""

from __future__ import annotations

from collections.abc import Mapping

from lithify.model.settings.topic_settings import TopicSettings, settings_of

_SAME = (
    "min.compaction.lag.ms",
    "max.compaction.lag.ms",
    "min.cleanable.dirty.ratio",
    "delete.retention.ms",
)
_NO_LIMIT = 2**63 - 1


def settings_like(kafka: Mapping[str, str], config: Mapping[str, object]) -> TopicSettings:
    """The settings of a copy of a topic that has `kafka`'s; `config` goes over them. Raises `InvalidSettingError`."""
    compacts = "compact" in kafka.get("cleanup.policy", "compact")
    mine: dict[str, object] = {name: kafka[name] for name in _SAME if name in kafka}
    if int(str(mine.get("max.compaction.lag.ms", 0))) == _NO_LIMIT:  # Kafka's value for never
        del mine["max.compaction.lag.ms"]
    mine |= {"cleanup.policy": "compact" if compacts else "delete", "retention.ms": -1, "null.key": "reject"}
    mine["max.message.bytes"] = 2**31 - 1  # records that Kafka has accepted are not refused
    return settings_of({**mine, **config})
