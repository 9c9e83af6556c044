"""A topic of a soak that is fed, and read, over HTTP: like all others otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from lithify.model.record import Record
from lithify.service.write.append import OffsetRange
from soak.feeder import FedTopic
from soak.follower import Follower, followers_of
from soak.gateways.asking import Gateways
from soak.gateways.reading import HttpFollower

FOLLOWED = 0.4
"""The share of these topics that readers follow."""


@dataclass(slots=True)
class HttpTopic(FedTopic):
    """Each append has a key, and is sent to one gateway after the other until its outcome is known."""

    gateways: Gateways = field(kw_only=True)
    chance: Random = field(kw_only=True)
    """Apart from the luck that draws the topic, as what gateways answer is not to change that."""

    def write(self, batch: Sequence[Record], *, keeps: bool) -> Sequence[OffsetRange]:
        if keeps:  # offsets of its own are for copies, which are not made over HTTP
            return FedTopic.write(self, batch, keeps=keeps)
        told = self.gateways.append(self.name, batch, f"{self.chance.getrandbits(96):x}", self.chance)
        return [OffsetRange(**one) for one in told["ranges"]]

    def followed(self) -> list[Follower]:
        return self.over_http() if self.luck.random() < FOLLOWED else []

    def over_http(self) -> list[Follower]:
        """Readers over HTTP of all that can be followed."""
        return [
            HttpFollower(one.topic, one.journal, one.compacted, gateways=self.gateways, luck=self.chance)
            for one in followers_of(self.topic, self.journal)
        ]
