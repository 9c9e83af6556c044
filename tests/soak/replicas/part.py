"""Replicas of all topics in a folder with an embedded catalog, kept up by daemons that are killed and frozen.

    PostgreSQL, S3 ──► daemon 1 ──► folder, SQLite         ✗ killed, and started again
                   ──► daemon 2 ──►                        ‖ frozen past its leases, then goes on

The folder is away for some seconds now and then, as a disk that is not mounted is. A topic that is recreated at the
source is no longer the source of its replica: an operator deletes the replica at the target, and it is copied anew.
Positions of groups are copied too; at the end each group finds at the replica what it would find at the source.
"""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lithify
from lithify.api.lake import Lake
from lithify.errors import UnknownTopicError
from soak.feeder import Counts
from soak.outages import Breakable, Outages
from soak.programs import ENDS_WITHIN_S, Program
from soak.replicas.comparison import all_differences
from soak.replicas.events import DaemonsTold, Disturbances, told_by_daemons
from soak.replicas.positions import position_differences
from soak.servers import CATALOG
from support.processes.programs import PROGRAM

STREAMS = ("soak", "kafka")
DAEMONS = 2
LEASE_S = 10
FREEZES_FOR_S = 2.0 * LEASE_S
CATCHES_UP_S = 600.0
VERB_S = 600.0


@dataclass(slots=True)
class Replicas:
    """A `soak.part.Part`."""

    source: Lake
    fed: Counts
    outages: Outages
    feed_s: float
    env: Mapping[str, str]
    folder: Path
    name: str = "replicas"
    found: list[str] = field(default_factory=list)
    strikes: list[tuple[str, str, int]] = field(default_factory=list)
    """Which daemon, kill or freeze, and when."""
    deleted: int = 0
    """Replicas of recreated topics."""
    strays: int = 0
    """Times that a pass went on writing where the target had been."""
    records_compared: int = 0
    positions_compared: int = 0
    _daemons: list[Program] = field(default_factory=list)
    _plan: list[tuple[float, str, Program]] = field(default_factory=list)
    _told: DaemonsTold = field(default_factory=DaemonsTold)

    @property
    def target(self) -> Path:
        return self.folder / "replica"

    def breakable(self) -> Breakable:
        """The target's disk."""
        away = self.folder / "replica.away"
        says = rf"{re.escape(str(self.target))}|no such table|No such file|moved or deleted|catalog.db is missing"
        return Breakable(
            "the replica's warehouse", says, lambda: _move(self.target, away), lambda: self._bring_back(away)
        )

    def start(self) -> None:
        for stream in STREAMS:
            if stream == "kafka":
                self.source.create_stream(stream)
            where = ("--to", str(self.target), "--name", f"{stream}-backup")
            self._ran("replica", "add", f"{stream}/", *where, "--sync-groups")
        flags = ["--catalog", CATALOG, "--interval", "1s", "--lease", f"{LEASE_S}s"]
        for number in range(1, DAEMONS + 1):
            name = f"daemon-{number}"
            daemon = Program(name, ["replica", "run", "--id", name, *flags], self.folder, self.env)
            self._daemons.append(daemon)
            daemon.start()
        now_s = time.monotonic()
        first, second = self._daemons[0], self._daemons[-1]
        self._plan = [
            (now_s + self.feed_s * 0.25, "kill", first),
            (now_s + self.feed_s * 0.5, "freeze", second),
            (now_s + self.feed_s * 0.5 + FREEZES_FOR_S, "thaw", second),
            (now_s + self.feed_s * 0.8, "kill", second),
        ]

    def tick(self) -> None:
        for daemon in self._daemons:
            if not daemon.is_running:
                self.found += filter(None, [self.outages.restart(daemon)])
        while self._plan and time.monotonic() >= self._plan[0][0]:
            _, kind, daemon = self._plan.pop(0)
            self._strike(kind, daemon)

    def feeding_ended(self) -> None:
        for daemon in self._daemons:
            if daemon.frozen:
                self._strike("thaw", daemon)
        self._plan = []
        self._delete_recreated()

    def unsettled(self) -> Mapping[str, str]:
        return {}

    def stop(self) -> None:
        """Waits until the daemons have caught up with what the cleaners left."""
        until_s, behind = time.monotonic() + CATCHES_UP_S, ["not looked yet"]
        while behind and time.monotonic() < until_s:
            time.sleep(1.0)
            behind = self._behind()
        self.found += [f"daemons do not catch up: {text}" for text in behind[:10]]
        asked_s = time.monotonic()
        for daemon in self._daemons:
            daemon.ask_to_stop()
        for daemon in self._daemons:
            daemon.wait_stopped(asked_s)
            if daemon.life.exit_code != 0 or (daemon.life.stopped_s or 0) > ENDS_WITHIN_S:
                self.found.append(
                    f"{daemon.name} ended with {daemon.life.exit_code} after {daemon.life.stopped_s:.1f} s"
                )

    def findings(self) -> list[str]:
        self._ran("replica", "run", "--once")
        for stream in STREAMS:
            for line in self._ran("replica", "verify", f"{stream}-backup"):
                if line.get("findings"):
                    self.found.append(f"replica verify: {line}")
        names = [name for name in self.source.warehouse.store.topics() if name.stream in STREAMS]
        replica = lithify.open(str(self.target))
        differences, self.records_compared = all_differences(self.source, replica, names)
        of_positions, self.positions_compared = position_differences(self.source, replica, names)
        self._told = told_by_daemons(self._lives, Disturbances(self.fed.deletions, self.strikes, self.outages))
        return [
            *self.found,
            *differences,
            *of_positions,
            *(f"unexplained: {event}" for event in self._told.unexplained),
        ]

    def rows(self) -> list[tuple[str, object]]:
        told = self._told
        struck = Counter(kind for _, kind, _ in self.strikes)
        return [
            ("replica passes", f"{told.kinds['copied']:,}: {told.files:,} files, {told.bytes:,} bytes"),
            ("  used again", f"{told.files_reused:,} files, {told.bytes_reused:,} bytes"),
            (
                "  failed, trouble",
                f"{told.kinds['failed']}, {told.kinds['trouble']}, abandoned {told.kinds['abandoned']}",
            ),
            ("  explained", ", ".join(f"{n} {why}" for why, n in sorted(told.explained.items())) or "none"),
            ("  daemons", f"{struck['kill']} kills, {struck['freeze']} freezes, {self.deleted} replicas deleted"),
            ("  written elsewhere", f"{self.strays} times, while the target was away"),
            ("  records compared", f"{self.records_compared:,}, and {self.positions_compared:,} positions of groups"),
        ]

    def to_json(self) -> dict[str, Any]:
        told = self._told
        return {
            "events": dict(told.kinds),
            "files_copied": told.files,
            "bytes_copied": told.bytes,
            "files_reused": told.files_reused,
            "bytes_reused": told.bytes_reused,
            "explained": dict(told.explained),
            "unexplained": told.unexplained,
            "strikes": [{"daemon": daemon, "kind": kind} for daemon, kind, _ in self.strikes],
            "deleted": self.deleted,
            "strays": self.strays,
            "records_compared": self.records_compared,
            "positions_compared": self.positions_compared,
        }

    def end(self) -> None:
        for daemon in self._daemons:
            daemon.end_for_good()

    @property
    def _lives(self) -> list[Any]:
        return [life for daemon in self._daemons for life in daemon.lives]

    def _strike(self, kind: str, daemon: Program) -> None:
        now_ms = time.time_ns() // 10**6
        match kind:
            case "kill":
                daemon.kill()
                daemon.start()
            case "freeze":
                daemon.freeze()
            case "thaw":
                daemon.thaw()
        self.strikes.append((daemon.name, kind, now_ms))

    def _delete_recreated(self) -> None:
        """As an operator who is told that the source of a replica is another topic now."""
        target = lithify.open(str(self.target))
        for topic in sorted({deletion.topic for deletion in self.fed.deletions}):
            try:
                replica = target.topic(topic).state().replica
            except UnknownTopicError:
                continue
            if replica is not None and replica.identity != self.source.topic(topic).state().identity:
                target.delete_topic(topic)
                self.deleted += 1

    def _behind(self) -> list[str]:
        """Topics whose replica is not at the newest version of its source."""
        target = lithify.open(str(self.target)).warehouse.store
        found = []
        for name in self.source.warehouse.store.topics():
            if name.stream not in STREAMS:
                continue
            try:
                ours = target.load(name).replica
            except UnknownTopicError:
                found.append(f"{name} has no replica")
                continue
            version = self.source.warehouse.store.load(name).version
            if ours is None or ours.version != version:
                found.append(f"{name} is at version {ours and ours.version} of {version}")
        return found

    def _ran(self, *command: str) -> list[dict[str, Any]]:
        """What a verb prints; one that fails is a finding."""
        ran = subprocess.run(
            [*PROGRAM, *command, "--catalog", CATALOG, "--json"],
            env=dict(self.env), capture_output=True, text=True, timeout=VERB_S, check=False,
        )  # fmt: skip
        if ran.returncode != 0:
            self.found.append(f"lithify {' '.join(command)} ended with {ran.returncode}: {ran.stderr[-500:]}")
        return [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]

    def _bring_back(self, away: Path) -> None:
        """What was written meanwhile where the folder had been is not part of it."""
        if not away.exists():
            return
        if self.target.exists():  # as below the place where a disk is to be mounted
            self.strays += 1
            _move(self.target, self.folder / f"replica.stray-{self.strays}")
        _move(away, self.target)


def _move(folder: Path, to: Path) -> None:
    if folder.exists():
        folder.rename(to)
