"""What groups take of a gateway's memory: all together, and the groups of each token.

Groups are in memory while they have members. A member brings texts and metadata of its own, and a leader assignments.
One token gets three in four of all at most, as of the turns of the HTTP API: nobody keeps all others away.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Protocol

MOST_GROUPS = 2_000
"""With members, at one gateway."""
MOST_BYTES = 2**28
"""Of all groups."""
GROUP_BYTES, MEMBER_BYTES, ID_BYTES, TOPIC_BYTES, PARTITION_BYTES, MATCHED_BYTES = 4_096, 1_024, 512, 160, 160, 128
"""About what each takes beside its texts."""

Token = str | None
"""The id of the token of who asks; None without one."""
Sizes = Mapping[Token, int]
"""Bytes by who has brought them."""


class Sized(Protocol):
    """What a token has brought."""

    @property
    def token(self) -> Token: ...

    @property
    def size(self) -> int:
        """In bytes, about."""
        ...


class Shares:
    """How many groups and bytes there are, and whose they are."""

    def __init__(self) -> None:
        self._bytes, self._groups = Counter[Token](), Counter[Token]()

    def takes_group(self, token: Token) -> bool:
        """Whether one more group may begin."""
        return _fits(self._groups, {token: 1}, MOST_GROUPS)

    def takes(self, more: Sizes) -> bool:
        """Whether groups may become larger by this. Smaller they may become at any time."""
        return _fits(self._bytes, more, MOST_BYTES)

    def add(self, more: Sizes) -> None:
        _add(self._bytes, more)

    def add_group(self, token: Token, count: int = 1) -> None:
        _add(self._groups, {token: count})


def text_bytes(*texts: str | bytes | None) -> int:
    """What texts take in memory."""
    return sum(sys.getsizeof(text) for text in texts if text is not None)


def difference(before: Mapping[str, Sized], after: Mapping[str, Sized]) -> Sizes:
    """By how much more, or less, is brought after a step."""
    if before is after:
        return {}
    more = Counter[Token]()
    for name, one in after.items():
        if (was := before.get(name)) is not one:
            more[one.token] += one.size
            if was is not None:
                more[was.token] -= was.size
    for name in before.keys() - after.keys():
        more[before[name].token] -= before[name].size
    return more


def total(sizes: Iterable[Sizes]) -> Sizes:
    every = Counter[Token]()
    for one in sizes:
        _add(every, one)
    return every


def _fits(now: Mapping[Token, int], more: Sizes, most: int) -> bool:
    if sum(more.values()) > 0 and sum(now.values()) + sum(more.values()) > most:
        return False
    share = most - most // 4
    return not any(size > 0 and now.get(token, 0) + size > share for token, size in more.items() if token is not None)


def _add(to: Counter[Token], more: Sizes) -> None:
    for token, size in more.items():
        to[token] += size
        if not to[token]:
            del to[token]
