"""Writes the stored warehouse of the format version that this Lithify writes.

    PYTHONPATH=tests python -m formats.make_warehouse

It makes `v<version>.zip`, and beside it `v<version>.json` with what must be read from it. Run it once
per format version and commit both; afterwards they are never recreated, since what they prove is
that later versions read what this one wrote. Rounds are done on Spark, as users do them.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lithify
from formats.relocation import pack, padded
from lithify.store.iceberg.state.log_codec import log_to_json
from lithify.store.iceberg.state.topic_codec import FORMAT_VERSION

HERE = Path(__file__).parent
HOUR_MS = 3_600_000


def orders(lake: lithify.Lake) -> int:
    """Two logs with deletes, headers, an empty value, three rounds, and records after the last one.

    Returns a time at which the first deletes have expired.
    """
    topic = lake.create_topic(
        "orders", 2, config={"delete.retention.ms": HOUR_MS, "segment.bytes": 4096, "versions.kept": 2}
    )
    at = topic.info().created_ms
    for batch in range(6):
        topic.append(
            [
                lithify.Record(b"order-%d" % (n % 7), b"state %d" % (batch * 10 + n), at + n, partition=n % 2)
                for n in range(10)
            ]
        )
        topic.append([lithify.Record(b"order-%d" % batch, None, at, (("by", b"clerk"), ("note", None)), batch % 2)])
        if batch in (1, 3):
            topic.compact(now_ms=at + batch)
    topic.compact(now_ms=at + 2 * HOUR_MS)
    topic.append([lithify.Record(b"order-2", b"", at, partition=0), lithify.Record(b"\xff\x00", b"bytes", at)])
    return at + 4 * HOUR_MS


def mirror(lake: lithify.Lake) -> None:
    """A topic with another system's name, keyless records, gaps between offsets, and no round."""
    config = {"null.key": "retain", "compression.type": "gzip"}
    lag = {"min.compaction.lag.ms": HOUR_MS, "min.compaction.lag.from": "commit"}
    topic = lake.create_topic("/data/eu:clicks", like="mapr", config=config | lag)
    offsets = [(3, b"a"), (17, None), (18, b""), (2**40, b"a")]
    topic.append(
        [lithify.Record(key, b"v%d" % o, 1_700_000_000_000 + n, (), 0, o) for n, (o, key) in enumerate(offsets)],
        keep_offsets=True,
    )


def devices(lake: lithify.Lake) -> None:
    """Two logs with views beside them, deletes in the views, and rounds that are owed.

    The backlog of log 0 was trimmed below its view, log 1 was truncated.
    """
    topic = lake.create_topic(
        "devices",
        2,
        like="pulsar",
        config={"delete.retention.ms": HOUR_MS, "cleanup.policy": "compact,delete", "versions.kept": 6},
    )
    at = topic.info().created_ms
    for batch in range(4):
        sent = at - HOUR_MS * (4 - batch)
        topic.append(
            [lithify.Record(b"d-%d" % n, b"%d" % (batch * 10 + n), sent + n, partition=n % 2) for n in range(batch, 6)]
        )
        topic.append([lithify.Record(b"d-%d" % batch, b"", sent + 7, partition=batch % 2)])
        if batch in (1, 2):
            topic.compact(now_ms=at + batch)
    topic.alter({"retention.ms": 7 * HOUR_MS // 2})
    topic.retain(now_ms=at)
    topic.delete_records(0, 5)
    log = topic.state().log(1)
    topic.truncate(1, log.log_end_offset - 1)


def late(lake: lithify.Lake) -> None:
    """Records that come late: an expired delete stays, as one that it beats waits above the horizon (C20)."""
    topic = lake.create_topic(
        "late",
        config={
            "compaction.strategy": "timestamp",
            "delete.retention.ms": 0,
            "min.compaction.lag.ms": HOUR_MS,
            "message.timestamp.after.max.ms": HOUR_MS,
        },
    )
    at = topic.info().created_ms
    topic.append([lithify.Record(b"k", None, at - 9 * HOUR_MS), lithify.Record(b"l", b"1", at - 9 * HOUR_MS)])
    topic.append([lithify.Record(b"k", b"late", at - 10 * HOUR_MS), lithify.Record(b"l", b"2", at)])
    topic.compact(now_ms=at)


def emptied(lake: lithify.Lake) -> None:
    """A log whose empty values became deletes after its round, and a round that was undone (C43, C6)."""
    topic = lake.create_topic("emptied")
    at = topic.info().created_ms
    topic.append([lithify.Record(b"a", b"1", at), lithify.Record(b"b", b"", at), lithify.Record(b"a", b"2", at)])
    topic.compact(now_ms=at)
    topic.append([lithify.Record(b"b", b"3", at)])
    topic.compact(now_ms=at)
    topic.undo()
    topic.alter({"empty.value": "tombstone"}, partitions=2)


def reading(lake: lithify.Lake, now_ms: int) -> dict[str, Any]:
    """All that can be read of a lake, as JSON."""
    return {"now_ms": now_ms, "topics": {topic.name: topic_reading(topic, now_ms) for topic in lake.topics()}}


def topic_reading(topic: lithify.Topic, now_ms: int) -> dict[str, Any]:
    info = topic.info().to_json()
    del info["location"]  # it differs with the place
    status = topic.status(now_ms=now_ms).to_json()
    for log in status["logs"]:
        log["horizon_held_by"] = None  # likewise
    return {
        "info": info,
        "status": status,
        "states": [log_to_json(log) for log in topic.state().logs],
        "records": [_shown(record) for record in topic.reader()],
        "compacted": [_shown(record) for record in topic.reader(compacted=True)],
        "table": [repr(row) for row in topic.table().to_pylist()],
        "history": [report.to_json() for report in topic.history()],
        "versions": [[kept.version, kept.closed_ms, kept.closed_by] for kept in topic.versions()],
        "closed": [
            {
                "verb": kept.verb.value,
                "records": [_shown(record) for record in topic.reader(version=kept.version)],
                "compacted": [_shown(record) for record in topic.reader(version=kept.version, compacted=True)],
            }
            for kept in topic.versions()
        ],
    }


def _shown(record: lithify.Record) -> str:
    """As all versions show it that wrote these warehouses: none of their records has an envelope."""
    return repr(record).replace(", envelope=None)", ")")


def archived(name: str, make: Callable[[lithify.Lake], int]) -> None:
    """Packs what `make` puts into a warehouse, with what must be read from it at the time that `make` returns."""
    archive = HERE / f"{name}.zip"
    if archive.exists():
        sys.exit(f"{archive} is there: what a version wrote is kept as it is")
    folder = Path(tempfile.mkdtemp())
    try:
        lake = lithify.open(str(padded(folder)))
        now_ms = make(lake)
        archive.with_suffix(".json").write_text(json.dumps(reading(lake, now_ms), indent=1) + "\n", "utf-8")
        pack(padded(folder), archive)
    finally:
        shutil.rmtree(folder)


def all_topics(lake: lithify.Lake) -> int:
    """Returns the time of the last round."""
    now_ms = orders(lake)
    mirror(lake)
    devices(lake)
    late(lake)
    emptied(lake)
    return now_ms


if __name__ == "__main__":
    archived(f"v{FORMAT_VERSION}", all_topics)
