"""Which topics are cleaned, and by which settings: what the metadata log of their cluster says, and what is given."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from lithify.errors import DamagedError, InvalidInputError, RefusedError
from lithify.kafka_log.batches.encoding import encoded
from lithify.kafka_log.cleaning.clean_settings import CleanSettings, check_given, clean_settings
from lithify.kafka_log.cleaning.cluster_configs import ClusterConfigs
from lithify.kafka_log.cleaning.directory_cleaner import DirectoryCleaner
from lithify.kafka_log.cleaning.log_round import CleanRequest
from lithify.kafka_log.cleaning.metadata_log import cluster_configs
from lithify.kafka_log.directories.folders import CLEAN_SHUTDOWN
from lithify.reports.rounds.cleaned_logs import CleanedLog
from support.kafka.batches import batch, table_of
from support.kafka.log_files import TasksHere, write_stage
from support.kafka.metadata import (
    ABORT,
    BEGIN,
    BROKER,
    END,
    Record,
    a_setting,
    a_topic,
    batch_of,
    bytes_of,
    id_of,
    removed,
    snapshot_of,
    text_id,
    write_log,
)

CASE = json.loads((Path(__file__).parents[2] / "kafka_cases" / "data" / "fuzz_txn_11.json").read_text())
COMPACT = {"cleanup.policy": "compact"}
POLICY = a_setting("t", "cleanup.policy", "compact")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A directory whose broker's cleaner has been in its only topic before."""
    (tmp_path / "scratch").mkdir()
    return write_stage(tmp_path / "data", "t", CASE, CASE["before_round_3"]).parent


def clean(root: Path, dry_run: bool = True, **config: str) -> CleanedLog:
    given = {name.replace("_", "."): value for name, value in config.items()}
    now_ms = CASE["after_round_3"]["round_now_ms"]
    request = CleanRequest(root, ["t"], given, lambda: now_ms, dry_run=dry_run)
    (log,) = DirectoryCleaner(TasksHere(root.parent / "scratch"), request).clean().logs
    return log


def configs(root: Path, may_be_torn: bool = False) -> ClusterConfigs:
    return cluster_configs(root / "__cluster_metadata-0", may_be_torn=may_be_torn)


def policy(root: Path, *records: Record | bytes, node: str = "1") -> str | None:
    write_log(root, *records)
    return configs(root).of("t", node).get("cleanup.policy")


def without_log(root: Path) -> None:
    for path in (root / "__cluster_metadata-0").iterdir():
        path.unlink()
    (root / "__cluster_metadata-0").rmdir()


def test_a_topic_that_is_not_compacted_is_refused(root: Path) -> None:
    """Whatever is given: of a topic of deletes only the last value of each key would be left."""
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    write_log(root, a_topic("t"), POLICY, a_setting("t", "cleanup.policy", "delete"))
    for given in ({}, {"cleanup_policy": "compact"}):
        with pytest.raises(RefusedError, match=r"t: the metadata log of its cluster says cleanup.policy=delete"):
            clean(root, dry_run=False, **given)
    write_log(root, a_topic("t"), POLICY)
    with pytest.raises(RefusedError, match=r"cleanup\.policy=delete: only topics with compact"):
        clean(root, dry_run=False, cleanup_policy="delete")
    assert {path: path.read_bytes() for path in before} == before


def test_a_stated_policy_need_not_be_given(root: Path) -> None:
    """Nor need a cleaner have been there."""
    (root / "cleaner-offset-checkpoint").unlink()
    for stated in ("compact", "compact,delete", "delete, compact"):
        write_log(root, a_topic("t"), a_setting("t", "cleanup.policy", stated))
        assert clean(root).segments_in
        assert clean(root, cleanup_policy="compact").segments_in


def test_the_last_record_of_a_setting_counts(tmp_path: Path) -> None:
    other = a_setting("u", "cleanup.policy", "delete")
    assert policy(tmp_path, a_topic("t"), POLICY, other) == "compact"
    changed = a_setting("t", "cleanup.policy", "compact,delete")
    assert policy(tmp_path, a_topic("t"), POLICY, changed) == "compact,delete"
    assert policy(tmp_path, a_topic("t"), POLICY, a_setting("t", "cleanup.policy", None)) is None
    assert policy(tmp_path, a_topic("t"), POLICY, removed("t"), a_topic("t", b"x" * 16)) is None


def test_settings_of_brokers(tmp_path: Path) -> None:
    """The one of the broker, then that of all; a topic's own come first."""
    every = a_setting("", "log.cleanup.policy", "compact", BROKER)
    first = a_setting("1", "log.cleanup.policy", "delete", BROKER)
    assert policy(tmp_path, a_topic("t"), every) == "compact"
    assert policy(tmp_path, a_topic("t"), every, first) == "delete"
    assert policy(tmp_path, a_topic("t"), every, first, node="2") == "compact"
    assert policy(tmp_path, a_topic("t"), first, POLICY) == "compact"
    assert policy(tmp_path, a_topic("t"), a_setting("", "cleanup.policy", "compact", BROKER)) is None


def test_the_broker_is_that_of_the_directory(root: Path) -> None:
    own = a_setting("7", "log.cleanup.policy", "delete", BROKER)
    write_log(root, a_topic("t"), a_setting("", "log.cleanup.policy", "compact", BROKER), own)
    assert clean(root).segments_in
    for name in ("node.id", "broker.id"):
        (root / "meta.properties").write_text(f"version=1\n{name}=7\n")
        with pytest.raises(RefusedError, match=r"cleanup\.policy=delete"):
            clean(root)
    (root / "meta.properties").write_text("cluster.id=c\n")
    with pytest.raises(RefusedError, match="does not say which broker has the directory"):
        clean(root)


def test_transactions_of_the_metadata_log(tmp_path: Path) -> None:
    """One that was aborted, or has not ended, has changed nothing."""
    change = (BEGIN, a_setting("t", "cleanup.policy", "delete"), removed("t"))
    assert policy(tmp_path, a_topic("t"), POLICY, *change, ABORT) == "compact"
    assert policy(tmp_path, a_topic("t"), POLICY, *change) == "compact"
    assert policy(tmp_path, a_topic("t"), POLICY, *change, END) is None
    assert policy(tmp_path, BEGIN, a_topic("t"), POLICY, END, a_setting("t", "x", "y"), ABORT) == "compact"


def test_a_snapshot_and_what_follows_it(tmp_path: Path) -> None:
    folder = write_log(tmp_path, a_topic("t"), a_setting("t", "cleanup.policy", "delete"))
    (folder / f"{1:020}-{1:010}.checkpoint").write_bytes(snapshot_of([a_topic("v")]))
    (folder / f"{2:020}-{1:010}.checkpoint").write_bytes(snapshot_of([a_topic("t"), POLICY]))
    (folder / f"{9:020}-{1:010}.checkpoint.part").write_bytes(b"x")
    assert configs(tmp_path).of("t", "1") == COMPACT
    (folder / f"{0:020}.log").unlink()
    (folder / f"{2:020}.log").touch()
    assert configs(tmp_path).of("t", "1") == COMPACT
    write_log(tmp_path, a_setting("t", "cleanup.policy", "delete"), start=2)
    assert configs(tmp_path).of("t", "1") == {"cleanup.policy": "delete"}
    for name in (f"{3:020}.log", "none"):
        (folder / f"{2:020}.log").rename(folder / name)
        with pytest.raises(DamagedError, match="no segment begins at or before offset 2"):
            configs(tmp_path)
        (folder / name).rename(folder / f"{2:020}.log")


def test_segments_of_the_metadata_log_are_read_in_order(tmp_path: Path) -> None:
    write_log(tmp_path, a_topic("t"), POLICY)
    folder = write_log(tmp_path, a_setting("t", "cleanup.policy", "delete"), start=2)
    assert configs(tmp_path).of("t", "1") == {"cleanup.policy": "delete"}
    (folder / f"{2:020}.log").rename(folder / f"{3:020}.log")
    (folder / f"{3:020}.log").write_bytes(batch_of(3, [POLICY]))
    with pytest.raises(DamagedError, match=r"3\.log: the segment before it ends at offset 2"):
        configs(tmp_path)


def damaged(data: bytes) -> Sequence[tuple[bytes, str]]:
    later = bytearray(bytes_of(POLICY))
    later[2] = 1
    frame = bytearray(bytes_of(POLICY))
    frame[0] = 2
    return [
        (data[:-1] + bytes([data[-1] ^ 1]), "checksum"),
        (data[:-1], "ends within a batch"),
        (data + b"\0" * 70, "cannot have 0 bytes"),
        (batch_of(0, [bytes(later)]), "a ConfigRecord of version 1, not 0 to 0"),
        (batch_of(0, [bytes(frame)]), "frame version 2, not 1"),
        (batch_of(0, [bytes_of(POLICY)[:9]]), "ends too early|beyond the end"),
        (batch_of(0, [b"\x80"]), "ends too early"),
        (data + batch_of(1, [POLICY]), "it begins at offset 1, not at 2"),
        (data + batch_of(3, [POLICY]), "it begins at offset 3, not at 2"),
        (batch_of(1, [POLICY]), "it begins at offset 1, not at 0"),
    ]


@pytest.mark.parametrize("number", range(10))
def test_a_damaged_metadata_log_is_refused(root: Path, number: int) -> None:
    """It may have said later that a topic is not compacted."""
    path = write_log(root, a_topic("t"), POLICY) / f"{0:020}.log"
    data, says = damaged(path.read_bytes())[number]
    path.write_bytes(data)
    with pytest.raises(DamagedError, match=says) as error:
        clean(root, cleanup_policy="compact")
    assert str(path) in str(error.value)


def test_a_snapshot_without_its_end_is_refused(root: Path) -> None:
    folder = write_log(root, start=1)
    for data in (snapshot_of([a_topic("t"), POLICY], is_whole=False), b""):
        (folder / f"{1:020}-{1:010}.checkpoint").write_bytes(data)
        with pytest.raises(DamagedError, match="a snapshot without its end"):
            clean(root)


def test_a_metadata_log_that_a_crash_has_torn(root: Path) -> None:
    """A node cuts it there; no other segment is torn."""
    path = write_log(root, a_topic("t"), POLICY) / f"{0:020}.log"
    path.write_bytes(path.read_bytes() + batch_of(2, [POLICY])[:-1])
    (root / CLEAN_SHUTDOWN).unlink()
    assert configs(root, may_be_torn=True).of("t", "1") == COMPACT
    write_log(root, start=2)
    with pytest.raises(DamagedError, match="ends within a batch"):
        configs(root, may_be_torn=True)


def test_kinds_that_are_not_read_are_passed_over(tmp_path: Path) -> None:
    assert policy(tmp_path, a_topic("t"), b"\1\x65\5whatever", POLICY, b"\1\0\1") == "compact"


def test_folders_that_the_cluster_has_no_topic_for(root: Path) -> None:
    """The broker deletes them, or another topic has the name now."""
    (root / "t-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {text_id('t')}\n")
    assert clean(root).segments_in
    for records in ([a_topic("u")], [a_topic("t", b"x" * 16), POLICY], [a_topic("t"), POLICY, removed("t")]):
        write_log(root, *records)
        with pytest.raises(RefusedError, match="t-0: it is of no topic that the cluster has"):
            clean(root, cleanup_policy="compact")


def test_without_a_stated_policy_one_is_given_and_the_cleaner_was_there(root: Path) -> None:
    """Where there is no metadata log, and where its topic has the policy of a server.properties."""
    cleaner = root / "cleaner-offset-checkpoint"
    text = cleaner.read_text()
    for is_there in (True, False):
        write_log(root, a_topic("t"))
        if not is_there:
            without_log(root)
        cleaner.write_text(text)
        assert clean(root, cleanup_policy="compact").segments_in
        with pytest.raises(
            RefusedError, match=r"t: no metadata log states its cleanup.policy, so it has the policy of its"
        ):
            clean(root)
        cleaner.unlink()
        with pytest.raises(RefusedError, match="no cleaner was in it yet"):
            clean(root, cleanup_policy="compact")


def test_without_a_stated_policy_records_without_keys_are_refused(root: Path) -> None:
    """No broker takes one into a compacted topic. Above the end of the round, nothing is said of them."""
    *_, active = sorted((root / "t-0").glob("*.log"))
    with active.open("ab") as file:
        file.write(_keyless(10_000))
    without_log(root)
    log = clean(root, dry_run=False, cleanup_policy="compact")
    assert log.error is None
    dirty = sorted((root / "t-0").glob("*.log"))[-1]
    for checkpoint in ("replication", "recovery-point"):
        (root / f"{checkpoint}-offset-checkpoint").write_text("0\n1\nt 0 20001\n")
    (root / "t-0" / f"{20_000:020}.log").write_bytes(batch(20_000, b"x"))
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    log = clean(root, dry_run=False, cleanup_policy="compact")
    assert log.error_code == "Refused" and f"{dirty}: the record at offset 10000 has no key" in str(log.error)
    assert {path: path.read_bytes() for path in before} == before
    write_log(root, a_topic("t"), POLICY)
    assert clean(root).error is None
    without_log(root)
    (root / "cleaner-offset-checkpoint").write_text("0\n1\nt 0 20000\n")
    (root / "t-0" / f"{20_001:020}.log").touch()
    log = clean(root, cleanup_policy="compact")
    assert log.error is None and log.segments_in


def _keyless(offset: int) -> bytes:
    (data,) = encoded(table_of([(offset, 1, 0, None, b"v", None)]))
    return data


def test_a_metadata_log_in_another_directory(root: Path, tmp_path: Path) -> None:
    without_log(root)
    other = tmp_path / "meta"
    other.mkdir()
    with pytest.raises(InvalidInputError, match=f"{other} has no __cluster_metadata-0"):
        clean(root, metadata_log_dir=str(other))
    write_log(other, a_topic("t"), POLICY)
    assert clean(root, metadata_log_dir=str(other)).segments_in
    assert clean(root, metadata_log_dir=str(other)).segments_in
    write_log(root, a_topic("t"), a_setting("t", "cleanup.policy", "delete"))
    with pytest.raises(RefusedError, match="so no other says how its topics are set up"):
        clean(root, metadata_log_dir=str(other))
    without_log(root)
    for place, cluster in ((root, "A"), (other, "B")):
        (place / "meta.properties").write_text(f"cluster.id={cluster}\nnode.id=1\n")
    with pytest.raises(RefusedError, match=r"is of the cluster B, and .* of A"):
        clean(root, metadata_log_dir=str(other))
    (other / "meta.properties").write_text("version=7\n")
    with pytest.raises(InvalidInputError, match=f"{other}/meta.properties: its version is '7'"):
        clean(root, metadata_log_dir=str(other))


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"cleanup.policy": "delete"}, "only topics with compact"),
        ({"cleanup.policy": "compact", "retention.ms": "5"}, "retention.ms is not a setting"),
        ({"segment.bytes": "2GiB"}, "at most 2147483647"),
        ({"segment.bytes": "much"}, "segment.bytes: 'much'"),
        ({"delete.retention.ms": "-1"}, "below zero"),
    ],
)
def test_settings_that_are_refused(root: Path, config: dict[str, str], says: str) -> None:
    with pytest.raises(RefusedError, match=says):
        check_given(config)
    with pytest.raises(RefusedError, match=says):
        clean(root, **{name.replace(".", "_"): value for name, value in config.items()})


def test_settings_by_kafkas_names() -> None:
    given = {"delete.retention.ms": "1h", "segment.bytes": "2097152", "producer.id.expiration.ms": "5m"}
    found = clean_settings("t", given, {**COMPACT, "min.compaction.lag.ms": "7"})
    assert found == CleanSettings(3_600_000, 7, 2**21, producer_id_expiration_ms=300_000, is_stated=True)


@pytest.mark.parametrize("name", ["delete.retention.ms", "min.compaction.lag.ms", "producer.id.expiration.ms"])
def test_a_shorter_time_than_the_topic_has_is_refused(name: str) -> None:
    stated = {**COMPACT, name: "1000"}
    field: Any = name.replace(".", "_")
    assert getattr(clean_settings("t", {}, stated), field) == 1000
    assert getattr(clean_settings("t", {name: "2s"}, stated), field) == 2000
    with pytest.raises(RefusedError, match=f"{name}=999: t has 1000 in its cluster"):
        clean_settings("t", {name: "999"}, stated)


def test_ids_of_topics(tmp_path: Path) -> None:
    write_log(tmp_path, a_topic("t"), a_topic("u"))
    assert configs(tmp_path).topics == {"t": text_id("t"), "u": text_id("u")}
    assert id_of("t") != id_of("u")
