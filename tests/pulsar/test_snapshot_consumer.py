"""A consumer that starts from the lake and goes on live from Pulsar: no gap, no repeat, with Pulsar's ids (C52)."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import islice
from pathlib import Path
from threading import Event, Thread

import pytest

import lithify
from lithify.errors import InvalidSettingError, LogTruncatedError, RefusedError, SourceLostError, SourceWentBackError
from lithify.model.message import MessageId
from lithify.model.record import Record
from lithify.pulsar.client import ClientConfig
from lithify.pulsar_consumer import PulsarSnapshotConsumer
from support.engines.kernel import compact_without_spark
from support.pulsar.copies import PulsarCopy, namespace_retention, trim
from support.pulsar.server import PulsarServer
from support.servers.tcp_proxy import wait_until

UNBATCHED = {"batching_enabled": False}


@pytest.fixture
def copy(tmp_path: Path, pulsar_server: PulsarServer, session) -> PulsarCopy:
    return PulsarCopy(lithify.open(str(tmp_path / "lake")), pulsar_server, session, pulsar_server.make_topic())


def taken(consumer: PulsarSnapshotConsumer) -> list[Record]:
    """Everything up to Pulsar's end."""
    found = []
    while not consumer.caught_up():
        if (record := consumer.poll()) is not None:
            found.append(record)
    return found


def ids(records: list[Record]) -> list[MessageId]:
    return [record.envelope.id for record in records if record.envelope is not None]


@pytest.mark.parametrize("partitions", [0, 2])
def test_the_compacted_part_comes_from_the_lake_and_the_rest_from_pulsar(tmp_path, pulsar_server, session, partitions):
    """The records from Pulsar are those that the lake has of them later: ids, offsets, all fields."""
    topic = pulsar_server.make_topic(partitions=partitions)
    copy = PulsarCopy(lithify.open(str(tmp_path / "lake")), pulsar_server, session, topic, partitions)
    copy.produce(0, 60, batching_max_messages=7)
    assert copy.ingest().error is None
    compact_without_spark(copy.copy)
    logs = copy.copy.state().partitions
    lake = {p: list(copy.copy.reader(p, compacted=True)) for p in logs}
    ends = {p: copy.copy.state().log(p).log_end_offset for p in logs}
    copy.produce(60, 90, batching_max_messages=4)
    with PulsarSnapshotConsumer(copy.copy, copy.config) as consumer:
        found = taken(consumer)
    assert copy.ingest().error is None
    for p in logs:
        live = list(islice(copy.copy.reader(p, ends[p]), 1000))
        assert live
        assert [r for r in found if r.partition == p] == lake[p] + live
    assert len(found) < 90


def test_it_goes_on_while_a_producer_writes_and_rounds_run(copy):
    copy.produce(0, 40, batching_max_messages=6)
    assert copy.ingest().error is None
    done = Event()

    def write() -> None:
        for n in range(40, 100, 20):
            copy.produce(n, n + 20, batching_max_messages=6)
            copy.ingest()
            compact_without_spark(copy.copy)
        copy.produce(100, 110)
        done.set()

    writer = Thread(target=write)
    writer.start()
    found: list[Record] = []
    with PulsarSnapshotConsumer(copy.copy, copy.config) as consumer:
        while not (done.is_set() and consumer.caught_up()):
            if (record := consumer.poll(0.1)) is not None:
                found.append(record)
    writer.join()
    theirs = copy.theirs()[0]
    assert ids(found) == sorted(set(ids(found)))
    live = {message[0]: message for message in theirs}
    assert all((r.key, r.value or b"") == (live[i][1], live[i][2]) for r, i in zip(found, ids(found), strict=True))
    kept = {message[1]: message[0] for message in theirs if message[1] is not None}  # the last of every key
    assert set(kept.values()) <= set(ids(found))
    assert ids(found)[-10:] == [message[0] for message in theirs][-10:]


def test_a_restart_goes_on_where_it_stopped(copy, tmp_path):
    """In the lake, at the seam, within a batch of Pulsar; also once the lake has more."""
    copy.produce(0, 30, batching_max_messages=30)
    assert copy.ingest().error is None
    copy.produce(30, 60, batching_max_messages=30)
    with PulsarSnapshotConsumer(copy.copy, copy.config) as consumer:
        whole = taken(consumer)
    assert len(whole) == 60
    stops = (1, 29, 30, 31, 47, 60)
    for stop in stops:
        with PulsarSnapshotConsumer(copy.copy, copy.config, position=tmp_path / f"{stop}.json") as consumer:
            assert list(islice(consumer, stop)) == whole[:stop]
    for stop in stops[::2]:
        with PulsarSnapshotConsumer(copy.copy, copy.config, position=tmp_path / f"{stop}.json") as consumer:
            assert taken(consumer) == whole[stop:]
    assert copy.ingest().error is None
    for stop in stops[1::2]:
        with PulsarSnapshotConsumer(copy.copy, copy.config, position=tmp_path / f"{stop}.json") as consumer:
            assert taken(consumer) == whole[stop:]


def test_a_table_is_filled_and_kept(copy):
    copy.produce(0, 20)
    assert copy.ingest().error is None
    compact_without_spark(copy.copy)
    copy.produce(20, 25)
    table: dict[bytes, Record] = {}
    with PulsarSnapshotConsumer(copy.copy, copy.config) as consumer:
        consumer.fill(table)
        copy.produce(25, 30)
        assert consumer.fill(table) == 5
        assert consumer.fill(table) == 0
    latest = {key: data for _, key, data, _, _ in copy.theirs()[0] if key is not None}
    assert {key: record.value for key, record in table.items()} == {key: data for key, data in latest.items() if data}


def test_new_partitions_are_taken_up(tmp_path, pulsar_server, session, monkeypatch):
    monkeypatch.setattr("lithify.service.snapshot.lake_and_live.STORE_MS", 0)
    topic = pulsar_server.make_topic(partitions=1)
    copy = PulsarCopy(lithify.open(str(tmp_path / "lake")), pulsar_server, session, topic, 1)
    copy.produce(0, 10)
    assert copy.ingest().error is None
    with PulsarSnapshotConsumer(copy.copy, copy.config) as consumer:
        assert len(taken(consumer)) == 10
        pulsar_server.admin("POST", f"{topic.replace('://', '/')}/partitions", json=3)
        copy = replace(copy, partitions=3)
        copy.produce(10, 40, **UNBATCHED)
        found: list[Record] = []

        def all_there() -> bool:
            found.extend(taken(consumer))
            return len(found) == 30

        wait_until(all_there, "the new partitions are not read")
        assert {r.partition for r in found} == {0, 1, 2}
    assert copy.ingest().error is None
    for p in (1, 2):
        assert [r for r in found if r.partition == p] == list(copy.copy.reader(p))


def test_what_is_trimmed_meanwhile_and_copied_is_read_in_the_lake(copy):
    """Also by a consumer that is live already."""
    namespace_retention(copy.server, copy.topic, 0)
    copy.produce(0, 5, **UNBATCHED)
    assert copy.ingest().error is None
    with PulsarSnapshotConsumer(copy.copy, copy.config) as consumer:
        assert len(taken(consumer)) == 5
        copy.produce(5, 9, **UNBATCHED)
        assert copy.ingest().error is None
        trim(copy)
        copy.produce(9, 12, **UNBATCHED)
        assert [r.offset for r in taken(consumer)] == list(range(5, 12))


def test_what_is_trimmed_and_not_copied_is_named(copy):
    namespace_retention(copy.server, copy.topic, 0)
    copy.produce(0, 5)
    assert copy.ingest().error is None
    at = copy.copy.state().log(0).copied_to
    (name,) = copy.server.internal_stats(copy.topic)["cursors"]
    with PulsarSnapshotConsumer(copy.copy, copy.config) as consumer:
        assert len(taken(consumer)) == 5
        copy.server.admin("DELETE", f"{copy.topic.replace('://', '/')}/subscription/{name}")
        copy.produce(5, 9)
        trim(copy)
        copy.produce(9, 12)
        with pytest.raises(SourceLostError, match=f"messages after {at} may have been trimmed"):
            taken(consumer)
    with pytest.raises(SourceLostError, match=f"messages after {at} may have been trimmed"):
        PulsarSnapshotConsumer(copy.copy, copy.config)


def test_a_copy_that_lost_what_the_consumer_read_is_not_gone_on_with(copy, tmp_path):
    """Its offsets are of other messages."""
    namespace_retention(copy.server, copy.topic, 0)
    copy.produce(0, 5)
    assert copy.ingest().error is None
    copy.produce(5, 9)
    path = tmp_path / "position.json"
    with PulsarSnapshotConsumer(copy.copy, copy.config, position=path) as consumer:
        assert len(taken(consumer)) == 9
    stored = json.loads(path.read_text())["lake"]
    assert stored == copy.copy.topic_name.stored != copy.copy.name  # as the files of earlier versions have it
    (name,) = copy.server.internal_stats(copy.topic)["cursors"]
    copy.server.admin("DELETE", f"{copy.topic.replace('://', '/')}/subscription/{name}")
    trim(copy)
    copy.produce(9, 29)
    assert copy.ingest(accepts_loss=True).error is None
    with pytest.raises(LogTruncatedError, match="this consumer has read 9 messages up to"):
        PulsarSnapshotConsumer(copy.copy, copy.config, position=path)


def test_a_recreated_topic_is_another_one(copy, tmp_path):
    copy.produce(0, 5)
    assert copy.ingest().error is None
    path = copy.topic.replace("://", "/")
    with PulsarSnapshotConsumer(copy.copy, copy.config, position=tmp_path / "at.json") as consumer:
        assert len(taken(consumer)) == 5
        copy.server.admin("DELETE", f"{path}?force=true")
        copy.server.admin("PUT", path)
        copy.produce(5, 9)
        with pytest.raises(SourceWentBackError, match="was deleted and recreated"):
            taken(consumer)
    with pytest.raises(SourceWentBackError, match="was deleted and recreated"):
        PulsarSnapshotConsumer(copy.copy, copy.config)


def test_what_cannot_be_consumed_is_refused(copy):
    copy.produce(0, 1)
    assert copy.ingest().error is None
    with pytest.raises(InvalidSettingError, match="the admin URL of the Pulsar cluster is missing"):
        PulsarSnapshotConsumer(copy.copy, ClientConfig(copy.server.service_url))
    with pytest.raises(RefusedError, match="its records have no message ids"):
        PulsarSnapshotConsumer(copy.lake.create_topic("plain"), copy.config, pulsar_topic=copy.topic)
