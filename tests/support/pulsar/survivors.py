"""What is at work when a cluster is killed, and goes on when that is back: written as generators.

all are prepared ─► broker and bookie are killed ─► each goes on ─► ZooKeeper too, all start ─► each is looked at
             yield                                         yield
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lithify.model.message import MessageId
from lithify.pulsar.client import ClientConfig
from support.pulsar.server import PulsarServer


@dataclass(frozen=True)
class Place:
    """Where it happens."""

    server: PulsarServer
    session: Any
    folder: Path
    """Of one of them."""
    large: tuple[str, MessageId]
    """A large topic, to be read only, and its last id."""

    @property
    def config(self) -> ClientConfig:
        return ClientConfig(self.server.service_url, self.server.admin_url, answer_s=5, outage_s=60)


@dataclass
class Survivor:
    """What goes wrong is raised by its own test."""

    steps: Generator[None]
    errors: list[Exception] = field(default_factory=list)

    def go_on(self) -> None:
        try:
            if not self.errors:
                next(self.steps)
        except Exception as error:
            self.errors.append(error)

    def finish(self) -> None:
        for error in self.errors:
            raise error
        assert next(self.steps, "done") == "done"


Survives = Callable[[Place], Generator[None]]


def survivors_of(places: Mapping[str, Place], each: Mapping[str, Survives]) -> dict[str, Survivor]:
    """By name, each before its last step: their cluster was killed once, and is back."""
    found = {name: Survivor(survives(places[name])) for name, survives in each.items()}
    server = next(iter(places.values())).server
    for one in found.values():
        one.go_on()
    server.kill(broker_only=True)
    for one in found.values():
        one.go_on()
    server.kill()
    server.start()
    return found
