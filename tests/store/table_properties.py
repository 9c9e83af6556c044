"""A topic's table changed by hand, as if Lithify had: with the checksums that belong, or as before there were any."""

from __future__ import annotations

from collections.abc import Mapping

from pyiceberg.table import Table

from lithify.store.iceberg.io.checksums import CHECKSUM, REFS, TABLE, sealing, stated_refs


def set_sealed(table: Table, changes: Mapping[str, str]) -> None:
    """Sets properties, and the checksum that a commit with them would have set."""
    properties = {**table.properties, **changes}
    refs = stated_refs(properties)
    assert refs is not None
    with table.transaction() as change:
        change.set_properties({**changes, **sealing(table, properties, refs)})


def as_of_format(table: Table, version: int) -> None:
    """The properties as those of a topic of a format before checksums (C48)."""
    assert version < 3
    with table.transaction() as change:
        change.set_properties({"lithify.format-version": str(version)})
        change.remove_properties(CHECKSUM, REFS, TABLE)
