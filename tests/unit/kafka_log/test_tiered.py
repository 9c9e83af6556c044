"""Segments of tiered storage: which folders and files are such, and which of them count, beside a broker's."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from lithify.kafka_log.directories.checkpoints import EpochStart
from lithify.kafka_log.directories.folders import LogFolder, log_directory
from lithify.kafka_log.directories.tiered import TieredError
from lithify.kafka_log.scanned_log import ScannedLog, ScannedSegment, scanned_log
from lithify.kafka_log.segment_scan import scanned
from lithify.kafka_log.tiered_log import TieredLog, tiered_log
from support.kafka.batches import batch

ID, OTHER = "xGgqPmoTRhqhS0OeYAAAAA", "abcdefghijklmnopqr-123"
FOLDER = LogFolder(Path("/store/orders-0"), "orders", 0)


def segments_in(path: Path) -> Mapping[tuple[str, int, str | None], Sequence[int]]:
    return {(f.topic, f.partition, f.topic_id): [base for base, _ in f.tiered] for f in log_directory(path).folders}


def touch(folder: Path, *names: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).touch()
    return folder


@pytest.mark.parametrize("topic_id", [ID, OTHER])
def test_folders_of_kafkas_own_storage(tmp_path: Path, topic_id: str) -> None:
    """A broker could have a folder of such a name."""
    folder = touch(tmp_path / f"orders-7-{topic_id}", f"500-{ID}.log", f"0-{OTHER}.log", f"0-{ID}.index", "x.log")
    touch(folder, f"{2**63}-{ID}.log", f"{'9' * 20}-{ID}.log")
    touch(tmp_path / f"empty-7-{topic_id}")
    assert segments_in(folder) == {("orders", 7, topic_id): [0, 500]}
    assert segments_in(tmp_path).items() >= {("orders", 7, topic_id): [0, 500]}.items()
    assert not [key for key in segments_in(tmp_path) if key[0] == f"orders-7-{topic_id[:-4]}"]


@pytest.mark.parametrize("given", [".", f"a-b-{ID}", f"a-b-{ID}/3"])
def test_folders_of_the_plugin(tmp_path: Path, given: str) -> None:
    manifest = {"version": "1", "compression": False, "chunkIndex": {}}
    for base in (0, 12):
        folder = touch(tmp_path / f"a-b-{ID}" / "3", f"{base:020}-{OTHER}.log", f"{base:020}-{OTHER}.indexes")
        (folder / f"{base:020}-{OTHER}.rsm-manifest").write_text(json.dumps(manifest))
    assert segments_in(tmp_path / given) == {("a-b", 3, ID): [0, 12]}


@pytest.mark.parametrize(
    ("manifest", "why"),
    [
        ('{"compression": true}', "was compressed by the plugin"),
        ('{"compression": false, "encryption": {"dataKey": "x"}}', "was encrypted by the plugin"),
        ('{"version": "9"}', "in a way that is not known"),
        ("[]", "in a way that is not known"),
        ("{", "is damaged"),
        ("[" * 10**6, "is damaged"),
        (None, "has no .rsm-manifest, so that it may be compressed or encrypted"),
    ],
)
def test_segments_that_are_not_as_they_were_are_refused(tmp_path: Path, manifest: str | None, why: str) -> None:
    folder = touch(tmp_path / f"orders-{ID}" / "0", f"{0:020}-{ID}.log", f"{5:020}-{ID}.log")
    good = folder / f"{5:020}-{ID}.rsm-manifest"
    good.write_text('{"compression": false}')
    assert manifest is None or (folder / f"{0:020}-{ID}.rsm-manifest").write_text(manifest)
    with pytest.raises(TieredError, match=f"{0:020}-{ID}.log .*{why}|{why}"):
        log_directory(tmp_path)


def segment(name: str, epoch: int, first: int, end: int, *, cut: int = 0) -> ScannedSegment:
    """Of batches of one record; `cut` bytes of its end are missing."""
    data = b"".join(batch(n, b"%d" % n, epoch=epoch) for n in range(first, end))
    return ScannedSegment(Path(name), first, scanned(io.BytesIO(data[: len(data) - cut])))


def broker(epoch: int, first: int, end: int) -> ScannedLog:
    return scanned_log(replace(FOLDER, log_start=2), [segment("broker", epoch, first, end)])


def read(log: TieredLog) -> list[tuple[str, int]]:
    """Where each file that counts begins."""
    return [(str(one.path), one.base_offset) for one in log.together().segments]


def test_a_later_leaders_segments_count_from_their_first_offset_on() -> None:
    old = [segment("a", 3, 0, 5), segment("b", 3, 5, 10), segment("c", 3, 10, 15)]
    new = [segment("d", 4, 7, 13), segment("e", 4, 13, 20)]
    log = tiered_log(FOLDER, [*new, *old], None)
    assert read(log) == [("a", 0), ("b", 5), ("d", 7), ("e", 13)]
    assert [(str(one.path), end) for one, end in log.overlapping] == [("b", 7)]
    assert (log.together().end_offset, log.together().epochs) == (20, (EpochStart(3, 0), EpochStart(4, 7)))


def test_a_segment_that_was_uploaded_twice_counts_once() -> None:
    log = tiered_log(FOLDER, [segment("torn", 3, 0, 5, cut=9), segment("a", 3, 0, 5), segment("b", 3, 0, 5)], None)
    assert len(read(log)) == 1 and ("torn", 0) not in read(log)
    assert read(tiered_log(FOLDER, [segment("torn", 3, 0, 5, cut=9)], None)) == []


def test_a_brokers_log_counts_from_its_first_offset_on() -> None:
    tiered = [segment("a", 3, 0, 5), segment("b", 3, 5, 10)]
    log = tiered_log(FOLDER, tiered, broker(3, 7, 12))
    assert read(log) == [("a", 0), ("b", 5), ("broker", 7)]
    assert [(str(one.path), end) for one, end in log.overlapping] == [("b", 7)]
    assert (log.together().start_offset, log.together().end_offset) == (2, 12)
    assert read(tiered_log(FOLDER, tiered, broker(3, 0, 12))) == [("broker", 0)]


def test_a_brokers_log_of_an_earlier_epoch_does_not_count() -> None:
    assert read(tiered_log(FOLDER, [segment("a", 4, 0, 5)], broker(3, 0, 12))) == [("a", 0)]


def test_a_scan_can_end_where_the_next_segment_begins() -> None:
    data = b"".join(batch(n, b"v", producer=7, transactional=True) for n in range(5))
    scan = scanned(io.BytesIO(data), end=3)
    assert (scan.end_offset, scan.whole.end) == (3, len(data) * 3 // 5)
