"""A warehouse to look at: topics in every state, with hours of history, in a folder.

    PYTHONPATH=src:tests python -m browser.warehouse FOLDER [TOPICS]

The clock of the lake is set back while batches are appended and rounds are done, so that what is there has ages.
"""

from __future__ import annotations

import json
import random
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import lithify
from lithify.api.lake import Lake
from lithify.api.topic import Topic
from lithify.api.wiring.system_clock import SystemClock
from lithify.model.failure import LogFailure
from lithify.service.documents import put_failures

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
STREAMS = ("shop", "billing", "iot", "ads", "search", "fleet", "risk", "web")
NOUNS = ("orders", "customers", "carts", "prices", "stock", "invoices", "payments", "devices", "readings", "sessions")
MORE = ("alerts", "profiles", "routes", "drivers", "budgets", "clicks", "offers", "returns", "limits", "tariffs")
NAMES = [f"{stream}/{noun}" for noun in (*NOUNS, *MORE) for stream in STREAMS]
DAMAGED = (
    "s3://lake/risk/limits/data/0-00000512-4f1c.parquet: the checksum of its footer is not that of its manifest "
    "entry: restore it from a backup; the log is unchanged"
)


LOST = "executor 3 was lost: it exceeded its memory of 2 GiB"


@dataclass
class Earlier(SystemClock):
    """The machine's clock, set back."""

    by_ms: int = 0

    def now_ms(self) -> int:
        return super().now_ms() - self.by_ms


@dataclass
class Past:
    """A lake whose time can be chosen."""

    lake: Lake
    clock: Earlier
    chance: random.Random

    def append(self, name: str, records: int, keys: int, *, deletes: float = 0.0, partition: int | None = None) -> None:
        """Records of a shop, some of which delete their key."""
        topic, chance = self.lake.topic(name), self.chance
        batch = []
        for _ in range(records):
            number = int(min(keys - 1, abs(chance.gauss(0, keys / 3))))
            key = f"{name.rpartition('/')[2].rstrip('s')}-{number:05}".encode()
            value = None if chance.random() < deletes else json.dumps(some_value(chance, number)).encode()
            headers = (("source", b"eu-1"),) if chance.random() < 0.3 else ()
            batch.append(lithify.Record(key, value, self.clock.now_ms(), headers, partition))
        topic.append(batch)

    def at(self, hours: float) -> Past:
        self.clock.by_ms = int(hours * HOUR_MS)
        return self


def some_value(chance: random.Random, number: int) -> dict[str, object]:
    return {
        "id": number,
        "status": chance.choice(["new", "paid", "sent", "returned"]),
        "total": round(chance.uniform(5, 900), 2),
        "items": [{"sku": f"S{chance.randrange(9000):04}", "count": chance.randrange(1, 5)} for _ in range(2)],
        "note": "".join(chance.choices("abcdefghijklmnopqrstuvwxyz ", k=chance.randrange(10, 80))).strip(),
    }


def open_past(folder: Path) -> Past:
    lake, clock = lithify.open(str(folder)), Earlier()
    return Past(Lake(replace(lake.warehouse, clock=clock)), clock, random.Random(7))


def fail(lake: Lake, name: str, error: str, code: str, *, quarantined: bool, failures: int) -> None:
    """A log whose rounds have failed, as a cleaner notes it."""
    state, now_ms = lake.topic(name).state(), SystemClock().now_ms()
    first_ms, retry_ms = now_ms - failures * 11 * MINUTE_MS, now_ms + 23 * MINUTE_MS
    failure = LogFailure(failures, first_ms, now_ms - 4 * MINUTE_MS, retry_ms, error, quarantined, code)
    put_failures(lake.warehouse.store, state, {0: failure})


def compact(topic: Topic) -> None:
    """Starts Spark once."""
    topic.compact()


def make_stories(past: Past) -> None:
    """Topics with something to see in each."""
    lake = past.at(30).lake
    week = {"delete.retention.ms": 6 * HOUR_MS, "segment.bytes": 12 * 1024, "versions.kept": 6}
    lake.create_topic("shop/orders", 2, config={**week, "tombstone.hold.groups": "billing,search"})
    lake.create_topic("shop/customers", 1, like="pulsar", config={"segment.bytes": 24 * 1024})
    lake.create_topic(
        "iot/devices", 1, config={**week, "min.compaction.lag.ms": 2 * HOUR_MS, "segment.max.dead.ratio": 0.4}
    )
    for hours in (29, 25, 21, 17, 13, 9, 5, 3):
        past.at(hours).append("shop/orders", 2_400, 1_500, deletes=0.06)
        past.append("shop/customers", 700, 500)
        past.append("iot/devices", 900, 6_000 if hours > 20 else 300, deletes=0.02)
        past.at(hours - 0.2)
        for name in ("shop/orders", "iot/devices", *(["shop/customers"] if hours < 14 else [])):
            compact(lake.topic(name))
        if hours == 13:
            for group in ("billing", "search", "dashboards"):
                with lake.topic("shop/orders").reader(group=group) as reader:
                    for _ in range({"billing": 4_000, "search": 1_500, "dashboards": 900}[group]):
                        reader.read_next()
                    reader.commit()
    past.at(1.5).append("shop/orders", 900, 1_500, deletes=0.1)
    past.append("shop/customers", 400, 500)
    past.append("iot/devices", 500, 300)
    past.at(0.3).append("iot/devices", 400, 300)
    past.append("shop/orders", 500, 1_500)


def make_many(past: Past, topics: int) -> None:
    """Ordinary topics; one cleaner does the rounds of all."""
    names = [name for name in NAMES if name not in ("shop/orders", "shop/customers", "iot/devices")]
    names += [f"iot/site-{number:03}" for number in range(max(0, topics - len(names)))]
    chance, lake = past.chance, past.at(20).lake
    for name in names[:topics]:
        rare = {"max.compaction.lag.ms": HOUR_MS} if name.startswith("ads/") else {}
        lake.create_topic(name, chance.choice([1, 1, 1, 2, 4]), config=rare)
    for hours in (19, 12, 6, 2):
        for name in names[:topics]:
            if chance.random() < 0.75:
                past.at(hours).append(name, chance.randrange(40, 400), chance.randrange(10, 300), deletes=0.03)
        past.at(hours - 0.5).lake.cleaner(cleaner_id="night").run(once=True)
    for number, name in enumerate(names[:topics]):
        if number % 5 == 0 or name.startswith("ads/c"):
            past.at(1.4 if name.startswith("ads/c") else 0.1).append(name, chance.randrange(30, 500), 50)
    past.at(0)
    damaged = "risk/limits" if "risk/limits" in names[:topics] else names[1]
    fail(lake, damaged, DAMAGED, "Damaged", quarantined=True, failures=5)
    fail(lake, names[2], LOST, "Engine", quarantined=False, failures=2)


def main() -> None:
    past = open_past(Path(sys.argv[1]))
    make_many(past, int(sys.argv[2]) if len(sys.argv) > 2 else 200)
    make_stories(past)


if __name__ == "__main__":
    main()
