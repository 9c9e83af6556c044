"""Which messages of one key remain, by publishing order or by event time.

    publish      the last one; an empty payload deletes the key
    event-time   the one with the highest event time; at equal times a message on its own replaces what was before
                 it, one in a batch does not; an empty payload that is new enough deletes, and is forgotten

These are Pulsar's rules. A sealed batch (encrypted, or in an unknown codec) hides keys, so it is kept, and it
may have any key. What comes after it must therefore have its effect on what it hides. So a deletion after a
sealed batch is kept, and by event time a message does not lose against one from before that batch.

    k=1  [sealed]  k=∅     both stay but k=1: the batch may have k=2, which readers must see deleted
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from lithify.errors import InvalidSettingError

Order = Literal["publish", "event-time"]
"""Which of two messages of a key is the newer one."""

Position = tuple[int, ...]
"""Where a message is: the row of its entry, then its index in the batch."""


class KeyedMessage(NamedTuple):
    """What the rules use. `event_time` is 0 if there is none; `empty`: its payload deletes the key."""

    position: Position
    empty: bool
    event_time: int
    batched: bool


def survivors(messages: Iterable[KeyedMessage], order: Order, sealed: Iterable[Position] = ()) -> list[KeyedMessage]:
    """The messages of one key that remain, of all of its messages in publishing order.

    `sealed` are the positions of the sealed batches before or among them, in order.
    """
    kept: list[KeyedMessage] = []
    barriers, passed = iter(sealed), _NONE
    barrier = next(barriers, None)
    for message in messages:
        while barrier is not None and barrier < message.position:
            passed, barrier = barrier, next(barriers, None)
        kept = [older for older in kept if not replaces(message, older, order)]
        if kept and not kept[-1].empty and kept[-1].position > passed:
            continue  # what holds the key since the last sealed batch is newer
        if not message.empty or passed != _NONE:
            kept.append(message)
    return kept


_NONE: Position = ()
"""Less than any position."""


def replaces(message: KeyedMessage, older: KeyedMessage, order: Order) -> bool:
    """Whether a message replaces one that was published before it."""
    if order == "publish":
        return True
    if message.batched:
        return message.event_time > older.event_time
    return message.event_time >= older.event_time


def order_of(name: str) -> Order:
    """The order of that name. Raises InvalidSettingError for another."""
    match name:
        case "publish" | "event-time":
            return name
        case _:
            raise InvalidSettingError(f"{name!r} is not an order of messages", hint="use publish or event-time")
