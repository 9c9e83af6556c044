"""Topics imported from a broker's files: the same as a copy of the living broker, resumed, continued, refused."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import lithify
from lithify.api.lake import Lake
from lithify.errors import DamagedError, InvalidInputError, RefusedError
from lithify.reports.ingest import IngestReport
from support.kafka.broker import KafkaBroker
from support.kafka.ingest import KafkaCopy
from support.servers.tcp_proxy import wait_until

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
UNCLEANED = {"cleanup_policy": "compact", "min_cleanable_dirty_ratio": "1.0"}


@pytest.fixture
def place(tmp_path: Path, broker: KafkaBroker, session: SparkSession) -> KafkaCopy:
    topic = broker.make_topic(2, **UNCLEANED, segment_ms="200")
    return KafkaCopy(lithify.open(str(tmp_path / "lake")), broker, session, topic)


def files_of(place: KafkaCopy, into: Path) -> Path:
    """The broker's directory, without other topics, as a copy of a stopped one: the ends of transactions are in it."""
    for partition in range(2):
        wait_until(partial(_all_is_stable, place, partition), "a transaction has no end", 30)
    into.mkdir()
    for path in place.broker.data.iterdir():
        if path.is_file() and path.name != ".lock":
            shutil.copy(path, into)
        elif path.name.startswith(f"{place.topic}-"):
            shutil.copytree(path, into / path.name)
    return into


def _all_is_stable(place: KafkaCopy, partition: int) -> bool:
    ends = (place.broker.log_start_and_end(place.topic, partition, committed=only) for only in (True, False))
    return next(ends) == next(ends)


def imported(place: KafkaCopy, *directories: Path, **how: Any) -> IngestReport:
    how = {"into": "copy", "spark": place.session, **how}
    (report,) = place.lake.import_kafka(directories, [place.topic], **how)
    return report


def test_a_copy_has_all_that_is_committed(place: KafkaCopy, tmp_path: Path) -> None:
    for number, codec in enumerate(CODECS):
        place.produce(20 * number, 20 * number + 20, codec=codec)
        time.sleep(0.2)
    producer = place.broker.producer(transactional_id=place.topic)
    producer.init_transactions(30)
    for ends in (producer.commit_transaction, producer.abort_transaction):
        producer.begin_transaction()
        for n in range(6):
            producer.produce(place.topic, key=b"t%d" % n, value=b"in a transaction", partition=n % 2)
        ends(30)
    place.produce(100, 110)
    report = imported(place, files_of(place, tmp_path / "files"))
    assert report.error is None and report.records == 116
    place.check_equal()


def test_it_says_what_it_reads_and_why_it_ends_before_the_end(place: KafkaCopy, tmp_path: Path) -> None:
    place.produce(0, 20, partition=0)
    files = files_of(place, tmp_path / "files")
    producer = place.broker.producer(transactional_id=place.topic)
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(place.topic, key=b"k", value=b"in a transaction", partition=0)
    producer.flush()
    shutil.copytree(place.broker.data / f"{place.topic}-0", files / f"{place.topic}-0", dirs_exist_ok=True)
    notes = dict[str, str]()
    report = imported(place, files, notes=lambda note: notes.update({note.event: note.text}))
    assert (report.error, report.records) == (None, 20)
    assert f"{place.topic}: scans " in notes["scanning"] and notes["scanning"].endswith("before it copies any")
    assert notes["open_transaction"] == (
        f"{place.topic}-0: a transaction without an end begins at 20: the copy ends there, and the log at 21"
    )
    producer.abort_transaction(30)


def test_an_import_goes_on_where_it_was_killed_and_an_ingest_goes_on_with_it(place: KafkaCopy, tmp_path: Path) -> None:
    for start in range(0, 60, 20):
        place.produce(start, start + 20)
        time.sleep(0.3)
    files = files_of(place, tmp_path / "files")
    stopped: list[bool] = []
    first = imported(place, files, max_records=1, tell=lambda _batch: stopped.append(True), stops=lambda: bool(stopped))
    assert first.error is None and first.batches >= 1
    copied = sum(log.log_end_offset for log in place.lake.topic("copy").state().logs)
    assert copied > 0
    second = imported(place, files)
    assert second.error is None and first.records + second.records == 60
    again = imported(place, files)
    assert (again.error, again.records) == (None, 0)
    place.produce(60, 80)
    assert place.ingest().records == 20
    place.check_equal()
    assert "older than the copy" in str(imported(place, files).error)
    place.check_equal()


def test_a_path_is_relative_to_the_folder_of_the_program(
    place: KafkaCopy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark's tasks are in another one."""
    place.produce(0, 5)
    files_of(place, tmp_path / "files")
    monkeypatch.chdir(tmp_path)
    assert imported(place, Path("files")).records == 5


def test_brokers_may_be_imported_one_after_the_other(place: KafkaCopy, tmp_path: Path) -> None:
    place.produce(0, 40)
    files, notes = files_of(place, tmp_path / "files"), list[str]()
    for partition in (1, 0):
        report = imported(place, files / f"{place.topic}-{partition}", notes=lambda note: notes.append(note.text))
        assert report.error is None and report.records > 0
    place.check_equal()
    assert [note for note in notes if "no log of" in note] == [
        f"{place.topic}: the directories have no log of 1 partition: 0"
    ]


def test_of_several_replicas_the_longest_is_taken(place: KafkaCopy, tmp_path: Path) -> None:
    place.produce(0, 20)
    short = files_of(place, tmp_path / "short")
    place.produce(20, 40)
    long = files_of(place, tmp_path / "long")
    assert imported(place, short, long).records == 40
    place.check_equal()


def test_files_that_are_another_log_than_the_copy_are_refused(place: KafkaCopy, tmp_path: Path) -> None:
    place.produce(0, 20)
    assert imported(place, files_of(place, tmp_path / "files")).error is None
    ends = [log.log_end_offset for log in place.lake.topic("copy").state().logs]
    other = KafkaCopy(place.lake, place.broker, place.session, place.broker.make_topic(2, **UNCLEANED))
    other.produce(100, 140)
    files = tmp_path / "others"
    files.mkdir()
    for partition in range(2):
        shutil.copytree(other.broker.data / f"{other.topic}-{partition}", files / f"{place.topic}-{partition}")
    assert "deleted and recreated" in str(imported(place, files).error)
    for metadata in files.glob("*/partition.metadata"):
        metadata.unlink()
    assert imported(place, files).error is not None
    assert [log.log_end_offset for log in place.lake.topic("copy").state().logs] == ends


def segments(files: Path) -> Sequence[Path]:
    return sorted(path for path in files.glob("*-0/*.log") if path.stat().st_size)


def damage(file: Path, position: int) -> None:
    data = bytearray(file.read_bytes())
    data[position] ^= 1
    file.write_bytes(data)


@pytest.fixture
def damaged(place: KafkaCopy, tmp_path: Path) -> Iterator[Path]:
    """Files of a broker that was shut down, with one damaged batch that is not the last."""
    for start in range(0, 60, 20):
        place.produce(start, start + 20)
        time.sleep(0.3)
    files = files_of(place, tmp_path / "files")
    (files / ".kafka_cleanshutdown").touch()
    damage(segments(files)[0], 70)
    yield files


def test_damage_is_named_and_left_out_only_if_told_to(place: KafkaCopy, damaged: Path) -> None:
    report = imported(place, damaged)
    assert report.error_code == DamagedError("").code
    assert f"{segments(damaged)[0]}, byte 0: the checksum of a batch is wrong" in str(report.error)
    assert list(place.lake.topics()) == []
    assert imported(place, damaged, skip_damaged=True).error is None
    copy = place.lake.topic("copy")
    there = {r.offset for r in copy.reader(0)}
    assert there and min(there) > 0
    assert copy.state().log(0).log_end_offset == place.broker.log_start_and_end(place.topic, 0)[1]


def test_a_torn_end_is_cut_and_told(place: KafkaCopy, tmp_path: Path) -> None:
    place.produce(0, 40)
    files = files_of(place, tmp_path / "files")
    last = segments(files)[-1]
    last.write_bytes(last.read_bytes()[:-3])
    (files / "replication-offset-checkpoint").unlink()  # as if its last record had not been on all replicas
    notes = list[str]()
    assert imported(place, files, notes=lambda note: notes.append(note.text)).error is None
    assert any(f"cut as a broker does that starts: {last}, byte " in note for note in notes), notes
    place.produce(40, 60)
    assert place.ingest().error is None
    place.check_equal()


def test_what_is_no_directory_of_a_stopped_broker_is_refused(
    place: KafkaCopy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.produce(0, 5)
    folder = place.broker.data / f"{place.topic}-0"
    links, nothing = tmp_path / "links", tmp_path / "nothing"
    links.mkdir(), nothing.mkdir()
    (link := links / f"{place.topic}-7").symlink_to(folder)
    monkeypatch.chdir(folder)
    for living in (place.broker.data, folder, Path(), link, links):
        with pytest.raises(RefusedError, match="in use by a broker"):
            imported(place, living)
    with pytest.raises(InvalidInputError, match="no folder of a partition"):
        imported(place, nothing)
    with pytest.raises(InvalidInputError, match="No such file"):
        imported(place, tmp_path / "nowhere")
    files = files_of(place, tmp_path / "files")
    (files / "cleaner-offset-checkpoint").write_text("7\n")
    with pytest.raises(InvalidInputError, match="a checkpoint in it is damaged"):
        imported(place, files)
    (files / "cleaner-offset-checkpoint").unlink()
    report = place.lake.import_kafka([files], ["nothing"], into="copy", spark=place.session)[0]
    assert f"has no log of a topic nothing (check the name: there is {place.topic})" in str(report.error)


def test_topics_of_kafka_itself_are_not_copied_by_a_pattern(place: KafkaCopy, tmp_path: Path) -> None:
    place.produce(0, 5)
    files = files_of(place, tmp_path / "files")
    shutil.copytree(files / f"{place.topic}-0", files / "__consumer_offsets-0")
    lake: Lake = place.lake
    reports = lake.import_kafka([files], pattern=".*", into="all/", spark=place.session)
    assert [report.source for report in reports] == [place.topic]
