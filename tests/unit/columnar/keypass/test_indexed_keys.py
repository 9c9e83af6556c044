"""Key passes over clean segments with an index of keys: the same findings as by reading all of their keys."""

from __future__ import annotations

import tempfile
from dataclasses import asdict, replace
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from pyroaring import BitMap

from lithify.columnar.key_hash import HashRange
from lithify.columnar.keypass import indexed_keys
from lithify.columnar.keypass.key_scan import KeyScan, LogScan
from lithify.columnar.keypass.ranks import Portion
from lithify.columnar.keypass.winners import WinnerFinder
from lithify.columnar.rewrite import Source, mask
from lithify.columnar.segment.dead_records import DeadPositions
from lithify.columnar.segment.writer import SegmentSpec
from lithify.model.record import Record
from lithify.model.segment import Segment
from lithify.model.settings.table import ByColumn
from lithify.rules.compaction.survivor_rules import SurvivorRules
from support.generated.indexed_files import indexed_segment
from support.topics.stored_topics import ACCESS

FINDER = WinnerFinder(2**26, "seed")


def a_record(chance: Random, key: bytes | None, offset: int) -> Record:
    return Record(key, chance.choice([b"v", b"v", b"", None]), chance.randrange(100), (), 0, offset)


def a_world(folder: Path, chance: Random) -> LogScan:
    """Clean segments in which each key is once, some with masks; dirty ones; rules of any kind."""
    keys = [b"%d" % n for n in range(60)]
    chance.shuffle(keys)
    offset, clean, dirty = 0, [], []
    for number in range(4):
        size = chance.randrange(1, 20)
        own = (
            [keys.pop() for _ in range(size)] if number < 3 else chance.choices([b"%d" % n for n in range(70)], k=size)
        )
        if chance.random() < 0.2:
            own[0] = None  # type: ignore[call-overload]
        records = []
        for key in own:
            records.append(a_record(chance, key, offset))
            offset += chance.randrange(1, 3)
        segment = indexed_segment(folder / str(number), [records[: size // 2], records[size // 2 :]][size < 2 :])
        if number < 3 and chance.random() < 0.6 and size > 3:
            segment = masked(folder, segment, chance.sample(range(size), size // 3))
        (clean if number < 3 else dirty).append(segment)
    rules = SurvivorRules(
        log_start=chance.choice([0, 0, 0, chance.randrange(20)]),
        horizon=offset,
        keep_keyless=chance.random() < 0.5,
        empty_is_tombstone=chance.random() < 0.5,
        tombstones_expire_below=chance.choice([0, chance.randrange(offset)]),
        order=chance.choice([None, ByColumn("timestamp")]),
        values_expire_before_ms=chance.choice([None, None, chance.randrange(40)]),
    )
    return LogScan(rules, tuple(clean), tuple(dirty), (offset // 4, offset // 2))


def masked(folder: Path, segment: Segment, positions: list[int]) -> Segment:
    spec = SegmentSpec(str(folder), "mask", 0, 2**40, "zstd")
    dead = DeadPositions(BitMap(positions))
    attempt = Path(segment.path).parts[-4]
    return mask(ACCESS, spec, Source(segment, segment.records - len(positions), dead), attempt=attempt)[0]


def findings(log: LogScan) -> tuple[dict[str, object], dict[int, list[bool]]]:
    tally, dead = FINDER.find(lambda part: KeyScan(ACCESS, log, settles=part.index == 0), HashRange(0, 1))
    counts = {name: np.asarray(count).tolist() for name, count in asdict(tally).items() if name != "bytes_read"}
    sizes = [segment.records for segment in log.segments]
    return counts, {index: some.flags(0, sizes[index]).tolist() for index, some in dead.by_segment().items()}


@pytest.mark.parametrize("seed", range(40))
def test_findings_are_those_of_all_keys(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """C4, C12, C18, C24, C26."""
    with tempfile.TemporaryDirectory() as folder:
        log = a_world(Path(folder), Random(seed))
        monkeypatch.setattr(indexed_keys, "KEYS_PER_WANTED", 2**40)
        expected = findings(log)
        monkeypatch.setattr(indexed_keys, "KEYS_PER_WANTED", 0)
        monkeypatch.setattr(indexed_keys, "KEYS_PER_CANDIDATE", 0)
        assert findings(log) == expected


@pytest.mark.parametrize(
    ("change", "asked"),
    [
        ({}, True),
        ({"log_start": 1}, False),
        ({"horizon": 39}, False),
        ({"values_expire_before_ms": 2}, False),
        ({"values_expire_before_ms": 1}, True),
        ({"order": ByColumn("timestamp")}, True),
    ],
)
def test_segments_of_which_all_records_count_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, object], asked: bool
) -> None:
    monkeypatch.setattr(indexed_keys, "KEYS_PER_WANTED", 1)
    monkeypatch.setattr(indexed_keys, "KEYS_PER_CANDIDATE", 1)
    clean = indexed_segment(tmp_path / "clean", [[Record(b"%d" % n, b"v", 1, (), 0, n) for n in range(40)]])
    dirty = indexed_segment(tmp_path / "dirty", [[Record(b"7", b"v", 1, (), 0, 40)]])
    rules = SurvivorRules(0, 41, False, False, tombstones_expire_below=0)
    log = LogScan(replace(rules, **change), (clean,), (dirty,))  # type: ignore[arg-type]
    scan = KeyScan(ACCESS, log, settles=True)
    batches = list(scan.keys(Portion.CLEAN, pa.array([b"7"], pa.binary())))
    assert (sum(batch.num_rows for batch in batches) == 1) == asked
