"""What a warehouse can hold: a format version, and the features that its topics may have.

    3    no document says so: made by a Lithify that knew no features
    4    its topics may have the features that the document names

Topics without features are written as before, so earlier versions of Lithify can continue to use them in any warehouse.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from lithify.errors import UnsupportedFormatError
from lithify.model.formats.features import KNOWN_FEATURES, check_known


@dataclass(frozen=True, slots=True)
class WarehouseFormat:
    """The format of a warehouse."""

    version: int
    features: frozenset[str] = frozenset()

    def to_json(self) -> dict[str, Any]:
        return {"version": self.version, "features": sorted(self.features)}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> WarehouseFormat:
        """The inverse of `to_json`. Raises `LookupError`, `TypeError` or `ValueError` for anything else.

        If the format is later, only the version is read: a newer Lithify may store the rest in another way.
        """
        version = content["version"]
        if type(version) is not int:
            raise TypeError("the version is not a number")
        if version > NEWEST_FORMAT.version:
            return cls(version)
        features = content["features"]
        if version < UNSTATED_FORMAT.version or not isinstance(features, list):
            raise ValueError("no such version, or no list of features")
        return cls(version, frozenset(map(str, features)))

    def lacking(self, features: Iterable[str]) -> tuple[str, ...]:
        """The part of `features` that topics of this warehouse may not have."""
        return tuple(sorted(set(features) - self.features))


UNSTATED_FORMAT = WarehouseFormat(3)
"""The format of a warehouse without a document."""
NEWEST_FORMAT = WarehouseFormat(4, KNOWN_FEATURES)
"""The format of new warehouses, and after an upgrade."""


def check_supported(warehouse: str, warehouse_format: WarehouseFormat) -> None:
    """Raises `UnsupportedFormatError` for a format of a newer Lithify."""
    if warehouse_format.version > NEWEST_FORMAT.version:
        raise UnsupportedFormatError(
            f"{warehouse}: the warehouse has format {warehouse_format.version}, but this version supports formats up "
            f"to {NEWEST_FORMAT.version}",
            hint="use a newer Lithify; nothing was changed",
        )
    check_known(warehouse, warehouse_format.features)


def check_holds(warehouse: str, warehouse_format: WarehouseFormat, topic: str, features: Iterable[str]) -> None:
    """Raises `UnsupportedFormatError` if a topic of a warehouse cannot have these features before an upgrade."""
    lacking = warehouse_format.lacking(features)
    if lacking:
        raise UnsupportedFormatError(
            f"{topic}: it needs the feature {lacking[0]}, but {warehouse} has format {warehouse_format.version} "
            "without it",
            hint="run `lithify warehouse upgrade --yes` there; replication then resumes by itself; nothing was changed",
        )
