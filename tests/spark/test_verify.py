"""`verify` finds what was damaged on purpose, and names it (C1, C3, C4, C5, C8)."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import lithify
from lithify.api.topic import Topic
from lithify.cli.main import run
from lithify.columnar.files.access import local_path
from lithify.errors import WarehouseError
from lithify.model.finding import Finding, FindingKind
from lithify.model.segment import Segment
from lithify.model.topic.edit import TopicEdit
from spark.damage import replaced, with_value, without
from support.engines.kernel import compact_without_spark
from support.generated.chosen_keys import of_one_spark_group_hash
from support.servers.s3_endpoint import an_s3_endpoint
from support.servers.tcp_proxy import HttpError, a_proxy
from support.store.catalogs import describe_catalog

pytestmark = pytest.mark.spark

DAY_MS = 86_400_000


def records(first: int, last: int) -> list[lithify.Record]:
    """Offsets first to last of one log: twelve keys in turn, every fifth record a tombstone."""
    return [
        lithify.Record(
            key=b"key-%d" % (n % 12),
            value=None if n % 5 == 4 else b"value-%d" % n,
            timestamp=1_700_000_000_000 + n,
            headers=(("n", b"%d" % n),) if n % 3 == 0 else (),
        )
        for n in range(first, last)
    ]


@pytest.fixture
def topic(tmp_path: Path) -> Topic:
    """Offsets 0 to 59, compacted; then 60 to 79, not yet."""
    orders = lithify.open(str(tmp_path / "warehouse")).create_topic("orders")
    orders.append(records(0, 30))
    orders.append(records(30, 60))
    compact_without_spark(orders)
    orders.append(records(60, 80))
    return orders


def test_keys_that_spark_hashes_alike_take_no_longer_than_others(tmp_path: Path) -> None:
    """A producer knows which hashes Spark has, and which offsets they get."""
    count, seconds = 100_000, []
    for name, keys in (("first", [b"%08d" % n for n in range(count)]), ("chosen", of_one_spark_group_hash(count))):
        made = lithify.open(str(tmp_path / name)).create_topic("orders")
        made.append([lithify.Record(key, b"v", 1) for key in keys])
        compact_without_spark(made)
        begun = time.monotonic()
        assert made.verify().clean
        seconds.append(time.monotonic() - begun)
    assert seconds[1] < 2 * seconds[0] + 5


def test_it_keeps_to_a_read_rate(topic: Topic) -> None:
    rate = sum(segment.size_bytes for segment in segments(topic)) // 4
    report = topic.verify(read_rate=rate)
    assert report.clean
    assert report.duration_ms >= 1_000, "compressed columns alone, without footers"


def segments(topic: Topic) -> tuple[Segment, ...]:
    return topic.warehouse.store.segments(topic.state())


def rewritten_in_place(segment: Segment, change: Callable[[pa.Table], pa.Table]) -> None:
    """The same file with other content, as a stray program would leave it."""
    path = local_path(segment.path)
    assert path is not None
    table = pq.read_table(path, partitioning=None)
    pq.write_table(change(table), path, compression="zstd")


def found(topic: Topic, against: int | None = None) -> dict[FindingKind, list[Finding]]:
    kinds: dict[FindingKind, list[Finding]] = {}
    for finding in topic.verify(against=against).findings:
        kinds.setdefault(finding.kind, []).append(finding)
    return kinds


def test_an_undamaged_log_is_clean(topic: Topic) -> None:
    report = topic.verify()
    assert report.findings == ()
    assert report.clean
    assert (report.records, report.against) == (12 + 20, topic.versions()[0].version)


def test_python_that_looks_for_no_garbage_fills_no_jvm(topic: Topic) -> None:
    """What Spark has sent to all tasks stays in its memory until Python has forgotten the frame: it must be small."""
    topic.verify()
    gc.collect()
    gc.disable()
    try:
        before = live_bytes_of_jvm()
        for _ in range(2):
            topic.verify()
        assert live_bytes_of_jvm() - before < 64 * 2**20
    finally:
        gc.enable()


def live_bytes_of_jvm() -> int:
    jvm = SparkSession.active().sparkContext._jvm
    assert jvm is not None
    jvm.System.gc()
    runtime = jvm.Runtime.getRuntime()
    return int(runtime.totalMemory() - runtime.freeMemory())


def test_several_rounds_and_expired_tombstones_are_clean(topic: Topic) -> None:
    """C5, C18: tombstones that went in time are no finding, against any kept version."""
    first = topic.versions()[-1].version
    compact_without_spark(topic)
    topic.append(records(80, 90))
    compact_without_spark(topic, topic.warehouse.clock.now_ms() + 2 * DAY_MS)
    assert topic.history()[0].logs[0].losers.expired_tombstone > 0
    assert topic.verify().findings == ()
    assert topic.verify(against=first).findings == ()


def test_records_lost_or_altered_are_named(topic: Topic) -> None:
    """C1, C3: below the first dirty offset the winner of a key, and above it any record. C5: a tombstone, early."""
    against = topic.versions()[0].version
    replaced(topic, segments(topic)[0], lambda table: without(58, 59)(with_value(57, b"forged!!")(table)))
    replaced(topic, segments(topic)[-1], without(70))
    named = {f.offset: f for f in topic.verify(against=against).findings if f.offset is not None}
    assert {offset: f.kind for offset, f in named.items()} == {
        57: FindingKind.RECORD_ALTERED,
        58: FindingKind.RECORD_LOST,
        59: FindingKind.TOMBSTONE_REMOVED_EARLY,
        70: FindingKind.RECORD_LOST,
    }
    assert named[58].partition == 0 and "orders-0, offset 58" in named[58].message


def test_a_superseded_record_that_came_back_is_named(topic: Topic) -> None:
    """C4: a key has two records below the first dirty offset."""
    version = topic.versions()[0].version
    before = topic.warehouse.store.segments(topic.warehouse.store.load_version(topic.topic_name, version))
    (old,) = topic.warehouse.files.read(before[1], 0)
    replaced(topic, segments(topic)[0], lambda _: old.to_arrow())
    kept = found(topic, version)[FindingKind.SUPERSEDED_KEPT]
    assert [f.offset for f in kept] == list(range(30, 48))


def test_a_missing_file_is_named(topic: Topic) -> None:
    """C8."""
    segment = segments(topic)[0]
    Path(str(local_path(segment.path))).unlink()
    (missing,) = topic.verify().findings  # that all of its records are gone goes without saying
    assert (missing.kind, missing.path) == (FindingKind.FILE_MISSING, segment.path)


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def flip_a_bit(path: Path) -> None:
    """Pages have checksums: a file that is the same at each reading may still not be what was written."""
    data = bytearray(path.read_bytes())
    data[len(data) // 8] ^= 1
    path.write_bytes(bytes(data))


def change_a_value(path: Path) -> None:
    """As a stray program would leave it: one more byte is enough."""
    pq.write_table(with_value(58, b"value-58!")(pq.read_table(path, partitioning=None)), path, compression="zstd")


def reverse(path: Path) -> None:
    """Readers rely on ascending offsets (C1)."""
    table = pq.read_table(path, partitioning=None)
    pq.write_table(table.take(list(reversed(range(table.num_rows)))), path, compression="zstd")


def test_damaged_files_are_named(topic: Topic) -> None:
    """C8."""
    for first in range(80, 140, 20):
        topic.append(records(first, first + 20))
    *damaged, unharmed = segments(topic)
    for segment, damage in zip(damaged, (change_a_value, cut_short, flip_a_bit, reverse), strict=True):
        damage(Path(str(local_path(segment.path))))
    named = {f.path for f in found(topic)[FindingKind.FILE_DAMAGED]}
    assert named == {segment.path for segment in damaged} and unharmed.path not in named


def test_a_wrong_count_in_the_metadata_is_named(topic: Topic) -> None:
    state = topic.state()
    wrong = replace(state.log(0), clean=replace(state.log(0).clean, records=5))
    topic.warehouse.store.commit(state, TopicEdit(run_id="damage", time_ms=0, logs={0: wrong}))
    (finding,) = found(topic)[FindingKind.WRONG_METADATA]
    assert "clean" in finding.message


def test_a_store_that_refuses_a_file_ends_it_with_one_line(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What a task cannot read is no finding, as the file may be whole, and no fault of the program."""
    with an_s3_endpoint() as s3, a_proxy("127.0.0.1", s3.port) as wire:
        lake = {"uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"s3://{s3.make_bucket()}/lake"}
        describe_catalog(monkeypatch, type="sql", **lake, **s3.properties(wire.port))
        orders = lithify.open(catalog="prod").create_topic("orders")
        orders.append(records(0, 30))
        name = segments(orders)[0].path.rpartition("/")[2].encode()

        def refuse(request: bytes) -> None:
            if name in request.partition(b"\r\n")[0]:
                wire.answer(10**6, HttpError(403, "AccessDenied"))

        wire.on_request = refuse
        with pytest.raises(WarehouseError, match="access to it is refused") as refused:
            orders.verify(spark=session)
        assert name.decode() in refused.value.message
        wire.answer(0)
        assert run(["--catalog", "prod", "verify", "orders"]) == 1
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("error[Warehouse]: ") and str(refused.value.message) in error
