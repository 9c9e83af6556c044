"""What who has a token may do, per stream; after the permissions of a MapR stream.

    role      MapR           may                                                                  also
    look                     lists, status, settings, history, versions
    consume   consumeperm    read records, the table, and the positions of groups                 look
    produce   produceperm    append                                                               look
    topic     topicperm      create, alter and delete topics; compact, verify, cut, undo, sweep   look
    admin     adminperm      everything                                                           all of them

`topic` does not include `consume`: what compacts or cuts a log need not see its records. A grant is for one stream, or
for `*`: all streams, also later ones, and what belongs to the whole warehouse, such as tokens and rates of cleaners.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from lithify.errors import RefusedError
from lithify.model.names import nearest, original_stream, parse_stream

ALL = "*"
"""All streams, and the warehouse as a whole."""


class Role(StrEnum):
    LOOK = "look"
    CONSUME = "consume"
    PRODUCE = "produce"
    TOPIC = "topic"
    ADMIN = "admin"

    @property
    def includes(self) -> frozenset[Role]:
        """The roles that it includes, itself among them."""
        return frozenset(Role) if self is Role.ADMIN else frozenset({self, Role.LOOK})


@dataclass(frozen=True, slots=True, order=True)
class Grant:
    """A role for a stream, by the name under which it is stored, or for `*`."""

    role: Role
    stream: str = ALL

    def __str__(self) -> str:
        """As `--grant` takes it: `produce:shop`, `consume:persistent://shop/eu`, `admin:*`."""
        return f"{self.role}:{self.stream if self.stream == ALL else original_stream(self.stream)}"

    @property
    def stored(self) -> str:
        return f"{self.role}:{self.stream}"


ADMIN = Grant(Role.ADMIN)


def parse_grant(text: str) -> Grant:
    """`ROLE:STREAM`, `ROLE:*` or `ROLE`, which is the same. Raises `RefusedError` or `InvalidNameError`."""
    name, colon, stream = text.partition(":")
    if name not in [*Role]:
        hint = nearest(name, [*Role], f"the roles are {', '.join(Role)}")
        raise RefusedError(f"{text!r} is not a grant: there is no role {name!r}", hint=hint)
    if not colon or stream == ALL:
        return Grant(Role(name))
    return Grant(Role(name), parse_stream(stream))


def streams(grants: Iterable[Grant], role: Role) -> frozenset[str]:
    """The streams for which one of the grants includes the role, by their stored names; with `*` all of them."""
    return frozenset(grant.stream for grant in grants if role in grant.role.includes)


def allows(grants: Iterable[Grant], role: Role, stream: str) -> bool:
    """Whether one of the grants includes the role for a stream, by its stored name.

    With `*` as the stream it is about the whole warehouse, which only grants for `*` include.
    """
    return any(role in grant.role.includes and grant.stream in (ALL, stream) for grant in grants)
