"""The cost of a look at an idle catalog of 10,000 topics.

    python bench/idle_look.py [--topics 10000] [--keep DIR]

Three looks are timed: the first after a start, the next one (one query, since the change tokens of all topics
are as before), and one as in catalogs without change tokens (each topic is loaded through the catalog).
The target is under 10 seconds. What is read is counted: at most the metadata of each topic, and no
look may open a manifest or a data file.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import lithify
from lithify.daemons.cleaner.work_finder import WorkFinder
from lithify.store.iceberg.io.local_io import LocalFileIO, LocalInput
from shown import add_publish, shown

OPENED: list[str] = []


class NotingFileIO(LocalFileIO):
    """Notes what is opened."""

    def new_input(self, location: str) -> LocalInput:
        OPENED.append(location)
        return super().new_input(location)


def make(directory: str, first: int, last: int) -> None:
    """Topics with a few records and no dirty ratio that makes them due, a quarter with retention by age as well."""
    lake = lithify.open(directory)
    for number in range(first, last):
        config: dict[str, object] = {"min.cleanable.dirty.ratio": 1}
        if number % 4 == 0:
            config |= {"cleanup.policy": "compact,delete"}
        topic = lake.create_topic(f"t{number:05}", config=config)
        topic.append([lithify.Record(key=b"%d" % (n % 5), value=b"v") for n in range(10)])


def made(directory: str, topics: int) -> None:
    """Two processes create the topics that are missing."""
    there = sum(1 for _ in lithify.open(directory).warehouse.store.change_tokens())
    if there < topics:
        make(directory, there, there + 1)  # one process creates the catalog
        there += 1
        half = (there + topics) // 2
        with ProcessPoolExecutor(2) as pool:
            list(pool.map(make, [directory] * 2, [there, half], [half, topics]))


def looked(finder: WorkFinder, repeat: int) -> dict[str, Any]:
    """Looks, each timed; what was opened in the last of them."""
    seconds = []
    for _ in range(repeat):
        OPENED.clear()
        begun = time.perf_counter()
        look = finder.look(time.time_ns() // 1_000_000)
        seconds.append(time.perf_counter() - begun)
    kinds = {"manifests": ".avro", "data": ".parquet"}
    opened = {kind: sum(path.endswith(end) for path in OPENED) for kind, end in kinds.items()}
    return {"took_s": round(statistics.median(seconds), 2), "topics": look.topics, "metadata": look.read, **opened}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--topics", type=int, default=10_000)
    parser.add_argument("--keep", metavar="DIR", help="make the topics here, and use them again next time")
    add_publish(parser)
    flags = parser.parse_args()
    with shown(flags) as show, tempfile.TemporaryDirectory() as scratch:
        directory = flags.keep or scratch
        made(directory, flags.topics)
        lake = lithify.open(directory)
        catalog: Any = lake.warehouse.store
        catalog.source.created().properties["py-io-impl"] = f"{NotingFileIO.__module__}.NotingFileIO"
        finder = lake.cleaner().cleaner.finder
        show(check="first", **looked(finder, 1))
        show(check="again", **looked(finder, 5))
        tokens = catalog.change_tokens
        catalog.change_tokens = lambda: ((name, None) for name, _ in tokens())
        show(check="without change tokens", **looked(finder, 3))


if __name__ == "__main__":
    main()
