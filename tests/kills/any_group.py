"""Kills the verbs of a consumer group, and edits of its topic's stream, at random moments; says what came of them.

    python any_group.py FOLDER SEED KILLS

Positions that one verb moves are all as before or all as after it, and as after once it was acknowledged (C58). A topic
has what its stream says when its next round begins (C56). Prints a line for each step, and figures by verb as JSON.
"""

from __future__ import annotations

import json
import random
import sqlite3
import sys
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import lithify
from kills.killed_topic import Killer, Kills
from lithify import Record, Topic
from lithify.api.groups import Group
from lithify.service.change.streams import inherit_now
from support.processes.forked import result, warm

GROUP, STREAM, TOPIC = "g", "eu", "eu/orders"
PARTITIONS, RECORDS = 4, 200

VERBS = ("group commit", "group reset", "group delete", "stream edit")
SETTING = "tombstone.hold.max.ms"

Positions = Mapping[int, int]
"""By partition that has one."""
IsAfter = Callable[[Positions, Positions], bool]
"""Given the positions before and now: whether they are those after the verb."""


@dataclass
class KilledGroup:
    """One group of one topic. Nothing is read by this process itself, so that it never has threads to fork with."""

    folder: Path
    killer: Killer
    edits: int = 0

    @property
    def topic(self) -> Topic:
        return lithify.open(str(self.folder)).topic(TOPIC)

    @property
    def group(self) -> Group:
        return Group(self.topic.warehouse, GROUP)

    def make(self) -> None:
        lake = lithify.open(str(self.folder))
        lake.create_stream(STREAM)
        topic = lake.create_topic(TOPIC, partitions=PARTITIONS)
        topic.append([Record(b"k%d" % n, b"v", partition=n % PARTITIONS) for n in range(RECORDS)])

    def positions(self) -> Positions:
        return {p.log.partition: p.cursor.offset for p in self.group.positions()}

    def step(self) -> None:
        verb = min(VERBS, key=lambda verb: (self.killer.verbs[verb].count, self.killer.luck.random()))
        before = result(self.positions)
        match verb:
            case "group commit":
                most = self.killer.luck.randint(1, 80)
                self.do(verb, lambda: self.read(most), before, _read(most))
            case "group reset" if before:
                to = "earliest" if any(before.values()) else "latest"
                there = dict.fromkeys(range(PARTITIONS), 0 if to == "earliest" else RECORDS // PARTITIONS)
                self.do(verb, lambda: self.group.reset(TOPIC, to), before, lambda _, now: now == there)
            case "group delete" if before:
                self.do(verb, self.group.delete, before, lambda _, now: not now)
            case "stream edit":
                self.edit()
            case _:
                self.do("group commit", lambda: self.read(RECORDS), before, _read(RECORDS))

    def do(self, verb: str, action: Callable[[], object], before: Positions, is_after: IsAfter) -> None:
        self.killer.run(verb, action)
        now = result(self.positions)
        landed = is_after(before, now)
        assert landed or now == before, f"{verb}: {before} has become {now}"
        assert landed or self.killer.error is not None, f"{verb} was acknowledged, and {before} stays"
        self.killer.landed(landed)
        self.end_leases()
        print(f"{verb}: {before} to {now}")

    def end_leases(self) -> None:
        """Those of one that was killed keep the others out for their time, which is over."""
        with closing(sqlite3.connect(self.folder / "catalog.db")) as database, database:
            database.execute("DELETE FROM lithify_group_leases")

    def read(self, most: int) -> None:
        """As one member: so many records at most, and one commit."""
        left = most
        with self.topic.reader(group=GROUP) as reader:
            while left and reader.read_next() is not None:
                left -= 1
            reader.commit()

    def edit(self) -> None:
        """A round of the topic is never under a setting that the stream has no longer."""
        self.edits += 1
        wanted = 1_000 + self.edits
        known = result(self.said)
        self.killer.run("stream edit", lambda: lithify.open(str(self.folder)).stream(STREAM).edit({SETTING: wanted}))
        now = result(self.said)
        assert now in (known, wanted)
        assert now == wanted or self.killer.error is not None, "acknowledged, and the stream has not changed"
        self.killer.landed(now == wanted)
        assert result(self.inherited) == now
        print(f"stream edit: {known} to {now}")

    def said(self) -> int | None:
        """What the stream says, which its topic has or had before."""
        stored = lithify.open(str(self.folder)).warehouse.store.stream_attributes([STREAM]).get(STREAM, {})
        return int(stored[SETTING]) if SETTING in stored else None

    def inherited(self) -> int | None:
        """What the topic has when its next round begins."""
        topic = self.topic
        inherit_now(topic.warehouse, topic.topic_name)
        found = topic.state().settings.tombstone_hold_max_ms
        return found if found < 1_000_000 else None  # the default is a week


def _read(most: int) -> IsAfter:
    """Positions that together are so many records further, or at the ends."""

    def is_after(before: Positions, now: Positions) -> bool:
        read = sum(now.values()) - sum(before.values())
        forward = all(now.get(partition, -1) >= offset for partition, offset in before.items())
        return forward and len(now) == PARTITIONS and read == min(most, RECORDS - sum(before.values()))

    return is_after


def main() -> None:
    folder, seed, wanted = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    killer = Killer(random.Random(seed), {verb: Kills() for verb in VERBS}, wanted)
    group = KilledGroup(folder, killer)
    warm(group.make)
    while not killer.is_done:
        group.step()
    figures = {
        verb: {"before": k.before, "after": k.after, "acknowledged": k.acknowledged} for verb, k in killer.verbs.items()
    }
    print(json.dumps({"kills": figures}))


if __name__ == "__main__":
    main()
