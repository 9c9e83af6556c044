"""A group does not begin anew where its positions are stored under another name of the warehouse (C73).

    identity lost in the catalog, and a new one made  positions are under the one before
    opened by a place that was never taken over      positions of an earlier version are under that place

Only a group without any position in the topic asks, and who names a group that has none.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from lithify.errors import LithifyError, RefusedError
from lithify.model.groups.positions import GroupTopic
from lithify.model.names import TopicName
from lithify.ports.groups import Groups
from lithify.ports.store import Warehouse

NAMES_AT_MOST = 3


def check_group_not_elsewhere(
    warehouse: Warehouse, groups: Groups, group: str, topics: Iterable[TopicName] | None = None
) -> None:
    """`check_not_elsewhere` of topics in which the group has no position: of all, or of these. Raises `RefusedError`.

    A topic that cannot be read is passed over: it is for those who read it.
    """
    there = groups.topics_elsewhere(group)
    for topic in sorted(there if topics is None else there.intersection(topics)):
        identity = None
        with suppress(LithifyError):
            identity = warehouse.store.load(topic).identity
        if identity is not None:
            check_not_elsewhere(groups, GroupTopic(groups.scope, group, topic), identity)


def check_not_elsewhere(groups: Groups, part: GroupTopic, identity: str) -> None:
    """`identity` is the topic's. Raises `RefusedError`."""
    names = groups.elsewhere(part.group, part.topic, identity)
    if not names:
        return
    more = f" and {len(names) - NAMES_AT_MOST} more" if len(names) > NAMES_AT_MOST else ""
    listing = ", ".join(names[:NAMES_AT_MOST]) + more
    if all(map(_is_place, names)):
        hint = "open the warehouse once by that place, as the earlier version did: this takes over its positions"
    else:
        hint = (
            "if the catalog has lost its namespace lithify_warehouse, restore the property lithify.warehouse-id: see "
            "`A lost identity` in docs/recover/repair.md"
        )
    raise RefusedError(
        f"group {part.group} has no position in {part.topic} of warehouse {groups.scope}, but has one under "
        f"{listing}, another name of the same warehouse; it would read everything again",
        hint=f"{hint}; to start over, choose another name for the group",
    )


def _is_place(name: str) -> bool:
    """Whether it is not an identity, which has letters and digits only."""
    return any(character in name for character in ":/ ")
