"""What a soak is asked for on its command line."""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import dataclass
from pathlib import Path

from soak.topics import Sizes

PARTS = ("groups", "kafka", "outages", "replicas")


@dataclass(frozen=True, slots=True)
class Wish:
    """What the command line asks for."""

    feed_s: float
    topics: int
    cleaners: int
    strike_every_s: float
    outage_every_s: float
    turns_per_s: float
    drain_s: float
    verified: int
    seed: int
    folder: Path
    without: frozenset[str]
    gateways: bool = False
    """Gateways in the place of cleaners."""

    def has(self, part: str) -> bool:
        return part not in self.without

    @property
    def sizes(self) -> Sizes:
        """Long enough for a slow round, and short enough for sweep to have something to do."""
        return Sizes(versions_retention_ms=60_000, sweep_grace_ms=180_000)

    @property
    def freeze_at(self) -> int:
        """The middle one of several strikes is a freeze."""
        strikes = int(self.feed_s // self.strike_every_s)
        return strikes // 2 if strikes >= 3 else -1


def parsed(about: str) -> tuple[Wish, bool]:
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--topics", type=int, default=200)
    parser.add_argument("--cleaners", type=int, default=3)
    parser.add_argument("--strike-every", type=float, default=60.0, help="seconds between two kills")
    parser.add_argument("--outage-every", type=float, default=120.0, help="seconds between two outages")
    parser.add_argument("--turns", type=float, default=6.0, help="appends and other verbs per second, at most")
    parser.add_argument("--drain", type=float, default=600.0, help="seconds until nothing may be due any more")
    parser.add_argument("--verify", type=int, default=8, help="topics that are verified on Spark as well")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, help="for the logs of the cleaners")
    parser.add_argument("--without", action="append", choices=PARTS, default=[], help="leaves a part out")
    parser.add_argument("--gateways", action="store_true", help="gateways in place of cleaners, with HTTP and a page")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp(prefix="lithify-soak-"))
    folder.mkdir(parents=True, exist_ok=True)
    wish = Wish(
        feed_s=60 * given.minutes,
        topics=given.topics,
        cleaners=given.cleaners,
        strike_every_s=given.strike_every,
        outage_every_s=given.outage_every,
        turns_per_s=given.turns,
        drain_s=given.drain,
        verified=given.verify,
        seed=given.seed,
        folder=folder,
        without=frozenset(given.without),
        gateways=given.gateways,
    )
    return wish, given.json
