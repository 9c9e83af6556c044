"""Winners of one hash range: exact keys, bounded memory, errors of the source (C12, C38)."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from dataclasses import replace
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from lithify.columnar.key_hash import PARTS, HashRange, KeyHash
from lithify.columnar.keypass.key_blocks import Spool, SpooledKeys
from lithify.columnar.keypass.key_scan import KeyScan, LogScan
from lithify.columnar.keypass.ranks import RANKED_KEYS, Portion
from lithify.columnar.keypass.tally import Tally
from lithify.columnar.keypass.winners import WinnerFinder, latest_offsets
from lithify.columnar.segment.dead_records import DeadRecords
from lithify.errors import DamagedError
from lithify.model.record import Record
from lithify.model.settings.table import ByColumn, ByHeader
from lithify.rules.compaction.survivors import survivors
from support.builders import some_rules
from support.engines.kernel import goes_and_stays
from support.engines.keys_in_memory import KeysInMemory, ranked
from support.generated.records import HARD_KEYS
from support.processes.peak_memory import PEAK_BYTES
from support.topics.stored_topics import ACCESS, StoredTopic

pytestmark = pytest.mark.long

MEMORY_BYTES = 2**26
LITTLE_BYTES = 2**24
"""The memory that peaks are measured with: keys beyond it are compared sooner than those beyond more memory."""
BELOW_ALL_KEYS = 3 * LITTLE_BYTES // 2
"""What peaks may differ by for 2.5 million more keys, whose bytes alone are half as much again."""


def find_winners(open_source, hash_range: HashRange, memory_bytes: int) -> tuple[Tally, DeadRecords]:
    return WinnerFinder(memory_bytes, "seed").find(open_source, hash_range)


def shared_out(parts, starts: np.ndarray) -> tuple[list[int], list[int]]:
    """`goes_and_stays` of all parts of the keys."""
    found = [goes_and_stays(dead, starts) for _, dead in parts]
    return sorted(i for goes, _ in found for i in goes), sorted(i for _, stays in found for i in stays)


@pytest.mark.parametrize("ranges", [2, 3, 8])
def test_ranges_share_the_keys_out_without_remainder(ranges):
    random = Random(1)
    keys = [random.randbytes(random.randrange(12)) for _ in range(5000)]
    alone = find_winners(lambda _: KeysInMemory(dirty=keys, clean=keys[:50]), HashRange(0, 1), MEMORY_BYTES)
    parts = [
        find_winners(lambda _: KeysInMemory(dirty=keys, clean=keys[:50]), HashRange(i, ranges), MEMORY_BYTES)
        for i in range(ranges)
    ]
    starts = KeysInMemory(dirty=keys, clean=keys[:50]).starts
    assert shared_out(parts, starts) == shared_out([alone], starts)
    assert sum(tally.compared for tally, _ in parts) == 5000
    assert all(0 < tally.compared < 5000 for tally, _ in parts)


def test_the_parts_of_a_range_are_the_range():
    hashes = KeyHash("seed")(pa.array([b"%d" % n for n in range(2000)], pa.binary()))
    whole = HashRange(0, 3)
    for parts in (1, 17, 32, 64):
        cut = whole.cut(parts)
        assert sum(part.holds(hashes).astype(int) for part in cut).tolist() == whole.holds(hashes).astype(int).tolist()
        assert [part.parts for part in cut[:-1]] == [parts] * (len(cut) - 1)
        assert 0 < cut[-1].parts <= parts
        assert [part.is_first for part in cut] == [True] + [False] * (len(cut) - 1)


def test_what_is_left_of_a_range_is_cut_evenly():
    for parts in range(1, PARTS):
        kept, *others = HashRange(1, 3).cut_off(parts)
        assert (kept.first, kept.parts) == (0, parts)
        assert [part.first for part in others] == [part.end for part in (kept, *others[:-1])]
        sizes = [part.parts for part in others]
        assert (others[-1].end, len(sizes)) == (PARTS, -(-(PARTS - parts) // parts))
        assert min(sizes) > 0 and max(sizes) <= parts


@pytest.mark.parametrize("broken", [Portion.DIRTY, Portion.CLEAN])
@pytest.mark.parametrize("records_before", [1, 300_000])
def test_an_error_of_the_source_comes_back_as_it_was(broken, records_before):
    class Broken(KeysInMemory):
        def keys(self, portion, wanted=None):
            if portion is not broken:
                yield from super().keys(portion, wanted)
                return
            yield from ranked([b"a"] * records_before)
            raise DamagedError("the file is broken", hint="mend it")

    with pytest.raises(DamagedError, match="the file is broken") as caught:
        find_winners(lambda _: Broken(dirty=[b"a"], clean=[b"b"]), HashRange(0, 1), MEMORY_BYTES)
    assert caught.value.hint == "mend it"


def test_nothing_is_left_in_the_temporary_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    random = Random(4)
    keys = [random.randbytes(300) for _ in range(120_000)]
    find_winners(lambda _: KeysInMemory(dirty=keys), HashRange(0, 1), 1)
    assert list(tmp_path.iterdir()) == []


def test_blocks_hold_every_key_once_in_its_range(tmp_path):
    random = Random(5)
    keys = [random.choice([b"", b"\xff", random.randbytes(5)]) for _ in range(3000)]
    spools = {}
    for index, block in WinnerFinder(MEMORY_BYTES, "seed").blocks(ranked(keys), 4):
        if index not in spools:
            spools[index] = Spool(tmp_path / str(index))
        spools[index].add(block, Portion.DIRTY)
    starts = np.array([0, 0, len(keys)])
    parts = [
        find_winners(lambda _, s=spool: SpooledKeys(s, RANKED_KEYS, starts), HashRange(index, 4), MEMORY_BYTES)
        for index, spool in spools.items()
    ]
    assert sum(tally.compared for tally, _ in parts) == len(keys)
    last = {key: i for i, key in enumerate(keys)}
    assert shared_out(parts, starts) == ([], sorted(last.values()))


@pytest.mark.parametrize("schema", ["RANKED_KEYS", "ORDERED_KEYS"])
def test_memory_follows_the_limit_and_not_the_number_of_keys(schema):
    """From so many keys on, which need a second pass."""
    peaks = [int(measured_peak(0, keys, schema)) for keys in (2_500_000, 5_000_000)]
    assert peaks[1] - peaks[0] < BELOW_ALL_KEYS


@pytest.mark.parametrize("schema", ["RANKED_KEYS", "ORDERED_KEYS"])
def test_memory_does_not_follow_the_clean_keys(schema):
    peaks = [int(measured_peak(count, 100_000, schema)) for count in (1_000_000, 3_500_000)]
    assert peaks[1] - peaks[0] < BELOW_ALL_KEYS


def measured_peak(clean: int, dirty: int, schema: str) -> str:
    """The peak resident size of a process that finds the winners among so many distinct keys."""
    script = f"""
import numpy as np, pyarrow as pa
from lithify.columnar.key_hash import HashRange, KeyHash
from lithify.columnar.segment.dead_records import DeadRecords
from lithify.columnar.keypass.ranks import ORDINAL_SHIFT, RANKED_KEYS, ORDERED_KEYS, Portion
from lithify.columnar.keypass.tally import Tally
from lithify.columnar.keypass.winners import WinnerFinder

class Source:
    schema = {schema}
    def __init__(self):
        self.starts = np.array([0, {clean}, {clean + dirty}])
        self.tally = Tally(); self.dead = DeadRecords(self.starts); self.rows = 0
    dirty_read = property(lambda self: self.rows / {dirty})
    def has(self, portion):
        return portion is Portion.CLEAN and {clean} > 0
    def keys(self, portion, wanted=None):
        count = {{Portion.CLEAN: {clean}, Portion.DIRTY: {dirty}}}.get(portion, 0)
        before = {clean} if portion is Portion.DIRTY else 0
        for first in range(0, count, 100_000):
            numbers = np.arange(first, first + 100_000)
            keys = np.empty((100_000, 2), np.uint64)
            keys[:, 0] = keys[:, 1] = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
            ends = pa.py_buffer(np.arange(0, 1_600_001, 16, dtype=np.int32))
            array = pa.Array.from_buffers(pa.binary(), 100_000, [None, ends, pa.py_buffer(keys)])
            self.rows += 100_000 * (portion is Portion.DIRTY)
            columns = [array, pa.array(numbers + before << ORDINAL_SHIFT), pa.array(numbers % 3)]
            yield pa.record_batch(columns[: len({schema})], schema={schema})

tally, _ = WinnerFinder({LITTLE_BYTES}, "seed").find(lambda _: Source(), HashRange(0, 1))
assert tally.winners == {dirty} and tally.clean_superseded == min({clean}, {dirty})
print(peak_bytes())
"""
    return subprocess.run(
        [sys.executable, "-c", PEAK_BYTES + script], check=True, capture_output=True, text=True
    ).stdout


def test_columns_are_read_only_where_a_question_is_open(tmp_path):
    topic = StoredTopic(tmp_path)
    topic.append(0, [Record(b"k%d" % i, b"v") for i in range(1000)])
    segment = topic.segments[0][0]
    keys_only = bytes_read(segment, some_rules(segment.end_offset))
    with_offsets = bytes_read(segment, some_rules(segment.end_offset, log_start=500))
    assert 0 < keys_only < with_offsets < segment.scan_bytes


def test_what_decides_is_read_only_where_it_can_decide(tmp_path):
    """C10, C24, C38."""
    topic = StoredTopic(tmp_path)
    plain = [Record(b"k%d" % i, b"v", i) for i in range(1000)]
    topic.append(0, plain)
    topic.append(0, [record._replace(headers=(("v", b"12345678"),)) for record in plain])
    without, headers = topic.segments[0]
    rules = some_rules(headers.end_offset)
    keys_only = bytes_read(without, rules)
    with_timestamps = bytes_read(without, replace(rules, order=ByColumn("timestamp")))
    assert keys_only < with_timestamps
    by_header = replace(rules, order=ByHeader("v"))
    assert bytes_read(without, by_header) == keys_only
    assert bytes_read(headers, by_header) > bytes_read(headers, rules)
    for limit_ms, columns in ((0, keys_only), (500, with_timestamps), (1000, keys_only)):
        assert bytes_read(without, replace(rules, values_expire_before_ms=limit_ms)) == columns


def bytes_read(segment, rules) -> int:
    scan = KeyScan(ACCESS, LogScan(rules, (), (segment,)), settles=True)
    list(scan.keys(Portion.DIRTY))
    return scan.tally.bytes_read


@pytest.mark.parametrize("empty_is_tombstone", [False, True])
def test_latest_offsets_are_those_of_live_keys(tmp_path, empty_is_tombstone):
    random = Random(6)
    topic = StoredTopic(tmp_path)
    for _ in range(3):
        topic.append(0, [Record(random.choice(HARD_KEYS), random.choice([None, b"", b"v"])) for _ in range(30)])
    rules = some_rules(90, log_start=20, empty_is_tombstone=empty_is_tombstone, tombstones_expire_below=90)
    found = latest_offsets(ACCESS, topic.segments[0], rules, WinnerFinder(MEMORY_BYTES, "seed"))
    assert list(found) == [r.offset for r in survivors(topic.records(0), rules).records]
    assert found


def test_latest_offsets_of_nothing():
    assert len(latest_offsets(ACCESS, (), some_rules(0), WinnerFinder(MEMORY_BYTES, "seed"))) == 0
