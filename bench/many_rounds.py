"""Many rounds, each with some new records over all keys of a clean log: what they write, and how its readers fare.

    python bench/many_rounds.py --data FOLDER [--records 4000000] [--rounds 50] [--percent 1]

A first round covers a log of which 20 % of the records have keys of their own. Then each round is of new records, warm,
masks, merges and rewrites included. At the end the log is read whole, and again once it is written anew.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from keyed_segments import Shape, binary, keyed_segments, keys_of, topic_of
from lithify.api.topic import Topic
from lithify.columnar.segment.segment_reader import read_segment
from lithify.spark.session.start import session_factory
from shown import add_publish, shown

VALUE_BYTES = 200
READS = 7


def main() -> None:
    parser = argparse.ArgumentParser(description="Measures many small rounds.")
    parser.add_argument("--data", type=Path, required=True, help="a folder for the segments; made if it is not there")
    parser.add_argument("--records", type=int, default=4_000_000)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--percent", type=float, default=1)
    add_publish(parser)
    asked = parser.parse_args()
    folder, made = (asked.data / "lake").resolve(), (asked.data / "made").resolve()
    shutil.rmtree(folder, ignore_errors=True)
    made.mkdir(parents=True, exist_ok=True)
    keys = asked.records // 5
    shape = Shape(asked.records, keys, max(1, asked.records // 1_000_000), VALUE_BYTES, 0.02)
    topic = topic_of(keyed_segments(made, shape), folder)
    session = session_factory(None, {})()
    first_s, _, live = _round(topic, session)
    chance, count = np.random.default_rng(1), int(live * asked.percent / 100)
    rounds_s, written, new = [], 0, 0
    for _ in range(asked.rounds):
        before = _stored_bytes(topic)
        values = binary(chance.integers(0, 256, (count, VALUE_BYTES), dtype=np.uint8))
        topic.append(pa.table({"key": keys_of(chance.integers(0, keys, count)), "value": values}))
        new += _stored_bytes(topic) - before
        seconds, bytes_written, _ = _round(topic, session)
        rounds_s.append(seconds)
        written += bytes_written
    aged_s = _read_s(topic)
    masked = sum(segment.mask_bytes > 0 for segment in topic.warehouse.store.segments(topic.state(), [0]))
    topic.alter(config={"segment.max.dead.ratio": "0"})
    topic.compact(spark=session)
    with shown(asked) as show:
        show(
            first_round_s=first_s,
            rounds=asked.rounds,
            new_records=count,
            median_round_s=round(statistics.median(rounds_s), 2),
            longest_round_s=max(rounds_s),
            written_per_new_byte=round(written / new, 2),
            masked_segments=masked,
            read_s=aged_s,
            rewritten_read_s=_read_s(topic),
        )
    session.stop()
    shutil.rmtree(folder)


def _round(topic: Topic, session: object) -> tuple[float, int, int]:
    """Its seconds, the bytes that it wrote, and the records that are left."""
    begun = time.perf_counter()
    (log,) = topic.compact(spark=session).logs
    assert log.error is None, log
    return round(time.perf_counter() - begun, 2), log.bytes_written, log.records_out


def _stored_bytes(topic: Topic) -> int:
    return sum(segment.size_bytes for segment in topic.warehouse.store.segments(topic.state(), [0]))


def _read_s(topic: Topic) -> float:
    """The median of some reads of all records."""
    warehouse, taken = topic.warehouse, []
    for _ in range(READS):
        begun = time.perf_counter()
        for segment in warehouse.store.segments(topic.state(), [0]):
            for _ in read_segment(warehouse.files.access, segment):
                pass
        taken.append(time.perf_counter() - begun)
    return round(statistics.median(taken), 3)


if __name__ == "__main__":
    main()
