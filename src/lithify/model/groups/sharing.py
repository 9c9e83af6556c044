"""How the members of a group share the partitions of a topic: each decides for itself, from the same table of leases.

    5 partitions, 2 members     alpha 0 1 2   beta 3 4
    gamma joins: 2, 2 and 1     alpha gives 1 up, beta none, gamma takes what is free

Shares differ by one at most and add up to all partitions. The members that hold most get the larger ones, so
that few partitions move; members that see the same table come to the same shares.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Turn:
    """What a member does next."""

    take: tuple[int, ...] = ()
    """Partitions without a holder, up to the number that it lacks."""
    give_up: int = 0
    """How many of its own are more than its share."""
    settled: bool = True
    """Whether no partition is about to change hands, as far as is known."""


def shares(partitions: int, held: Mapping[str, int]) -> dict[str, int]:
    """By member, how many partitions it should hold, given how many it holds."""
    least, more = divmod(partitions, len(held))
    by_rank = sorted(held, key=lambda member: (-held[member], member))
    return {member: least + (rank < more) for rank, member in enumerate(by_rank)}


def next_turn(
    me: str,
    partitions: int,
    holders: Mapping[int, str],
    members: Collection[str],
    silent: Collection[str] = (),
) -> Turn:
    """The turn of a member. `holders` has the partitions that someone holds, `members` all that are there.

    A holder that is not a member, such as a query of Spark or one that has just left, keeps what it holds. Holders
    of whom nothing was heard yet are `silent`: they may have died, and what they hold is free soon.
    """
    held = dict.fromkeys({me, *members}, 0)
    for partition, holder in holders.items():
        if holder in held and partition < partitions:
            held[holder] += 1
    due = shares(partitions, held)
    mine, share = held[me], due[me]
    free = [partition for partition in range(partitions) if partition not in holders]
    lacks = max(0, share - mine)
    start = sorted(held).index(me) * lacks % max(1, len(free))  # members that look at once begin elsewhere
    take = (free[start:] + free[:start])[:lacks]
    fair = all(held[member] <= due[member] for member in held)
    settled = not free and fair and not any(holder in silent for holder in holders.values())
    return Turn(tuple(take), max(0, mine - share), settled)
