"""Kafka's own cleaner and ours, on the same records, just now (C1, C4, C9, C12, C14, C16, C18).

Survivors of the part that Kafka cleaned are equal, offset by offset and byte by byte: on the core, through
the services, and in a real warehouse with real segment files.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest

import lithify
from lithify.model.record import Record
from lithify.service.round.compact import RunRequest, compact
from support.engines.kernel import KernelEngine
from support.kafka.live_cleaner import LiveLog
from support.kafka.rounds import RecordedRound, config_of, on_the_core, on_the_services

DAY_MS = 86_400_000
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def now() -> int:
    return time.time_ns() // 1_000_000


def in_a_warehouse(case: Mapping[str, Any], folder: Path) -> Callable[[RecordedRound], list[Record]]:
    """Through the real store and the kernels that Spark's tasks run."""
    config = {name.replace("_", "."): value for name, value in config_of(case).items()}
    topic = lithify.open(str(folder / "lake")).create_topic("t", config=config)

    def play(recorded: RecordedRound) -> list[Record]:
        for records in recorded.appends:
            topic.append(records, keep_offsets=True)
        request = RunRequest(None, recorded.now_ms)
        assert compact(topic.warehouse, KernelEngine(ranges=2), topic.topic_name, request).failed == ()
        return list(topic.reader(0))

    return play


def assert_equal(log: LiveLog, folder: Path) -> None:
    """Every round of `log`, played three ways."""
    for play in (on_the_core(log.case), on_the_services(log.case), in_a_warehouse(log.case, folder)):
        for recorded in log.rounds:
            left = [r for r in play(recorded) if (r.offset or 0) < recorded.compared_below]
            assert [r.offset for r in left] == list(recorded.left), recorded.number
            assert left == [log.known[r.offset] for r in left]


def values(keys: str, tag: str = "") -> list[Record]:
    """`"a b a ∅b"`: a value for every key, a tombstone where it is struck out."""
    return [
        Record(key.lstrip("∅").encode(), None if key[0] == "∅" else f"{key}{tag}{number}".encode())
        for number, key in enumerate(keys.split())
    ]


def test_the_latest_of_every_key_is_left(broker, tmp_path):
    log = LiveLog(broker, {}, now())
    log.append(values("a b a c a b"))
    log.append([Record(b"", b"an empty key"), Record(b"", b"again"), Record(b"a\x00", b"other"), Record(b"e", b"")])
    log.roll()
    log.append(values("a d"))
    log.roll()
    recorded = log.clean()
    assert len(recorded.left) < sum(map(len, recorded.appends))  # Kafka did something
    assert_equal(log, tmp_path)


def test_whatever_they_are_compressed_with(broker, tmp_path):
    """Batches of every codec in one log, so that each has records that win and that lose."""
    log = LiveLog(broker, {}, now())
    headers = (("h", b"\x00\xff"), ("h", None), ("", b""), ("ключ", b"x" * 300))
    for codec in CODECS:
        keys = [b"%s %d" % (codec.encode(), n) for n in range(7)]
        log.append([Record(keys[n % 7], b"v" * (n % 50), headers=headers[: n % 5]) for n in range(100)], codec=codec)
        log.append([Record(keys[1], b"1"), Record(keys[2], None), *values("k1 ∅k2 k3", codec)], codec=codec)
    log.roll()
    log.clean()
    assert_equal(log, tmp_path)


def test_tombstones_stay_for_their_time_and_go(broker, tmp_path):
    log = LiveLog(broker, {"delete.retention.ms": "500"}, now())
    log.append(values("a b ∅a c ∅never ∅c c"))
    log.roll()
    first = log.clean()
    assert [log.known[o].key for o in first.left if log.known[o].value is None] == [b"a", b"never"]
    log.append(values("b d"))
    log.roll()
    time.sleep(1)  # Kafka's clock cannot be set
    second = log.clean()
    assert [o for o in second.left if log.known[o].value is None] == []
    assert_equal(log, tmp_path)


def test_keyless_records_go(broker, tmp_path):
    """They come from a time when the topic was not compacted."""
    log = LiveLog(broker, {"cleanup.policy": "delete", "retention.ms": "-1"}, now())
    log.append([Record(b"a", b"1"), Record(None, b"keyless"), Record(b"a", b"2"), Record(None, None)])
    broker.alter_topic(log.name, cleanup_policy="compact")
    log.config = {}
    log.roll()
    recorded = log.clean()
    assert [log.known[o].key for o in recorded.left if log.known[o].key is None] == []
    assert_equal(log, tmp_path)


def test_only_what_was_committed_counts(broker, tmp_path):
    log = LiveLog(broker, {}, now())
    log.append(values("a b c"))
    log.transaction(values("a b", "committed"), commits=True)
    log.transaction(values("a c ∅b", "aborted"), commits=False)
    log.append(values("d"))
    log.transaction(values("∅c", "committed"), commits=True)
    log.roll()
    log.clean()
    log.transaction(values("d ∅d", "aborted"), commits=False)
    log.roll()
    log.clean()
    assert_equal(log, tmp_path)


def test_young_segments_wait(broker, tmp_path):
    """C14: and they do not supersede what is older."""
    half_an_hour = 1_800_000
    log = LiveLog(broker, {"min.compaction.lag.ms": str(half_an_hour)}, now() - 2 * half_an_hour)
    log.append(values("a b a"))
    log.roll()
    log.append(values("b c"))
    log.roll()
    log.clock_ms += half_an_hour
    log.append(values("a b c a"))
    log.roll()
    recorded = log.clean()
    assert recorded.compared_below < recorded.fed
    assert_equal(log, tmp_path)


@pytest.mark.parametrize("seed", range(2))
def test_anything_at_all(broker, tmp_path, seed):
    """Three rounds over whatever comes: keys, values, tombstones, headers, codecs, transactions, segments."""
    luck = Random(seed)
    log = LiveLog(broker, {"delete.retention.ms": str(DAY_MS)}, now() - DAY_MS)

    def some(count: int) -> list[Record]:
        return [
            Record(
                luck.randbytes(luck.randrange(2)) + b"%d" % luck.randrange(12),
                None if luck.random() < 0.25 else luck.randbytes(luck.randrange(40)),
                headers=tuple(
                    (luck.choice(["h", "", "é"]), luck.choice([None, b"", luck.randbytes(5)]))
                    for _ in range(luck.choice([0, 0, 1, 3]))
                ),
            )
            for _ in range(count)
        ]

    for _round in range(3):
        for _ in range(luck.randrange(4, 8)):
            match luck.randrange(4):
                case 0:
                    log.transaction(some(luck.randrange(1, 6)), commits=luck.random() < 0.6)
                case 1:
                    log.roll()
                case _:
                    log.append(some(luck.randrange(1, 30)), codec=luck.choice(CODECS))
        log.roll()
        log.clean()
    assert_equal(log, tmp_path)
    assert len(log.known) > sum(1 for _ in log.rounds[-1].left)
