"""Whose records a topic takes: its producers', or the records of a topic of another system that it copies (C70).

    Own ──first ingest──► CopyOf ──promote──► Promoted

A copy whose records themselves show where they are from, as Pulsar's do by their ids, remains `Own`: its offsets
are its own.
"""

from __future__ import annotations

from dataclasses import dataclass

KAFKA = "Kafka"
"""Stored without its name: earlier versions know no other system whose offsets copies have."""


@dataclass(frozen=True, slots=True)
class Own:
    """Its producers give it records, at offsets of its own."""


@dataclass(frozen=True, slots=True)
class CopyOf:
    """Only an ingest of this topic gives it records, at the offsets that `system` has given them."""

    system: str
    topic: str

    def __str__(self) -> str:
        return f"{self.system}'s {self.topic}"


@dataclass(frozen=True, slots=True)
class Promoted:
    """It was such a copy, and is a topic of its own for ever."""


Origin = Own | CopyOf | Promoted

OWN = Own()
PROMOTED = Promoted()


def origin_text(origin: Origin) -> str | None:
    """As it is stored; empty once it was promoted, None for a topic that was never a copy.

    orders           Kafka's topic, in whose name there is no colon
    SYSTEM:orders    a topic of another system
    """
    match origin:
        case Own():
            return None
        case CopyOf(system, topic):
            return topic if system == KAFKA else f"{system}:{topic}"
        case Promoted():
            return ""


def origin_of(text: str | None) -> Origin:
    """The inverse of `origin_text`. Raises `TypeError` for something else."""
    match text:
        case None:
            return OWN
        case "":
            return PROMOTED
        case str():
            system, named, topic = text.partition(":")
            return CopyOf(system, topic) if named else CopyOf(KAFKA, text)
    raise TypeError(f"{text!r} is not a topic")
