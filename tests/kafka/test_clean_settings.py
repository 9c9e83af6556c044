"""Which topics of a real broker's directory are cleaned: those that its metadata log says are compacted, as it does."""

from __future__ import annotations

import shutil
import socket
import struct
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ConfigSource, ResourceType
from pyspark.sql import SparkSession

from lithify.api.kafka_files.cleaning import clean_log_directory
from lithify.errors import RefusedError
from lithify.kafka_log.batches.frames import Frame, frames_of
from lithify.kafka_log.cleaning.cluster_configs import OF_BROKERS
from lithify.kafka_log.cleaning.metadata_log import METADATA_FOLDER, cluster_configs
from lithify.model.record import Record
from support.kafka.broker import KafkaBroker, a_broker
from support.kafka.live_cleaner import LiveLog, cleaned_to
from support.kafka.metadata import BROKER
from support.servers.tcp_proxy import wait_until

IN_THE_LOG = (
    ConfigSource.DYNAMIC_TOPIC_CONFIG,
    ConfigSource.DYNAMIC_BROKER_CONFIG,
    ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG,
)
INCREMENTAL_ALTER_CONFIGS = 44
DAY_MS = 86_400_000
POLICIES = {
    "held": "compact",
    "both": "compact,delete",
    "kept": "delete",
    "changed": "compact",
    "turned": "delete",
    "default": "",
}


COMPACTED = ("held", "both", "turned", "default")


@pytest.fixture(scope="module")
def own_broker() -> Iterator[KafkaBroker]:
    """One that can be stopped, and notes snapshots of its metadata often."""
    often = {"metadata_log_max_record_bytes_between_snapshots": "1"}
    with a_broker(replica_high_watermark_checkpoint_interval_ms="200", **often) as broker:
        yield broker


def alter_broker(broker: KafkaBroker, node: str, **config: str) -> None:
    """Of one, or of all where `node` is empty, for which the client has no name: the request is written here."""
    pairs = [(name.replace("_", ".").encode(), value.encode()) for name, value in config.items()]
    entries = b"".join(_text(name) + b"\0" + _text(value) for name, value in pairs)
    body = struct.pack(">ib", 1, BROKER) + _text(node.encode()) + struct.pack(">i", len(pairs)) + entries + b"\0"
    request = struct.pack(">hhih", INCREMENTAL_ALTER_CONFIGS, 0, 1, -1) + body
    with socket.create_connection(("127.0.0.1", broker.port), 30) as connection:
        connection.sendall(struct.pack(">i", len(request)) + request)
        with connection.makefile("rb") as answers:
            answer = answers.read(struct.unpack(">i", answers.read(4))[0])
    assert struct.unpack_from(">iiih", answer) == (1, 0, 1, 0)


def _text(data: bytes) -> bytes:
    return struct.pack(">h", len(data)) + data


def told(broker: KafkaBroker, topic: str) -> Mapping[str, str]:
    """What the broker says of the settings of a topic that it has from its metadata log."""
    (found,) = broker.admin().describe_configs([ConfigResource(ResourceType.TOPIC, topic)]).values()
    entries = found.result(timeout=30).values()
    return {
        one.name: one.value
        for one in entries
        if one.name in OF_BROKERS and ConfigSource(one.source) in IN_THE_LOG and one.value is not None
    }


def a_log(broker: KafkaBroker, **config: str) -> LiveLog:
    log = LiveLog(
        broker, {name.replace("_", "."): value for name, value in config.items()}, time.time_ns() // 10**6 - DAY_MS
    )
    for tag in (b"1", b"2"):
        log.append([Record(key, tag) for key in (b"a", b"b", b"c")])
        log.roll()
    return log


def unset(broker: KafkaBroker, topic: str, name: str) -> None:
    entry = ConfigEntry(name, None, incremental_operation=AlterConfigOpType.DELETE)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    (done,) = broker.admin().incremental_alter_configs([resource]).values()
    done.result(timeout=30)


def check_snapshot(folder: Path, copy: Path, names: Mapping[str, Mapping[str, str]]) -> None:
    """The latest one says the same by itself, or with what came later."""
    snapshot = max(path for path in folder.glob("*-*.checkpoint"))
    end = int(snapshot.name[:20])
    copy.mkdir()
    shutil.copy(snapshot, copy)
    data = b"".join(
        frame.data for path in sorted(folder.glob("*.log")) for frame in frames(path) if frame.offset >= end
    )
    (copy / f"{end:020}.log").write_bytes(data)
    found = cluster_configs(copy, may_be_torn=False)
    assert {name: found.of(name, "1") for name in names} == names


def frames(path: Path) -> list[Frame]:
    with path.open("rb") as file:
        return [*frames_of(file)]


def latest(log: LiveLog) -> Mapping[bytes | None, Record]:
    return {record.key: record for record in log._committed()}


def clean(broker: KafkaBroker, session: SparkSession, log: LiveLog, **config: str) -> int:
    """Returns the number of records that went."""
    given = {name.replace("_", "."): value for name, value in config.items()}
    (cleaned,) = clean_log_directory(broker.data, [log.name], given, spark=session).logs
    assert cleaned.error is None
    return cleaned.records_in - cleaned.records_out


@pytest.mark.timeout(300)
def test_settings_are_those_of_the_metadata_log(own_broker: KafkaBroker, session: SparkSession, tmp_path: Path) -> None:
    broker = own_broker
    logs = {
        name: a_log(broker, cleanup_policy=policy or "delete", retention_ms="-1") for name, policy in POLICIES.items()
    }
    unset(broker, logs["default"].name, "cleanup.policy")
    broker.alter_topic(logs["changed"].name, cleanup_policy="delete")
    broker.alter_topic(logs["turned"].name, cleanup_policy="compact", delete_retention_ms="7200000")
    alter_broker(broker, "1", log_cleaner_min_compaction_lag_ms="5")
    alter_broker(broker, "", log_cleanup_policy="compact", log_cleaner_min_compaction_lag_ms="900")
    gone = a_log(broker)
    broker.delete_topic(gone.name)
    names = {log.name: told(broker, log.name) for log in logs.values()}
    before = {name: (log._committed(), latest(log)) for name, log in logs.items()}
    folder = broker.data / METADATA_FOLDER
    wait_until(lambda: bool([*folder.glob("*-*.checkpoint")]), "there is no snapshot")
    broker.stop()
    configs = cluster_configs(folder, may_be_torn=False)
    assert {name: configs.of(name, "1") for name in names} == names
    assert names[logs["turned"].name]["delete.retention.ms"] == "7200000"
    assert names[logs["turned"].name]["min.compaction.lag.ms"] == "5"
    assert gone.name not in configs.topics
    check_snapshot(folder, tmp_path / METADATA_FOLDER, names)
    for name in ("kept", "changed"):
        for config in ({}, {"cleanup_policy": "compact"}):
            with pytest.raises(RefusedError, match=r"says cleanup.policy=delete"):
                clean(broker, session, logs[name], **config)
    with pytest.raises(RefusedError, match=r"delete.retention.ms=1h: .* has 7200000 in its cluster"):
        clean(broker, session, logs["turned"], delete_retention_ms="1h")
    removed = {name: clean(broker, session, logs[name]) for name in COMPACTED}
    assert min(removed.values()) > 0
    assert not [*broker.data.glob("*/*.cleaned"), *broker.data.glob("*/*.swap")]
    broker.start()
    for name, log in logs.items():
        records, by_key = before[name]
        assert latest(log) == by_key
        assert len(log._committed()) == len(records) - removed.get(name, 0)
    for name in COMPACTED:
        assert cleaned_to(broker, logs[name].name) > 0
