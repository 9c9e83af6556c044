"""Keys that an attacker chose, and keys of any size: exact winners, bounded memory, no more time (C12, C38)."""

from __future__ import annotations

import pickle
import subprocess
import sys
import tempfile
import time
from itertools import cycle
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from lithify.columnar.key_hash import HashRange, KeyHash
from lithify.columnar.keypass import winners
from lithify.columnar.keypass.key_scan import KeyScan, LogScan
from lithify.columnar.keypass.ranks import Portion
from lithify.columnar.keypass.winners import WinnerFinder
from lithify.columnar.segment import writer
from lithify.columnar.segment.segment_reader import SegmentReader
from lithify.errors import EngineError
from lithify.model.record import Record
from lithify.model.settings.table import order_of_strategy
from lithify.model.settings.topic_settings import TopicSettings
from lithify.ports.engine import RunLimits
from support.builders import some_rules
from support.engines.kernel import KernelEngine
from support.generated.chosen_keys import CHOSEN, of_long_prefixes, random_keys
from support.processes.peak_memory import PEAK_BYTES
from support.topics.stored_topics import ACCESS, StoredTopic

pytestmark = pytest.mark.long

LEAST = RunLimits(task_memory_bytes=32 * 2**20)
MEMORY_BYTES = 2**24
STRATEGIES = ["offset", "header"]
"""By timestamp a key pass does what it does by header, with numbers of another column."""
ENGINES = {"direct": KernelEngine(), "ranges": KernelEngine(3), "shuffled": KernelEngine(5, shuffled=True)}


def settings_of(strategy: str) -> TopicSettings:
    return TopicSettings(compaction_strategy=strategy, compaction_strategy_header="v", delete_retention_ms=0)


def ordered(key: bytes, order: int, value: bytes | None = b"v") -> Record:
    return Record(key, value, 1000 + order, (("v", order.to_bytes(8, "big")),))


PAIRS = [(chosen, engine) for chosen in CHOSEN for engine in ENGINES]


@pytest.mark.parametrize(
    ("chosen", "engine", "strategy"), [(*pair, STRATEGIES[number % 2]) for number, pair in enumerate(PAIRS)]
)
def test_rounds_leave_what_the_oracle_leaves(tmp_path, chosen, engine, strategy):
    """Dirty records alone, then against clean ones: newer, older, gone. Keys and engines meet each strategy."""
    random, keys = Random(3), CHOSEN[chosen](2000)
    topic = StoredTopic(tmp_path, settings_of(strategy))
    for _ in range(2):
        for batch in (keys, random.sample(keys, 1200)):
            values = random.choices([None, b"v"], [1, 3], k=len(batch))
            topic.append(0, [ordered(k, random.randrange(9), v) for k, v in zip(batch, values, strict=True)])
        topic.round(ENGINES[engine], limits=LEAST, now_ms=2000)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_more_chosen_keys_than_memory_holds(tmp_path, strategy):
    """C38: as many of one hash ended every round with an error."""
    topic, keys = StoredTopic(tmp_path, settings_of(strategy)), CHOSEN["one_duckdb_hash"](40_000)
    topic.append(0, [ordered(key, 1) for key in keys])
    topic.append(0, [ordered(key, 1 + number % 3 - 1) for number, key in enumerate(keys[:1000])])
    outcome = topic.round(KernelEngine(), limits=LEAST)[0]
    assert sum(outcome.findings.survivors.values()) == len(keys)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_chosen_keys_take_no_longer_than_others(tmp_path, strategy):
    """C38: with orders, time grew with the square of their number."""
    took = {}
    for name, keys in {"chosen": CHOSEN["one_duckdb_hash"](50_000), "others": random_keys(50_000)}.items():
        topic = StoredTopic(tmp_path / name, settings_of(strategy))
        topic.append(0, [ordered(key, 1) for key in keys])
        log = LogScan(topic.plans()[0].rules, (), topic.segments[0])
        begun = time.process_time()
        tally, _ = WinnerFinder(MEMORY_BYTES, "seed").find(
            lambda _, log=log: KeyScan(ACCESS, log, settles=True), HashRange(0, 1)
        )
        took[name] = time.process_time() - begun
        assert tally.winners == len(keys)
    assert took["chosen"] < 3 * took["others"] + 0.5


SIZES = {
    "giant": lambda: [b"%04d" % (n % 90) * 2**18 for n in range(100)],
    "giant_with_small": lambda: [b"%06d" % (n % 20_000) * (2**17 if n % 400 == 0 else 2) for n in range(25_000)],
    "few_giant": lambda: [b"%06d" % (n % 20_000) * (2**19 if n % 1600 == 0 else 2) for n in range(25_000)],
    "larger_than_memory": lambda: [b"%04d" % (n % 3) * (5 * 2**20) for n in range(5)],
    "all_equal": lambda: [b"k" * 1000] * 50_000,
    "all_empty": lambda: [b""] * 50_000,
    "one_of_ten_distinct": lambda: [b"k" * 300 if n % 10 else b"%0300d" % n for n in range(100_000)],
    "long_prefixes": lambda: of_long_prefixes(50_000),
    "one_duckdb_hash": lambda: CHOSEN["one_duckdb_hash"](60_000),
}


@pytest.fixture(params=zip(SIZES.values(), cycle(STRATEGIES), strict=False), ids=SIZES)
def sized(request, tmp_path):
    """Keys in the order of their offsets, a topic that has them, and a strategy: each with half of the sizes."""
    make, strategy = request.param
    keys, topic = make(), StoredTopic(tmp_path)
    for start in range(0, len(keys), 20_000):
        topic.append(0, [ordered(key, 1) for key in keys[start : start + 20_000]])
    return keys, topic, strategy


def test_memory_is_bounded_whatever_the_keys(sized):
    """C38: a few copies of a row group and of the longest key, and a few times what there is for winners.

    Measured: up to 5.6 row groups in all (62 keys of 768 KiB between short ones), of which the allocator
    keeps a part that is not in use any more.
    """
    keys, topic, strategy = sized
    rules = some_rules(len(keys), order=order_of_strategy(strategy, "v"))
    found, grown_bytes = measured(LogScan(rules, (), topic.segments[0]))
    assert found == sorted({key: offset for offset, key in enumerate(keys)}.values())
    row_group = min(64 * 2**20, sum(map(len, keys)))
    assert grown_bytes < 6 * (row_group + MEMORY_BYTES + max(map(len, keys)))


def test_one_row_group_is_held_at_a_time(tmp_path, monkeypatch):
    """C38: keys of a kilobyte have row groups of 64 MiB."""
    held, read = [], SegmentReader.read
    monkeypatch.setattr(writer, "ROW_GROUP_RECORDS", 1000)
    monkeypatch.setattr(SegmentReader, "read", lambda *given: held.append(pa.total_allocated_bytes()) or read(*given))
    topic = StoredTopic(tmp_path)
    topic.append(0, [Record(b"%01000d" % n, b"v") for n in range(4000)])
    for batch in KeyScan(ACCESS, LogScan(some_rules(4000), (), topic.segments[0]), settles=True).keys(Portion.DIRTY):
        del batch
    assert len(held) == 4
    assert max(held) - held[0] < 1000 * 1000 / 2


def measured(log: LogScan) -> tuple[list[int], int]:
    """The latest offsets, and by how much the process that found them grew."""
    script = """
import pickle, sys
from lithify.columnar.files.access import FileAccess
from lithify.columnar.keypass.winners import WinnerFinder, latest_offsets
from lithify.columnar.segment.segment_reader import read_segment
log = pickle.load(sys.stdin.buffer)
latest_offsets(FileAccess(), log.dirty[:0], log.rules, WinnerFinder(2**24, "seed"))
read_segment(FileAccess(), log.dirty[0], columns=["offset"]).__next__()
before = peak_bytes()
found = latest_offsets(FileAccess(), log.dirty, log.rules, WinnerFinder(2**24, "seed"))
sys.stdout.buffer.write(pickle.dumps((list(found), peak_bytes() - before)))
"""
    done = subprocess.run(
        [sys.executable, "-c", PEAK_BYTES + script], input=pickle.dumps(log), check=True, stdout=subprocess.PIPE
    )
    return pickle.loads(done.stdout)


class OneHash:
    """Gives all keys one hash where `shared` says so of its number."""

    def __init__(self, shared) -> None:
        self._shared = shared

    def __call__(self, seed: str, number: int = 0):
        def one(keys: pa.Array) -> np.ndarray:
            return np.full(len(keys), 7, np.uint64)

        return one if self._shared(number) else KeyHash(seed, number)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("shared", [lambda number: number == 0, lambda number: number < 3], ids=["one", "three"])
def test_keys_that_share_their_hashes_are_parted_by_others(tmp_path, monkeypatch, strategy, shared):
    """C12, C38: though it cannot be made to happen."""
    topic, keys = StoredTopic(tmp_path / "topic", settings_of(strategy)), of_long_prefixes(20_000)
    topic.append(0, [ordered(key, 1) for key in keys])
    topic.append(0, [ordered(key, 2) for key in keys[:50]])
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(winners, "KeyHash", OneHash(shared))
    assert set(topic.round(KernelEngine(), limits=LEAST)[0].findings.survivors.values()) == {len(keys) - 50, 50}
    assert [path.name for path in tmp_path.iterdir()] == ["topic"]


def test_keys_that_share_every_hash_are_distinguished_where_memory_holds_them(tmp_path, monkeypatch):
    monkeypatch.setattr(winners, "KeyHash", OneHash(lambda _: True))
    topic = StoredTopic(tmp_path)
    topic.append(0, [ordered(b"%d" % (n % 700), 1) for n in range(2000)])
    assert topic.round(KernelEngine(), limits=LEAST)[0].findings.survivors.popitem()[1] == 700


def test_where_they_are_too_many_it_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(winners, "KeyHash", OneHash(lambda _: True))
    monkeypatch.setattr(winners, "MAX_DEPTH", 2)
    topic = StoredTopic(tmp_path)
    topic.append(0, [ordered(key, 1) for key in of_long_prefixes(20_000)])
    with pytest.raises(EngineError, match="share 2 hashes") as caught:
        topic.round(KernelEngine(), limits=LEAST)
    assert "task_memory=" in (caught.value.hint or "")
