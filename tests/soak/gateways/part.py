"""Gateways in the place of cleaners: asked over HTTP all the while, and watched by pages.

    producers ──► gateway-1, gateway-2, gateway-3 ──► ledgers ──► consumers       any gateway, another one if it fails
    feeders   ──►     ✗ killed, ‖ frozen          ──► every other topic
                              ▲
    page, followers of events ┘  come back by themselves

At the end, while the gateways still run, what pages, metrics, API and `lithify status` tell must be the same.
"""

from __future__ import annotations

import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from random import Random
from threading import Event, Thread
from typing import Any

import requests

from lithify.api.lake import Lake
from soak.feeder import FedTopic
from soak.figures import Memory, counted
from soak.gateways.agreement import (
    counter_differences,
    differences,
    gauge_differences,
    metrics_of,
    rows_of_command_line,
    rows_of_gateway,
)
from soak.gateways.asking import Gateways
from soak.gateways.fed import HttpTopic
from soak.gateways.ledger import PARTITIONS, Ledger
from soak.gateways.producers import Consumer, Producer
from soak.gateways.reading import HttpFollower, HttpReader
from soak.gateways.watching import BrowserPage, EventFollower, Watcher, has_browser
from soak.outages import FOUND_OUT_MS, Outages
from soak.programs import Program
from soak.topics import DAY_MS

KINDS = (
    {"cleanup.policy": "compact"},
    {"cleanup.policy": "compact", "compaction.mode": "side-by-side"},
    {"cleanup.policy": "compact", "segment.bytes": 40_000},
)
PRODUCERS, PER_S = 4, 1.0
"""And how many appends each sends per second."""
READY_S = 180.0
BACK_WITHIN_S = 60.0
"""A page whose gateway answers again is live again."""
AGREE_WITHIN_S = 120.0
GROWS_BY, GROWS_BYTES = 1.25, 64 * 2**20
"""More than both, from the middle of a life to its end, is growth."""
GROWN_UP_S = 240.0


@dataclass(slots=True)
class OverHttp:
    """A `soak.part.Part`. `programs` are the gateways, by the names that `gateways` has."""

    lake: Lake
    gateways: Gateways
    programs: Sequence[Program]
    topics: Sequence[FedTopic]
    outages: Outages
    env: Mapping[str, str]
    luck: Random
    memory: Sequence[Memory]
    name: str = "gateways"
    ledgers: list[Ledger] = field(default_factory=list)
    producers: list[Producer] = field(default_factory=list)
    consumers: list[Consumer] = field(default_factory=list)
    watchers: dict[str, Watcher] = field(default_factory=dict)
    """By name of the gateway that they watch."""
    found: list[str] = field(default_factory=list)
    back_s: list[float] = field(default_factory=list)
    """How long after its gateway answered again each watcher was live again."""
    records_compared: int = 0
    agreed: Counter[str] = field(default_factory=Counter)
    _stop: Event = field(default_factory=Event)
    _threads: list[Thread] = field(default_factory=list)
    _waits: dict[str, float] = field(default_factory=dict)
    """By name of a gateway, since when (monotonic) it answers without its watcher being live."""
    _looked_s: float = 0.0

    def start(self) -> None:
        for number, kind in enumerate(KINDS):
            config = {"delete.retention.ms": DAY_MS, "min.cleanable.dirty.ratio": 0.1, **kind}
            self.ledgers.append(Ledger(f"ledger/topic{number}", config))
            self.lake.create_topic(self.ledgers[-1].topic, PARTITIONS, config=config)

    def begin(self) -> None:
        """The gateways were started: waits until they answer, then producers, consumers and pages begin."""
        until_s = time.monotonic() + READY_S
        for url in self.gateways.all:
            while not _answers(url):
                assert time.monotonic() < until_s, f"{url} does not answer"
                time.sleep(0.5)
        for number in range(PRODUCERS):
            luck = Random(self.luck.random())
            producer = Producer(f"p{number}", self.ledgers, self.gateways, luck, PER_S, self._stop)
            self.producers.append(producer)
        for ledger in self.ledgers:
            for partition in range(PARTITIONS):
                reader = HttpReader(self.gateways, ledger.topic, partition, "earliest", Random(self.luck.random()))
                self.consumers.append(Consumer(ledger, reader, self._stop))
        self._threads = [Thread(target=one.run, daemon=True) for one in (*self.producers, *self.consumers)]
        for thread in self._threads:
            thread.start()
        for number, (name, url) in enumerate(self.gateways.urls.items()):
            is_page = number == 0 and has_browser()
            self.watchers[name] = BrowserPage(url, self._was_out).start() if is_page else EventFollower(url).start()

    def tick(self) -> None:
        for watcher in self.watchers.values():
            if isinstance(watcher, BrowserPage):
                watcher.tick()
        if time.monotonic() >= self._looked_s + 2.0:
            for name, watcher in self.watchers.items():
                self._watch(name, watcher)
            self._looked_s = time.monotonic()

    def feeding_ended(self) -> None:
        self._stop.set()
        for ledger in self.ledgers:
            self.lake.topic(ledger.topic).alter({"min.cleanable.dirty.ratio": 0})

    def unsettled(self) -> Mapping[str, str]:
        if any(thread.is_alive() for thread in self._threads):
            return {self.name: "producers and consumers still run"}
        found = {}
        for ledger in self.ledgers:
            for log in self.lake.topic(ledger.topic).status().logs:
                if log.due or log.first_dirty_offset < log.log_end_offset:
                    found[ledger.topic] = f"{ledger.topic}[{log.partition}]: {log.due_reason}"
        return found

    def finish(self) -> None:
        """Nothing is due any more, and the gateways still run: reads to the end, and compares what all of them tell."""
        now_ms = time.time_ns() // 10**6
        for fed in self.topics:
            for follower in fed.followers:
                if isinstance(follower, HttpFollower):
                    follower.finish(fed.journal, now_ms)
        for consumer in self.consumers:
            consumer.finish()
        until_s, differ = time.monotonic() + AGREE_WITHIN_S, ["not compared yet"]
        while differ and time.monotonic() < until_s:
            time.sleep(1.0)
            self.tick()
            try:
                differ = list(self._differences())
            except (requests.RequestException, subprocess.SubprocessError) as error:
                differ = [f"{type(error).__name__}: {error}"]
        self.found += differ
        for watcher in self.watchers.values():
            self.found += [f"{watcher.kind} of {watcher}: {said}" for said in watcher.complaints()]
            watcher.close()

    def stop(self) -> None:
        """All of it ended before the gateways did."""

    def findings(self) -> list[str]:
        for ledger in self.ledgers:
            records = list(self.lake.topic(ledger.topic).reader(compacted=True))
            self.records_compared += len(records)
            self.found += ledger.compared(records)
        said = chain.from_iterable(one.findings for one in (*self.producers, *self.consumers))
        return [*self.found, *self.gateways.findings, *said, *self._growing()]

    def rows(self) -> list[tuple[str, object]]:
        appends = [append for ledger in self.ledgers for append in ledger.appends]
        told = sum((producer.counts for producer in self.producers), Counter[str]())
        answered = sum(append.answer is not None for append in appends)
        kinds = Counter(watcher.kind for watcher in self.watchers.values())
        lost = sum(one.lost_connections for one in self.watchers.values() if isinstance(one, BrowserPage))
        over_http = sum(isinstance(fed, HttpTopic) for fed in self.topics)
        followers = [one for fed in self.topics for one in (*fed.followers, *fed.past_followers)]
        return [
            (
                "topics fed over HTTP",
                f"{over_http}, with {sum(isinstance(f, HttpFollower) for f in followers)} followers",
            ),
            ("ledgers", f"{len(self.ledgers)}: {answered} of {len(appends)} appends answered"),
            ("  of them", counted(told)),
            ("  records compared", f"{self.records_compared:,}"),
            ("  seen by consumers", f"{sum(len(one.seen) for one in self.consumers):,}"),
            ("answers", counted(self.gateways.answers)),
            ("watched by", counted(kinds)),
            ("  back after", f"{max(self.back_s, default=0.0):.1f} s at most, {len(self.back_s)} times"),
            ("  connections lost", f"{lost} told by the browser"),
            ("agreed", counted(self.agreed)),
        ]

    def to_json(self) -> dict[str, Any]:
        return {name.strip().replace(" ", "_"): value for name, value in self.rows()}

    def end(self) -> None:
        self._stop.set()
        for watcher in self.watchers.values():
            watcher.close()

    def _watch(self, name: str, watcher: Watcher) -> None:
        """Takes the time from when a gateway answers until the one that watches it is live."""
        now_s = time.monotonic()
        if watcher.is_live:
            if name in self._waits:
                self.back_s.append(now_s - self._waits.pop(name))
        elif not _answers(self.gateways.urls[name]):
            self._waits.pop(name, None)
        elif now_s > self._waits.setdefault(name, now_s) + BACK_WITHIN_S:
            self.found.append(f"{watcher.kind}: {name} answers, and it is not live again for {BACK_WITHIN_S:.0f} s")
            self._waits[name] = now_s

    def _differences(self) -> Iterator[str]:
        wanted = rows_of_command_line(self.env)
        self.agreed = Counter({"topics of lithify status": len(wanted)})
        for name, url in self.gateways.urls.items():
            program = next(one for one in self.programs if one.name == name)
            rows, metrics, watcher = rows_of_gateway(url), metrics_of(url), self.watchers[name]
            yield from differences(name, wanted, rows)
            yield from gauge_differences(name, wanted, metrics)
            yield from counter_differences(name, program.life, metrics)
            yield from differences(f"{watcher.kind} of {name}", wanted, watcher.rows())
            if isinstance(watcher, BrowserPage) and f"{len(wanted)} topics" not in watcher.shown():
                yield f"the page of {name} does not show {len(wanted)} topics"
            if not watcher.is_live:
                yield f"{watcher.kind} of {name} is not live"
            self.agreed["rounds by metrics"] += int(metrics.get("lithify_compaction_rounds_total", 0))
            self.agreed["records removed by metrics"] += int(metrics.get("lithify_compaction_removed_records_total", 0))

    def _was_out(self, at_s: float) -> bool:
        at_ms = 1000 * at_s
        return any(one.begun_ms <= at_ms <= one.ended_ms + FOUND_OUT_MS for one in self.outages.happened)

    def _growing(self) -> Iterator[str]:
        for program in self.programs:
            for life in program.lives:
                mine = [m for m in self.memory if (m.cleaner, m.life) == (life.name, life.number)]
                if mine and mine[-1].age_s >= GROWN_UP_S:
                    middle, end = mine[len(mine) // 2].program_bytes, mine[-1].program_bytes
                    if end > max(GROWS_BY * middle, middle + GROWS_BYTES):
                        yield f"{life.name}.{life.number} grows: {middle:,} bytes in the middle, {end:,} at its end"


def _answers(url: str) -> bool:
    with suppress(requests.RequestException):
        return requests.get(f"{url}/readyz", timeout=2).ok
    return False
