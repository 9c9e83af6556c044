"""Rounds of few changes that are scattered over a large clean log, with an index of its keys or without.

    python bench/few_changes.py --data FOLDER [--keys 100000000] [--segments 20] [--changes 2000] [--rounds 5] [--plain]

The log has each key once. A first round covers it; then each round is of new records of keys that chance chooses: warm,
commit included. With `--plain` segments have no index, so that rounds read all keys.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

import lithify
from keyed_segments import Shape, keyed_segments, keys_of, topic_of
from lithify.spark.session.start import session_factory
from shown import add_publish, shown


def main() -> None:
    parser = argparse.ArgumentParser(description="Times rounds of few changes.")
    parser.add_argument("--data", type=Path, required=True, help="a folder for the segments; made if it is not there")
    parser.add_argument("--keys", type=int, default=100_000_000)
    parser.add_argument("--segments", type=int, default=20)
    parser.add_argument("--value-bytes", type=int, default=100)
    parser.add_argument("--changes", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--plain", action="store_true")
    add_publish(parser)
    asked = parser.parse_args()
    kind = "plain" if asked.plain else "indexed"
    made, folder = (asked.data / kind).resolve(), (asked.data / f"lake-{kind}").resolve()
    made.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(folder, ignore_errors=True)
    shape = Shape(
        asked.keys, asked.keys, asked.segments, asked.value_bytes, 0.0, distinct=True, indexes_keys=not asked.plain
    )
    segments = keyed_segments(made, shape)
    topic = topic_of(segments, folder, 0, **{"key.index.enable": str(not asked.plain).lower()})
    session = session_factory(None, {})()
    _timed(topic, session)
    chance, rounds = np.random.default_rng(1), []
    for _ in range(asked.rounds):
        keys = keys_of(chance.choice(asked.keys, asked.changes, replace=False))
        values = pa.array([b"new"] * asked.changes, pa.binary())
        topic.append(pa.table({"key": keys, "value": values}))
        rounds.append(_timed(topic, session))
    medians = {name: round(statistics.median(found[name] for found in rounds), 2) for name in rounds[0]}
    with shown(asked) as show:
        show(index=not asked.plain, keys=asked.keys, segments=asked.segments, new_records=asked.changes, **medians)
    session.stop()
    shutil.rmtree(folder)


def _timed(topic: lithify.Topic, session: object) -> dict[str, float]:
    """The figures of a round, which are also printed to stderr."""
    begun = time.perf_counter()
    (log,) = topic.compact(spark=session).logs
    seconds = round(time.perf_counter() - begun, 2)
    assert log.error is None, log
    phases = {f"{phase}_s": ms / 1000 for phase, ms in log.phases_ms.items()}
    moved = {"read_mb": log.bytes_read / 1e6, "written_kb": log.bytes_written / 1e3}
    figures = {"round_s": seconds, **phases, **moved, "masks": log.segments_masked}
    print(json.dumps(figures), file=sys.stderr, flush=True)
    return figures


if __name__ == "__main__":
    main()
