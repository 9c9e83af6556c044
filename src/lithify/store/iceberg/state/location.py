"""The folder of a topic, pinned in the table's own properties (C47).

    lithify.location         the folder that the topic was created in

Any user who may alter the table can set its location. Files at another location are not the
topic's: Lithify neither reads nor writes nor deletes them.
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

    Raises `LocationChangedError` if that is not the folder that the topic was created in, in any
    spelling: its files are not the topic's, and files written there would not be found.
    """
    pinned = properties.get(_LOCATION, location)
    if normal_form(pinned) != normal_form(location):
        raise LocationChangedError(
            f"{name}: the location of its table was changed from {pinned} to {location}",
            hint=f"`lithify repair {name}` sets it back; nothing was changed",
        )
    return pinned


def located(properties: Properties, location: str) -> dict[str, str]:
    """Pins the folder of a topic that an earlier Lithify created without it."""
    return {} if _LOCATION in properties else {_LOCATION: location}
