"""Names that other systems have for what is a setting, an option or a verb here: the hints for them.

Kafka's brokers have `log.cleaner.*` for the cleaner and `log.*` for the defaults of topics; the classes of its cleaner
use `cleaner.*` for the same. MapR has attributes of streams: some of them do not exist here, and topics do not have
them.
"""

from __future__ import annotations

from collections.abc import Mapping

_CLEANER: Mapping[str, str] = {
    "enable": "no topic compacts by itself: start a cleaner with `lithify cleaner run`",
    "threads": "it is an option of the cleaner: `lithify cleaner run --threads`",
    "backoff.ms": "it is an option of the cleaner: `lithify cleaner run --interval`",
    "io.max.bytes.per.second": "set --read-rate and --write-rate, or change them with `lithify throttle`",
    "dedupe.buffer.size": "set --task-memory: keys beyond it are processed in parts, in the same round",
    "io.buffer.size": "set --task-memory, which bounds all memory of a task",
    "io.buffer.load.factor": "set --task-memory: keys beyond it are processed in parts, in the same round",
    "min.cleanable.ratio": "the setting of a topic is min.cleanable.dirty.ratio",
    "min.cleanable.dirty.ratio": "the setting of a topic is min.cleanable.dirty.ratio",
    "delete.retention.ms": "the setting of a topic is delete.retention.ms",
    "min.compaction.lag.ms": "the setting of a topic is min.compaction.lag.ms",
    "max.compaction.lag.ms": "the setting of a topic is max.compaction.lag.ms",
}
_TOPICS: Mapping[str, str] = {
    "log.cleanup.policy": "cleanup.policy",
    "log.retention.ms": "retention.ms",
    "log.retention.minutes": "retention.ms, which takes units: retention.ms=90m",
    "log.retention.hours": "retention.ms, which takes units: retention.ms=168h",
    "log.retention.bytes": "retention.bytes",
    "log.segment.bytes": "segment.bytes",
    "log.message.timestamp.type": "message.timestamp.type",
    "compression.codec": "compression.type",
    "compact": "cleanup.policy",
    "mincompactionlag": "min.compaction.lag.ms",
    "deleteretention": "delete.retention.ms",
    "ttl": "retention.ms, which takes units: retention.ms=7d",
    "compression": "compression.type",
    "defaulttimestamptype": "message.timestamp.type",
}
_KAFKAS: Mapping[str, str] = {
    **dict.fromkeys(
        ("segment.ms", "segment.jitter.ms"),
        "omit it: there is no active segment, since every append writes its own segments",
    ),
    **dict.fromkeys(
        ("min.insync.replicas", "unclean.leader.election.enable"),
        "omit it: a topic has no replicas of its own, the store replicates the data",
    ),
    **dict.fromkeys(
        ("local.retention.ms", "local.retention.bytes", "remote.storage.enable"),
        "omit it: there is one kind of store",
    ),
    **dict.fromkeys(
        ("flush.ms", "flush.messages"), "omit it: records are in the store when their append is acknowledged"
    ),
    "file.delete.delay.ms": "set versions.retention.ms: files remain for that time after a commit stopped naming them",
}
"""Settings of Kafka's topics that none here stands for, though some have names like theirs."""
_MAPRS: Mapping[str, str] = {
    **dict.fromkeys(
        ("produceperm", "consumeperm", "topicperm", "copyperm", "adminperm"),
        "omit it: the store and the catalog decide who may read and write",
    ),
    "copymetafrom": "set the values themselves: `lithify stream info STREAM` prints them",
    "ischangelog": "omit it: there are no change logs of tables",
    "pidexpirysecs": "omit it: there are no ids of producers",
    "defaultpartitions": "it is an attribute of streams: `lithify topic create TOPIC --partitions N` is for one topic",
    "autocreate": "it is an attribute of streams: `lithify stream edit STREAM --config autocreate=true`",
}


def counterpart(name: str) -> str | None:
    """The hint for a name of another system, None for any other."""
    if topics := _TOPICS.get(name):
        return f"the setting of a topic is {topics}"
    if other := _KAFKAS.get(name) or _MAPRS.get(name):
        return other
    for prefix in ("log.cleaner.", "cleaner."):
        if name.startswith(prefix):
            return _CLEANER.get(name.removeprefix(prefix))
    return None
