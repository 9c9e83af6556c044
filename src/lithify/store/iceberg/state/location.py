"""The folder of a topic, pinned in the table's own properties (C47).

    lithify.location         the folder that the topic was created in

A table's location can be set by anybody who may alter the table. What lies at another place is not the
topic's: it is neither read nor written nor deleted.
"""

from __future__ import annotations

from collections.abc import Mapping

from lithify.columnar.files.access import normal_form
from lithify.errors import LocationChangedError
from lithify.model.names import TopicName

_LOCATION = "lithify.location"

Properties = Mapping[str, str]


def pinned_location(properties: Properties) -> str | None:
    """The folder that a topic was created in; None in one of an earlier Lithify."""
    return properties.get(_LOCATION)


def topic_location(name: TopicName, properties: Properties, location: str) -> str:
    """The folder of a topic, given the location of its table.

    Raises `LocationChangedError` where that is not the folder that the topic was created in, however
    it is spelled: what lies there is not ours, and what we write would not be found.
    """
    pinned = properties.get(_LOCATION, location)
    if normal_form(pinned) != normal_form(location):
        raise LocationChangedError(
            f"{name}: the location of its table was changed from {pinned} to {location}",
            hint=f"`lithify repair {name}` sets it back; nothing was changed",
        )
    return pinned


def located(properties: Properties, location: str) -> dict[str, str]:
    """Pins the folder of a topic that none is pinned for: it was created by an earlier Lithify."""
    return {} if _LOCATION in properties else {_LOCATION: location}
