"""The throughput of a round under a rate limit, and how soon it follows a changed rate (C40).

    python bench/throttle.py --data FOLDER [--records 3000000] [--rates 20 40]

Whole rounds without a limit and at each rate, of reading and of writing: bytes read or written per second
of the phases that do so, and the most bytes written within any ten seconds (a task writes whole row
groups, and may be one ahead). Then one running round whose writing is stopped (a byte a second) and
resumed, in the way of `lithify throttle`: the seconds until its files stop growing, and until they grow again.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread

from pyspark.sql import SparkSession

from cases import Log
from keyed_segments import Shape, keyed_segments
from lithify.api.topic import Topic
from lithify.columnar.files.access import local_path
from lithify.reports.rounds.round import RoundReport
from lithify.spark.session.start import session_factory
from lithify_ways import topic_of
from shown import add_publish, shown

MB = 10**6
SAMPLE_SECONDS = 0.1
WINDOW_SECONDS = 10
STILL_SECONDS = 15
"""Writing counts as stopped when the files did not grow for so long."""

STOPPED = 1
"""Bytes per second: years for a row group."""


@dataclass(slots=True)
class Growth:
    """The size of a topic's new files over time; the files that it started with are in another folder."""

    folder: Path
    samples: list[tuple[float, int]] = field(default_factory=list)

    def sample(self) -> None:
        size = sum(file.stat().st_size for file in self.folder.rglob("*.parquet"))
        self.samples.append((time.monotonic(), size))

    @property
    def size(self) -> int:
        return self.samples[-1][1] if self.samples else 0

    def last_grown(self) -> float:
        """When the files were last seen to have grown."""
        pairs = zip(self.samples, self.samples[1:], strict=False)
        return max((at for (_, before), (at, after) in pairs if after > before), default=0.0)

    def most_in_a_window(self) -> int:
        """Bytes that were written in the `WINDOW_SECONDS` that saw the most."""
        most = first = 0
        for at, size in self.samples:
            while self.samples[first][0] < at - WINDOW_SECONDS:
                first += 1
            most = max(most, size - self.samples[first][1])
        return most


@contextmanager
def watched(topic: Topic) -> Iterator[Growth]:
    """Samples the topic's files as long as it lasts."""
    location = local_path(topic.state().location)
    assert location is not None
    growth, ended = Growth(Path(location)), Event()

    def watch() -> None:
        while not ended.wait(SAMPLE_SECONDS):
            growth.sample()

    watcher = Thread(target=watch)
    watcher.start()
    try:
        yield growth
    finally:
        ended.set()
        watcher.join()


def at_a_rate(session: SparkSession, topic: Topic, way: str, rate_bytes: int | None) -> dict[str, object]:
    """One round that reads or writes at most so much, or as much as it can."""
    with watched(topic) as growth:
        if way == "read":
            (log,) = topic.compact(spark=session, read_rate=rate_bytes).logs
        else:
            (log,) = topic.compact(spark=session, write_rate=rate_bytes).logs
    if log.error:
        raise SystemExit(log.error)
    seconds = log.phases_ms["rewrite"] + (log.phases_ms["key_pass"] if way == "read" else 0)
    moved = log.bytes_read if way == "read" else log.bytes_written
    figures: dict[str, object] = {
        "limits": way,
        "limit_mb_per_s": None if rate_bytes is None else rate_bytes / MB,
        "measured_mb_per_s": round(moved / MB / (seconds / 1000), 2),
        "moved_mb": round(moved / MB, 1),
        "phases_s": round(seconds / 1000, 1),
    }
    if way == "write":
        figures["most_in_10_s_mb"] = round(growth.most_in_a_window() / MB, 1)
    return figures


def stopped_and_let_go(session: SparkSession, topic: Topic, rate_bytes: int) -> dict[str, object]:
    """One running round whose rate is changed twice."""
    reports: list[RoundReport] = []

    def run() -> None:
        reports.append(topic.compact(spark=session, write_rate=rate_bytes))

    with watched(topic) as growth:
        round_ = Thread(target=run)
        round_.start()
        wait_until(lambda: growth.size > 0)
        stopped_at = time.monotonic()
        topic.throttle(write_rate=STOPPED)
        wait_until(lambda: time.monotonic() - max(stopped_at, growth.last_grown()) > STILL_SECONDS)
        stopped_after = max(0.0, growth.last_grown() - stopped_at)
        size, let_go_at = growth.size, time.monotonic()
        topic.throttle()
        wait_until(lambda: growth.size > size or not round_.is_alive())
        let_go_after = time.monotonic() - let_go_at
        round_.join()
    (log,) = reports[0].logs
    if log.error:
        raise SystemExit(log.error)
    return {
        "limits": "a running round",
        "stopped_after_s": round(stopped_after, 1),
        "written_by_then_mb": round(size / MB, 1),
        "resumed_after_s": round(let_go_after, 1),
        "written_mb": round(log.bytes_written / MB, 1),
    }


def wait_until(condition: Callable[[], bool]) -> None:
    while not condition():
        time.sleep(SAMPLE_SECONDS)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measures throttled rounds.")
    parser.add_argument("--data", type=Path, required=True, help="a folder for the log; made if it is not there")
    parser.add_argument("--records", type=int, default=3_000_000)
    parser.add_argument("--segments", type=int, default=12)
    parser.add_argument("--value-bytes", type=int, default=200)
    parser.add_argument("--rates", type=int, nargs="+", default=[20, 40], metavar="MB_S")
    add_publish(parser)
    asked = parser.parse_args()
    asked.data.mkdir(parents=True, exist_ok=True)
    shape = Shape(asked.records, asked.records, asked.segments, asked.value_bytes, 0.02)
    log = Log((), keyed_segments(asked.data.resolve(), shape))
    session = session_factory(None, {})()
    with shown(asked) as show, tempfile.TemporaryDirectory(dir=asked.data) as scratch:
        folders = (Path(scratch) / str(number) for number in range(1000))
        at_a_rate(session, topic_of(log, next(folders)), "read", None)  # one round of warm-up
        for way in ("read", "write"):
            for rate in [None, *asked.rates]:
                show(**at_a_rate(session, topic_of(log, next(folders)), way, rate and rate * MB))
        topic = topic_of(log, next(folders))
        show(**stopped_and_let_go(session, topic, asked.rates[0] * MB))
    session.stop()


if __name__ == "__main__":
    main()
