"""Kills every verb that writes, at random moments, until there were enough kills; says what came of them.

    python any_verb.py FOLDER SEED KILLS

One topic after the other, in a warehouse of its own: made, changed by any verbs in any order, and
deleted again. Prints a line for each step, and figures by verb as JSON at the end.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path

from kills.killed_topic import KilledTopic, Killer, Kills
from lithify.model.record import Record
from lithify.model.settings.topic_settings import settings_of
from lithify.ports.store import Warehouse
from lithify.store.iceberg import open_store
from lithify.testing.fake_clock import FakeClock
from support.checked.places import ICEBERG_NOW_MS
from support.checked.reading import OpenReader, check_table, check_topic
from support.checked.round import check_round
from support.checked.topic import NAME, CheckedTopic
from support.checked.trouble import RandomPlace
from support.engines.kernel import KernelEngine
from support.processes.forked import warm
from support.topics.known_positions import KnownPositions

STEPS = 20
"""Verbs in the life of one topic."""

MOST_READERS = 2
MOST_RECORDS = 400
"""A log with more is cut, so that reading all of it after every kill stays cheap."""

VERSIONS_RETENTION_MS = 50
GROUP = "g"
"""It reads now and then, which is no verb of the topic."""

VERBS = (
    "topic create",
    "append",
    "compact in place",
    "compact side by side",
    "retain",
    "delete-records",
    "truncate",
    "alter",
    "undo",
    "uncompact",
    "expire",
    "sweep",
    "topic delete",
)

ALTERATIONS: tuple[tuple[str, tuple[object, ...]], ...] = (
    ("compaction.strategy", ("offset", "timestamp")),
    ("empty.value", ("value", "tombstone")),
    ("null.key", ("drop", "retain")),
    ("delete.retention.ms", (0, 15)),
    ("tombstone.hold.groups", ("", GROUP)),
    ("versions.kept", (3, 20)),
)


class Life:
    """One topic, from its making to its end."""

    def __init__(self, folder: Path, killer: Killer) -> None:
        self.killer = killer
        self.luck = killer.luck
        self.clock = FakeClock(ICEBERG_NOW_MS)
        store, files = open_store(str(folder), None, self.clock.new_id)
        engine = KernelEngine(ranges=self.luck.choice([1, 2]))
        place = RandomPlace(Warehouse(store, files, self.clock, KnownPositions()), engine, self.clock)
        mode = self.luck.choice(["in-place", "side-by-side"])
        config = {
            "compaction.mode": mode,
            "tombstone.hold.groups": self.luck.choice(["", GROUP]),
            "tombstone.hold.max.ms": 60,
            "backlog.trim.groups": self.luck.choice(["", GROUP]) if mode == "side-by-side" else "",
            "cleanup.policy": "compact,delete",
            "retention.ms": 200,
            "null.key": "retain",
            "delete.retention.ms": 15,
            "segment.bytes": 12_000,
            "versions.retention.ms": VERSIONS_RETENTION_MS,
            "sweep.grace.ms": 60_000,
        }
        self.topic = KilledTopic.made(place, settings_of(config), self.luck.choice([1, 2]), killer)

    def step(self) -> None:
        """The verb that was killed least, of those that would write something now; or another one."""
        self.clock.advance(self.luck.choice([1, 1, 15, 40]))
        if self.luck.random() < 0.5:
            log = self.luck.choice(self.topic.model.logs)
            self.topic.group_reads(log.partition, GROUP, self.luck.randint(log.start, log.end))
        order = sorted(self.ways(), key=lambda verb: (self.killer.verbs[verb].count, self.luck.random()))
        if self.luck.random() < 0.4:
            self.luck.shuffle(order)
        if max(len(log.records) for log in self.topic.model.logs) > MOST_RECORDS:
            order = ["truncate"]
        self.killer.verb = order[0]
        begun_s, before = time.monotonic(), self.topic.state.version
        self.ways()[order[0]]()
        self.topic.check()
        self.look_on()
        print(f"{order[0]}: version {before} to {self.topic.state.version}, {time.monotonic() - begun_s:.2f} s")

    def ways(self) -> dict[str, Callable[[], object]]:
        """The verbs that a topic like this one takes."""
        topic, side_by_side = self.topic, self.topic.model.settings.side_by_side
        has_records = any(log.reading(compacted=False) for log in topic.model.logs)
        ways: dict[str, Callable[[], object]] = {"append": self.append, "alter": self.alter}
        if has_records:
            ways |= {"delete-records": self.delete_records, "truncate": self.truncate}
            ways["compact side by side" if side_by_side else "compact in place"] = self.compact
        if topic.is_past_retention(self.clock.now_ms()):
            ways["retain"] = topic.retain
        if any(log.view is not None for log in topic.model.logs):
            ways["uncompact"] = lambda: topic.uncompact(lose_trimmed=True)
        if topic.model.rounds:
            ways["undo"] = topic.undo
        if topic.closed:
            ways["sweep"] = topic.sweep
        oldest = topic.place.warehouse.store.versions(NAME)[-1:]
        if any(version.closed_ms + VERSIONS_RETENTION_MS <= self.clock.now_ms() for version in oldest):
            ways["expire"] = topic.expire
        return ways

    def append(self) -> None:
        keeps, now_ms = self.luck.random() < 0.2, self.clock.now_ms()
        ends = {log.partition: log.end + 3 for log in self.topic.model.logs}
        records = []
        for number in range(self.luck.randint(1, 60)):
            partition = self.luck.choice(list(ends))
            value = self.luck.choice([None, b"", b"%d" % number, b"x" * 200])
            at_ms, offset = now_ms - self.luck.choice([0, 15, 60]), ends[partition] if keeps else None
            records.append(Record(b"k%d" % self.luck.randint(0, 30), value, at_ms, (), partition, offset))
            ends[partition] += 1
        self.topic.append(records, keep_offsets=keeps)

    def compact(self) -> None:
        before = self.topic.state.version
        check_round(self.topic)
        self.killer.landed(self.topic.state.version != before)

    def delete_records(self) -> None:
        log = self.luck.choice([log for log in self.topic.model.logs if log.reading(compacted=False)])
        self.topic.delete_records(log.partition, self.luck.randint(log.start + 1, log.end))

    def truncate(self) -> None:
        log = max(self.topic.model.logs, key=lambda log: len(log.reading(compacted=False)))
        self.topic.truncate(log.partition, self.luck.randint(log.start, log.end - 1), below_compacted=True)

    def alter(self) -> None:
        if len(self.topic.model.logs) < 3 and self.luck.random() < 0.2:
            self.topic.alter({}, len(self.topic.model.logs) + 1)
            return
        name, values = self.luck.choice(ALTERATIONS)
        self.topic.alter({name: self.luck.choice(values)})

    def look_on(self) -> None:
        """Some readers go, and new ones come."""
        readers = self.topic.readers
        if readers and self.luck.random() < 0.3:
            readers.pop(0)
        if len(readers) < MOST_READERS:
            log = self.luck.choice(self.topic.model.logs)
            readers.append(OpenReader.open(self.topic, log.partition, compacted=self.luck.random() < 0.5))


def some_of_everything(folder: Path) -> None:
    """What children import for it, they need not import again."""
    store, files = open_store(str(folder), None, FakeClock().new_id)
    topic = CheckedTopic.create(RandomPlace(Warehouse(store, files, FakeClock()), KernelEngine(), FakeClock()), 1, {})
    topic.append([Record(b"key", b"value", 0, (), 0)])
    check_round(topic)
    check_topic(topic)
    check_table(topic)
    topic.truncate(0, 0, below_compacted=True)


def main() -> None:
    folder, seed, wanted = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    killer = Killer(random.Random(seed), {verb: Kills() for verb in VERBS}, wanted)
    warm(lambda: some_of_everything(folder / "warm"))
    begun_s = time.monotonic()
    for number in count():
        if killer.is_done:
            break
        life = Life(folder / f"warehouse{number}", killer)
        for _ in range(STEPS):
            if not killer.is_done:
                life.step()
        life.topic.delete()
    figures = {
        verb: {"before": k.before, "after": k.after, "acknowledged": k.acknowledged} for verb, k in killer.verbs.items()
    }
    print(json.dumps({"kills": figures, "seconds": round(time.monotonic() - begun_s, 1)}))


if __name__ == "__main__":
    main()
