"""The name of a warehouse in databases that several warehouses share, whatever it was opened by (C73).

    /srv/lake, /mnt/link-to-lake/, s3://bucket/lake behind two names      one identity ─► one name
    what versions before wrote there                                      the place as it was opened: taken over once

The identity is random, and is made once in the catalog. A copy of a whole warehouse has the identity of the original.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WarehouseScope:
    """The names of one warehouse."""

    name: str
    """Of everything in shared databases: the identity, or `where` while there is none."""
    where: str
    """The place as it was opened: for people, and in what versions before this one have stored."""
    location: str
    """The place without links, which tells whether one warehouse lies in another."""

    @classmethod
    def of(cls, where: str) -> WarehouseScope:
        """The scope of a warehouse without an identity."""
        return cls(where, where, where)

    @property
    def former(self) -> str | None:
        """Under which name versions before have stored what is of this warehouse; None if it is the same one."""
        return None if self.name == self.where else self.where

    def holds(self, other: WarehouseScope) -> bool:
        """Whether the other one lies inside of this one."""
        return other.location.startswith(f"{self.location}/")
