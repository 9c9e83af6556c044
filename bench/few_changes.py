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
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

import lithify
from keyed_segments import Shape, keyed_segments, keys_of, topic_of
from lithify.spark.session.start import session_factory


def main() -> None:
    parser = argparse.ArgumentParser(description="Times rounds of few changes.")
    parser.add_argument("--data", type=Path, required=True, help="a folder for the segments; made if it is not there")
    parser.add_argument("--keys", type=int, default=100_000_000)
    parser.add_argument("--segments", type=int, default=20)
    parser.add_argument("--value-bytes", type=int, default=100)
    parser.add_argument("--changes", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--plain", action="store_true")
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
    _show("first", asked.keys, topic, session)
    chance, seconds = np.random.default_rng(1), []
    for _ in range(asked.rounds):
        keys = keys_of(chance.choice(asked.keys, asked.changes, replace=False))
        values = pa.array([b"new"] * asked.changes, pa.binary())
        topic.append(pa.table({"key": keys, "value": values}))
        seconds.append(_show("next", asked.changes, topic, session))
    print(json.dumps({"kind": kind, "changes": asked.changes, "median_seconds": statistics.median(seconds)}))
    session.stop()
    shutil.rmtree(folder)


def _show(name: str, records: int, topic: lithify.Topic, session: object) -> float:
    begun = time.perf_counter()
    (log,) = topic.compact(spark=session).logs
    seconds = round(time.perf_counter() - begun, 2)
    assert log.error is None, log
    print(
        json.dumps(
            {
                "round": name,
                "records": records,
                "seconds": seconds,
                **{phase: round(ms / 1000, 2) for phase, ms in log.phases_ms.items()},
                "bytes_read": log.bytes_read,
                "bytes_written": log.bytes_written,
                "masked": log.segments_masked,
                "records_out": log.records_out,
            }
        ),
        flush=True,
    )
    return seconds


if __name__ == "__main__":
    main()
