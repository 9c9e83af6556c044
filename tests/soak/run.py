"""Feeds topics at random while several cleaners, one of which is killed now and then, keep them compacted.

    python -m soak.run --minutes 10 --topics 200 --cleaners 3 --folder FOLDER [--without PART] [--gateways] [--json]

    feeders ──► PostgreSQL, S3 ◄── cleaners        killed, frozen
                 ▲  killed,  │ ◄── slow groups     come and go, hold tombstones
                 │  stalled  └───► replicas        their daemons killed, frozen; their folder away
                 └──────────────── Kafka ingest    killed

At the end every log is what the oracle leaves of everything that was acknowledged, and so is the table of
every group; every replica is its source. Every error has a reason that this program knows, and each program
has ended in order. The exit code is 1 if not. `just soak` calls this. With `--gateways` gateways are in the place of
the cleaners: half of the topics is fed over HTTP, and they are watched by pages (`gateways/part.py`).
"""

from __future__ import annotations

import json
import math
import signal
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from random import Random
from threading import Event, Thread

import lithify
from lithify.api.lake import Lake
from soak.checks import all_never_named, all_unsettled, check_all
from soak.cleaners import FREEZES_FOR_S, cleaners_of
from soak.events import History, told
from soak.feeder import Counts, FedTopic, Feeder
from soak.figures import Memory, Outcome
from soak.gateways.asking import Gateways
from soak.gateways.fed import HttpTopic
from soak.gateways.part import OverHttp
from soak.groups.part import Groups
from soak.kafka.part import KafkaIngest
from soak.outages import Breakable, Outages
from soak.overlaps import overlapping
from soak.part import Part
from soak.programs import Program, late_ends
from soak.replicas.part import Replicas
from soak.servers import CATALOG, Servers, soak_servers
from soak.troubles import Troubles
from soak.wish import Wish, parsed
from support.kafka.broker import KafkaBroker, a_broker
from support.servers.tcp_proxy import free_port

FEEDERS = 3
EVERY_GROUPED = 5
"""A consumer group reads each topic of so many."""
TICK_S = 0.5
MEMORY_EVERY_S = 5.0
TOLD_EVERY_S = 15.0


@dataclass(slots=True)
class Soak:
    """One run on servers that are there."""

    wish: Wish
    servers: Servers
    lake: Lake
    broker: KafkaBroker | None
    outages: Outages
    counts: Counts = field(default_factory=Counts)
    topics: list[FedTopic] = field(default_factory=list)
    cleaners: list[Program] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    memory: list[Memory] = field(default_factory=list)
    gateways: Gateways = field(default_factory=lambda: Gateways({}))
    over_http: OverHttp | None = None
    _memory_s: float = 0.0
    _told_s: float = 0.0

    def run(self) -> Outcome:
        wish, luck = self.wish, Random(self.wish.seed)
        grouped = range(0, wish.topics if wish.has("groups") else 0, EVERY_GROUPED)
        ports = {f"gateway-{n}": free_port() for n in range(1, wish.cleaners + 1)} if wish.gateways else {}
        self.gateways = Gateways({name: f"http://127.0.0.1:{port}" for name, port in ports.items()})
        self.cleaners = cleaners_of(wish, self.servers.env, ports)
        self.topics = [self._topic(n, luck.random(), grouped=n in grouped) for n in range(wish.topics)]
        self._each(FedTopic.create)
        self._say(f"{wish.topics} topics made")
        self._start_parts(luck)
        self._start_cleaners()
        every_s, leases = wish.strike_every_s, self.servers.leases
        troubles = Troubles(self.cleaners, leases, every_s, every_s, FREEZES_FOR_S, wish.freeze_at, self.outages)
        fed_s = self._feed(troubles, luck)
        troubles.thaw_all()
        begun_s = time.monotonic()
        for part in self.parts:
            part.feeding_ended()
        self._each(FedTopic.release_all)
        unsettled = self._drain(troubles)
        drained_s = time.monotonic() - begun_s
        if self.over_http is not None:
            self.over_http.finish()
        self._stop_cleaners()
        for part in self.parts:
            part.stop()
        self._say("cleaners stopped; comparing")
        findings = [f"not settled after {drained_s:.0f} s: {why}" for why in unsettled.values()]
        return self._outcome(troubles, fed_s, drained_s, findings + self._verify(luck))

    def _topic(self, number: int, seed: float, *, grouped: bool) -> FedTopic:
        made = (self.lake, f"soak/topic{number:03}", Random(seed), self.wish.sizes, self.counts, grouped)
        if number % 2 and self.wish.gateways:
            return HttpTopic(*made, gateways=self.gateways, chance=Random(seed + 1))
        return FedTopic(*made)

    def _outcome(self, troubles: Troubles, fed_s: float, drained_s: float, findings: list[str]) -> Outcome:
        found, logs, records = check_all(self.topics)
        files, size = self.servers.stored()
        lives = [life for cleaner in self.cleaners for life in cleaner.lives]
        figures = told(lives, History(self.counts.deletions, troubles.strikes, self.outages))
        unexplained = [f"unexplained: {event}" for event in figures.unexplained]
        of_parts = [finding for part in self.parts for finding in part.findings()]
        overlaps, pairs = overlapping(lives, self.counts.deletions, troubles.strikes)
        every = (
            overlaps,
            of_parts,
            found,
            findings,
            self.counts.findings,
            troubles.findings,
            self._left_over(),
            unexplained,
            late_ends(lives),
        )
        return Outcome(
            topics=self.wish.topics,
            logs=logs,
            seed=self.wish.seed,
            fed_s=fed_s,
            drained_s=drained_s,
            counts=self.counts,
            told=figures,
            rounds_in_turn=pairs,
            strikes=troubles.strikes,
            lives=lives,
            memory=self.memory,
            never_named=all_never_named(self.topics),
            stored_files=files,
            stored_bytes=size,
            records_compared=records,
            verified=min(self.wish.verified, self.wish.topics),
            parts=self.parts,
            findings=[finding for some in every for finding in some],
        )

    def _start_parts(self, luck: Random) -> None:
        wish, servers, outages = self.wish, self.servers, self.outages
        self.parts.append(outages)
        if wish.has("groups"):
            self.parts.append(Groups(self.topics, self.counts, outages, Random(luck.random()), wish.feed_s))
        if self.broker is not None:
            self.parts.append(KafkaIngest(self.lake, self.broker, outages, wish.feed_s, servers.env, wish.folder))
        if wish.has("replicas"):
            replicas = Replicas(self.lake, self.counts, outages, wish.feed_s, servers.env, wish.folder)
            outages.breakables.append(replicas.breakable())
            self.parts.append(replicas)
        if wish.gateways:
            luck = Random(wish.seed)
            self.over_http = OverHttp(
                self.lake, self.gateways, self.cleaners, self.topics, outages, servers.env, luck, self.memory
            )
            self.parts.append(self.over_http)
        for part in self.parts:
            part.start()

    def _start_cleaners(self) -> None:
        for cleaner in self.cleaners:
            cleaner.start()
        if self.over_http is not None:
            self.over_http.begin()

    def _feed(self, troubles: Troubles, luck: Random) -> float:
        stop, begun_s, turns_per_s = Event(), time.monotonic(), self.wish.turns_per_s / FEEDERS
        feeders = [
            Feeder(self.topics[n::FEEDERS], Random(luck.random()), self.counts, turns_per_s, self.outages, stop)
            for n in range(FEEDERS)
        ]
        threads = [Thread(target=feeder.run, daemon=True) for feeder in feeders]
        for thread in threads:
            thread.start()
        while time.monotonic() < begun_s + self.wish.feed_s and not stop.is_set():
            self._tick(troubles, strikes=True)
        stop.set()
        for thread in threads:
            thread.join(timeout=120)
        return time.monotonic() - begun_s

    def _drain(self, troubles: Troubles) -> dict[str, str]:
        """Until nothing is due, at most for `drain_s`; returns what still is, by topic."""
        begun_s, left, unsettled = time.monotonic(), self.topics, {"": "not looked yet"}
        while unsettled and time.monotonic() < begun_s + self.wish.drain_s:
            self._tick(troubles, strikes=False)
            unsettled = all_unsettled(left)
            left = [fed for fed in left if fed.name in unsettled]
            for part in self.parts:
                unsettled |= part.unsettled()
        return unsettled

    def _tick(self, troubles: Troubles, *, strikes: bool) -> None:
        troubles.tick(strikes=strikes)
        for part in self.parts:
            part.tick()
        now_s = time.monotonic()
        if now_s >= self._memory_s + MEMORY_EVERY_S:
            self._memory_s = now_s
            for cleaner in self.cleaners:
                used, age_s = cleaner.memory(), time.time() - cleaner.life.started_ms / 1000
                self.memory.append(Memory(cleaner.name, cleaner.life.number, age_s, used["program"], used["all"]))
        if now_s >= self._told_s + TOLD_EVERY_S:
            self._told_s = now_s
            done = ", ".join(f"{number} {verb}" for verb, number in self.counts.verbs.most_common(3))
            self._say(f"{self.counts.records:,} records fed ({done}), {len(troubles.strikes)} strikes")
        time.sleep(TICK_S)

    def _stop_cleaners(self) -> None:
        asked_s = time.monotonic()
        for cleaner in self.cleaners:
            cleaner.ask_to_stop()
        with ThreadPoolExecutor(len(self.cleaners)) as pool:
            list(pool.map(lambda cleaner: cleaner.wait_stopped(asked_s), self.cleaners))

    def _left_over(self) -> list[str]:
        """Logs that fail, and leases of cleaners that are gone."""
        report = self.lake.quarantine()
        findings = [f"{log.topic}[{log.partition}] fails: {log.error}" for log in report.logs]
        findings += [f"{topic.topic} cannot be read: {topic.error}" for topic in report.unreadable]
        ids = [name for name in self.servers.leases() if name.startswith("cleaner:")]
        return findings + [f"the lease {name} was not given back" for name in ids]

    def _verify(self, luck: Random) -> list[str]:
        chosen = luck.sample(self.topics, min(self.wish.verified, len(self.topics)))
        reports = [fed.topic.verify(spark_conf={"spark.driver.memory": "1g"}) for fed in chosen]
        return [f"verify {report.topic}: {finding}" for report in reports for finding in report.findings]

    def _each(self, action: Callable[[FedTopic], None]) -> None:
        with ThreadPoolExecutor(FEEDERS) as pool:
            list(pool.map(action, self.topics))

    def _say(self, text: str) -> None:
        print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)

    def end(self) -> None:
        for part in self.parts:
            part.end()
        for cleaner in self.cleaners:
            cleaner.end_for_good()


def main() -> int:
    wish, as_json = parsed((__doc__ or "").partition("\n")[0])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that nothing stays behind
    print(f"seed {wish.seed}, logs of the cleaners in {wish.folder}", file=sys.stderr, flush=True)
    with ExitStack() as stack:
        servers = stack.enter_context(soak_servers())
        broker = stack.enter_context(a_broker()) if wish.has("kafka") else None
        breakables = [
            Breakable(
                "PostgreSQL",
                r"cannot be (reached|used)|connection",
                servers.postgres.stop_at_once,
                servers.postgres.start,
            ),
            Breakable(
                "S3",
                r"cannot be (reached|read|written)|[Tt]imed? ?out|AWS|curl|does not answer",
                servers.s3.freeze,
                servers.s3.thaw,
            ),
        ]
        outages = Outages(breakables, wish.outage_every_s if wish.has("outages") else math.inf)
        soak = Soak(wish, servers, lithify.open(catalog=CATALOG), broker, outages)
        stack.callback(soak.end)
        outcome = soak.run()
    print(outcome.table(), file=sys.stderr if as_json else sys.stdout)
    if as_json:
        print(json.dumps(outcome.to_json()))
    for finding in outcome.findings:
        print(f"FINDING {finding}", file=sys.stderr)
    return 1 if outcome.findings else 0


if __name__ == "__main__":
    sys.exit(main())
