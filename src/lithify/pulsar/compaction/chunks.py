"""Puts the chunks of large messages together as readers do, and finds which no reader ever can.

    0  1  2          a message of three chunks, complete at the last
    0  1  0  1  2    its producer sent it again from the start: the first two are lost
    0  1  1  2       one was sent twice: the second time it is lost
    0  2             one is missing: all are lost
    1  2             the beginning was trimmed or compacted away: lost
    0  1             complete some day, as far as anyone can tell: it waits

Producers number their messages from 0 again after a restart, so the id of a chunked message may come back with another
message. A message counts where its last chunk is, as readers get it there.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

P = TypeVar("P")


class ChunkId(NamedTuple):
    """Which chunk it is, of how many, and of which message: its producer, its uuid and its key."""

    message: Hashable
    chunk_id: int
    total: int


@dataclass(frozen=True, slots=True)
class Assembled(Generic[P]):
    """Chunks by what becomes of them. A message's chunks are in order, the one that completes it last."""

    complete: list[list[P]] = field(default_factory=list)
    waiting: list[list[P]] = field(default_factory=list)
    lost: list[P] = field(default_factory=list)


def assembled(chunks: Iterable[P], identify: Callable[[P], ChunkId]) -> Assembled[P]:
    """The chunks of a partition, given in the order of their ids."""
    messages: Assembled[P] = Assembled()
    begun: dict[Hashable, list[P]] = {}
    for chunk in chunks:
        message, chunk_id, total = identify(chunk)
        sofar = begun.get(message, [])
        if chunk_id == 0:
            messages.lost.extend(sofar)
            begun[message] = sofar = [chunk]
        elif sofar and chunk_id == len(sofar):
            sofar.append(chunk)
        else:
            messages.lost.append(chunk)
            if chunk_id > len(sofar):
                messages.lost.extend(begun.pop(message, []))
            continue
        if chunk_id == total - 1:
            messages.complete.append(begun.pop(message))
    messages.waiting.extend(begun.values())
    return messages
