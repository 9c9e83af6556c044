"""Which member of a group reads which partitions: shares that differ by one at most, and few partitions that move.

before   alpha 0 1 2 3
now      alpha 0 1      beta 2 3       beta came, alpha keeps what it had as far as its share goes
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import islice

Part = tuple[bytes, int]
"""A topic's id, and a partition."""
Parts = frozenset[Part]
NOTHING: Parts = frozenset()


def assigned(wanted: Mapping[str, Collection[Part]], before: Mapping[str, Parts]) -> dict[str, Parts]:
    """By member, its partitions; `wanted` are all that it subscribes to. Each partition gets one member.

    Members that want the same share it evenly. Where some want others, each partition goes to one of them that has the
    fewest.
    """
    alike: dict[frozenset[Part], list[str]] = {}
    for member in sorted(wanted):
        alike.setdefault(frozenset(wanted[member]), []).append(member)
    if len(alike) <= 1:
        return _even(next(iter(alike), NOTHING), sorted(wanted), before)
    return _fair({member: frozenset(parts) for member, parts in wanted.items()}, before)


def _even(parts: Iterable[Part], members: list[str], before: Mapping[str, Parts]) -> dict[str, Parts]:
    every = frozenset(parts)
    if not members:
        return {}
    had = {member: sorted(before.get(member, NOTHING) & every) for member in members}
    least, more = divmod(len(every), len(members))
    ranked = sorted(members, key=lambda member: (-len(had[member]), member))
    share = {member: least + (rank < more) for rank, member in enumerate(ranked)}
    kept = {member: had[member][: share[member]] for member in members}
    free = iter(sorted(every - {part for some in kept.values() for part in some}))
    return {member: frozenset([*kept[member], *islice(free, share[member] - len(kept[member]))]) for member in members}


def _fair(wanted: Mapping[str, Parts], before: Mapping[str, Parts]) -> dict[str, Parts]:
    """Partitions that few want first, each to who has the fewest of those that want it; to who had it, if equal."""
    takers: dict[Part, list[str]] = {}
    for member in sorted(wanted):
        for part in wanted[member]:
            takers.setdefault(part, []).append(member)
    given: dict[str, set[Part]] = {member: set() for member in wanted}
    for part in sorted(takers, key=lambda part: (len(takers[part]), part)):
        chosen = min(takers[part], key=lambda m: (len(given[m]), part not in before.get(m, NOTHING), m))
        given[chosen].add(part)
    return {member: frozenset(parts) for member, parts in given.items()}
