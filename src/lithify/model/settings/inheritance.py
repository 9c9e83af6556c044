"""Which settings of a topic are its own, and which it inherits from its stream (C56).

    own         set at its creation or by `topic alter`; copied from Kafka or Pulsar    ─┐
    inherited   what the attributes of its stream say                                    ├─► settings in force
    default     all others                                                              ─┘   own before inherited

A topic stores the settings in force and the names of its own, so its readers need not read its stream.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from enum import StrEnum

from lithify.model.settings.table import SETTINGS
from lithify.model.settings.topic_settings import TopicSettings, changed, changes, to_config, unset


class Origin(StrEnum):
    """Where the value of a setting or attribute comes from."""

    TOPIC = "topic"
    STREAM = "stream"
    DEFAULT = "default"


def own_names(listed: Iterable[str] | None, settings: TopicSettings) -> frozenset[str]:
    """The names of a topic's own settings; without a list of them, those that differ from the defaults."""
    return frozenset(changes(TopicSettings(), settings) if listed is None else listed)


def in_force(own: Mapping[str, object], inherited: Mapping[str, str]) -> TopicSettings:
    """The settings of a topic with these of its own. Raises `InvalidSettingError`, also for a contradiction."""
    return changed(TopicSettings(), {**inherited, **own})


def own_values(settings: TopicSettings, own: Set[str]) -> dict[str, object]:
    """The values of a topic's own settings."""
    config = to_config(settings)
    return {name: config[name] for name in SETTINGS if name in own}


def inheriting(settings: TopicSettings, own: Set[str], inherited: Mapping[str, str]) -> TopicSettings:
    """The settings that a topic with these should have now. Raises `InvalidSettingError` for a contradiction."""
    return in_force(own_values(settings, own), inherited)


def after_change(
    settings: TopicSettings,
    own: Set[str],
    inherited: Mapping[str, str] | None,
    config: Mapping[str, object],
    unset_names: Iterable[str],
) -> tuple[TopicSettings, frozenset[str]]:
    """The settings of a topic after these were set and those unset, and the names of its own ones then.

    Where nothing is known of its stream, what it inherited before remains. Raises `InvalidSettingError`.
    """
    names = frozenset(unset_names)
    reset = unset(settings, names)  # checks the names
    kept = frozenset(own) - names
    ours = kept.union(config)
    if inherited is None:
        return changed(reset, config), ours
    return in_force({**own_values(settings, kept), **config}, inherited), ours


def origins(settings: TopicSettings, own: Set[str], inherited: Mapping[str, str]) -> dict[str, Origin]:
    """Where each value of a topic's settings comes from.

    A value that is neither its own nor the default came from the stream, even if the stream has another one now.
    """
    config, defaults = to_config(settings), to_config(TopicSettings())
    return {name: _origin(name, config[name] != defaults[name], own, inherited) for name in SETTINGS}


def _origin(name: str, differs: bool, own: Set[str], inherited: Mapping[str, str]) -> Origin:
    if name in own:
        return Origin.TOPIC
    return Origin.STREAM if name in inherited or differs else Origin.DEFAULT
