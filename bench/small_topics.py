"""One pass over many small topics: 1,000 of 1,000 records each, all of them due.

    python bench/small_topics.py [--topics 1000] [--records 1000] [--threads 1]

A cleaner compacts them with `run(once=True)`, in one Spark job per batch. It prints the number of
jobs, the time of the pass without Spark's start, and the time per topic; for comparison the time of rounds
one by one, on a sample of the topics, on the same session.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor

import lithify
from lithify.reports.events import CleanerEvent, EventKind
from lithify.spark.session.start import session_factory
from shown import add_publish, shown

SAMPLE = 10
KEYS = 200


def make(directory: str, first: int, last: int, records: int) -> None:
    lake = lithify.open(directory)
    for number in range(first, last):
        topic = lake.create_topic(f"t{number:05}")
        feed(topic, records)


def feed(topic: lithify.Topic, records: int) -> None:
    topic.append([lithify.Record(key=b"%d" % (n % KEYS), value=b"v" * 100) for n in range(records)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--topics", type=int, default=1_000)
    parser.add_argument("--records", type=int, default=1_000)
    parser.add_argument("--threads", type=int, default=1)
    add_publish(parser)
    flags = parser.parse_args()
    with shown(flags) as show, tempfile.TemporaryDirectory() as directory:
        make(directory, 0, 1, flags.records)  # which creates the catalog
        half = flags.topics // 2
        with ProcessPoolExecutor(2) as pool:
            list(pool.map(make, [directory] * 2, [1, half], [half, flags.topics], [flags.records] * 2))
        session = session_factory(None, {})()
        session.range(1).count()
        lake = lithify.open(directory)
        events: list[CleanerEvent] = []
        begun = time.perf_counter()
        lake.cleaner(threads=flags.threads, spark=session, tell=events.append).run(once=True)
        seconds = time.perf_counter() - begun
        rounds = [event for event in events if event.kind is EventKind.ROUND]
        assert len(rounds) == flags.topics, [event for event in events if event.kind is not EventKind.ROUND]
        sample = [lake.topic(f"t{number:05}") for number in range(SAMPLE)]
        for topic in sample:
            feed(topic, flags.records)
        begun = time.perf_counter()
        for topic in sample:
            topic.compact(spark=session)
        alone = (time.perf_counter() - begun) / SAMPLE
        show(
            topics=flags.topics,
            spark_jobs=len({event.facts["run_id"] for event in rounds}),
            whole_s=round(seconds, 1),
            each_topic_ms=round(1000 * seconds / flags.topics, 1),
            each_one_by_one_ms=round(1000 * alone, 1),
        )


if __name__ == "__main__":
    main()
