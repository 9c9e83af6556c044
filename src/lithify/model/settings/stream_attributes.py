"""The attributes of a stream: MapR's, and any topic setting by Kafka's name (C56).

    compact=false ttl=0       cleanup.policy=delete    retention.ms=-1        every record, for ever
    compact=false ttl=N       cleanup.policy=delete    retention.ms=N*1000    every record, for N seconds
    compact=true  ttl=0       cleanup.policy=compact   retention.ms=-1        the latest of every key, for ever
    compact=true  ttl=N       cleanup.policy=compact   retention.ms=N*1000    the same: the policy drops nothing by age
    cleanup.policy=compact,delete  ttl=N               retention.ms=N*1000    the latest of every key, for N seconds

An attribute stands for a topic setting, except for `defaultpartitions` and `autocreate`. Where both are set they have
to agree. `mincompactionlag` brings a second setting, which the stream may set otherwise. Only attributes that were set
are stored, as text in one form.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from lithify.errors import InvalidSettingError
from lithify.model.names import nearest
from lithify.model.settings.foreign import counterpart
from lithify.model.settings.table import MAX_PARTITIONS, SETTINGS
from lithify.model.settings.topic_settings import TopicSettings, changed, to_config
from lithify.model.settings.units import format_duration, parse_duration_ms, plural

TOPICS_ONLY = "message.ids"
"""The setting that no stream has: it says which columns the records of one topic have."""

_MOST_SECONDS = (2**63 - 1) // 1_000


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute. `parse` gives the one form of its text."""

    name: str
    accepts: str
    doc: str
    parse: Callable[[str], str] = field(repr=False)
    default: str = ""
    """Of attributes that stand for no setting."""
    setting: str | None = None
    """The topic setting that it stands for."""
    to_setting: Callable[[str], str] = field(default=str, repr=False)
    of_setting: Callable[[str], str] = field(default=str, repr=False)
    brings: Mapping[str, str] = field(default_factory=dict)
    """Other topic settings that it brings, unless the stream has values of its own for them."""


_WHOLE = re.compile(r"-?\d{1,19}")


def _choice(text: str, allowed: Mapping[str, str]) -> str:
    choice = allowed.get(text.strip().lower())
    if choice is None:
        raise ValueError(f"{text!r} is not an accepted value")
    return choice


def _flag(text: str) -> str:
    return _choice(text, {"true": "true", "false": "false"})


def _partitions(text: str) -> str:
    if not _WHOLE.fullmatch(text.strip()):
        raise ValueError(f"{text!r} is not a whole number")
    if not 1 <= int(text) <= MAX_PARTITIONS:
        raise ValueError(f"{int(text)} is out of range")
    return str(int(text))


def _seconds(text: str) -> str:
    number = text.strip()
    ms = parse_duration_ms(f"{number}s" if _WHOLE.fullmatch(number) else number)
    if ms % 1_000 or not 0 <= ms // 1_000 <= _MOST_SECONDS:
        raise ValueError(f"{text!r} is not a whole number of seconds, 0 or more")
    return str(ms // 1_000)


def _retention_ms(ttl: str) -> str:
    return str(int(ttl) * 1_000 or -1)


def _ttl(retention_ms: str) -> str:
    ms = int(retention_ms)
    return "0" if ms < 0 else f"{ms // 1_000}" if ms % 1_000 == 0 else f"{ms / 1_000}"


def _like(setting: str) -> Callable[[str], str]:
    return lambda text: str(SETTINGS[setting].parse(text))


_CODECS = {"off": "none", "zlib": "gzip", **{codec: codec for codec in ("zstd", "snappy", "gzip", "lz4", "none")}}
_TIMESTAMPS = {"createtime": "CreateTime", "logappendtime": "LogAppendTime"}

_TABLE = (
    Attribute(
        "compact",
        "true or false",
        "Whether topics keep the latest record of every key, or all records.",
        _flag,
        setting="cleanup.policy",
        to_setting=lambda text: "compact" if text == "true" else "delete",
        of_setting=lambda text: "true" if "compact" in text.split(",") else "false",
    ),
    Attribute(
        "mincompactionlag",
        SETTINGS["min.compaction.lag.ms"].accepts,
        "Records that were written more recently than this are not compacted.",
        _like("min.compaction.lag.ms"),
        setting="min.compaction.lag.ms",
        brings={"min.compaction.lag.from": "commit"},  # MapR's lag counts from the write, whatever the timestamp says
    ),
    Attribute(
        "deleteretention",
        SETTINGS["delete.retention.ms"].accepts,
        "How long a tombstone stays readable after the first round that covered it.",
        _like("delete.retention.ms"),
        setting="delete.retention.ms",
    ),
    Attribute(
        "ttl",
        "seconds, or a duration such as 7d; 0: for ever",
        "How old records may get, where the policy has delete.",
        _seconds,
        setting="retention.ms",
        to_setting=_retention_ms,
        of_setting=_ttl,
    ),
    Attribute(
        "defaultpartitions",
        f"a number from 1 to {MAX_PARTITIONS}",
        "Partitions of a topic that is created without a number of them.",
        _partitions,
        default="1",
    ),
    Attribute(
        "autocreate",
        "true or false",
        "Whether an append to a topic that does not exist creates it.",
        _flag,
        default="false",
    ),
    Attribute(
        "compression",
        "zstd or snappy or gzip or lz4 or none; MapR's off is none, its zlib gzip",
        "Codec of the segments that are written from now on.",
        lambda text: _choice(text, _CODECS),
        setting="compression.type",
    ),
    Attribute(
        "defaulttimestamptype",
        "CreateTime or LogAppendTime",
        "Whether a record keeps its producer's time or gets the time of the append.",
        lambda text: _choice(text, _TIMESTAMPS),
        setting="message.timestamp.type",
    ),
)

ATTRIBUTES: Mapping[str, Attribute] = {attribute.name: attribute for attribute in _TABLE}
INHERITABLE = tuple(name for name in SETTINGS if name != TOPICS_ONLY)
"""The topic settings that a stream may have."""


@dataclass(frozen=True, slots=True)
class StreamAttributes:
    """The attributes that were set for a stream, by name, as text in one form. Made by `with_attributes`."""

    given: Mapping[str, str] = field(default_factory=dict)

    @property
    def inherited(self) -> dict[str, str]:
        """The topic settings that its topics inherit, by Kafka's names."""
        given = [attribute for attribute in _TABLE if attribute.name in self.given]
        brought = {name: value for attribute in given for name, value in attribute.brings.items()}
        settings = {a.setting: a.to_setting(self.given[a.name]) for a in given if a.setting}
        return brought | settings | {name: value for name, value in self.given.items() if name in SETTINGS}

    @property
    def default_partitions(self) -> int:
        return int(self.value("defaultpartitions"))

    @property
    def autocreate(self) -> bool:
        return self.value("autocreate") == "true"

    def value(self, name: str) -> str:
        """The value in force of an attribute, or of a topic setting, as text."""
        settings = {**_DEFAULTS, **self.inherited}
        attribute = ATTRIBUTES.get(name)
        if attribute is None:
            return settings[name]
        if attribute.setting is None:
            return self.given.get(name, attribute.default)
        return attribute.of_setting(settings[attribute.setting])

    def is_given(self, name: str) -> bool:
        """Whether the value in force was set for the stream, under this name or under the setting's name."""
        attribute = ATTRIBUTES.get(name)
        if attribute is not None and attribute.setting is None:
            return name in self.given
        return (name if attribute is None else attribute.setting) in self.inherited

    @property
    def settings(self) -> TopicSettings:
        """The settings of a topic without any of its own."""
        return changed(TopicSettings(), self.inherited)


_DEFAULTS = to_config(TopicSettings())


def with_attributes(
    before: StreamAttributes, config: Mapping[str, object], unset: Iterable[str] = ()
) -> StreamAttributes:
    """`before` with these set and those no longer set, checked as a whole, also what is of `before`.

    Raises `InvalidSettingError` for an unknown name, a value that is not accepted, or a contradiction.
    """
    names = tuple(unset)
    for name in names:
        if name not in before.given:  # what another program has set can be unset
            _check_known(name)
    kept: dict[str, object] = {name: value for name, value in before.given.items() if name not in names}
    after = StreamAttributes({name: _parsed(name, str(value)) for name, value in (kept | dict(config)).items()})
    for attribute in _TABLE:
        _check_agrees(attribute, after.given)
    changed(TopicSettings(), after.inherited)
    return after


def keeps(attributes: StreamAttributes) -> str:
    """What topics without settings of their own keep, for a person."""
    settings = attributes.settings
    what = "the latest record of every key" if settings.compacts else "every record"
    age = f"for {format_duration(settings.retention_ms)}" if settings.retention_ms >= 0 else "for ever"
    if settings.deletes:
        size = (
            ""
            if settings.retention_bytes < 0
            else f", in {plural(settings.retention_bytes, 'byte')} of each log at most"
        )
        return f"{what}, {age}{size}"
    if attributes.is_given("ttl") and settings.retention_ms >= 0:
        return f"{what}, for ever: ttl has no effect, as only cleanup.policy=compact,delete expires live keys"
    return f"{what}, for ever"


def _parsed(name: str, text: str) -> str:
    _check_known(name)
    attribute = ATTRIBUTES.get(name)
    parse, accepts = (
        (lambda text: str(SETTINGS[name].parse(text)), SETTINGS[name].accepts)
        if attribute is None
        else (attribute.parse, attribute.accepts)
    )
    try:
        return parse(text)
    except ValueError as error:
        raise InvalidSettingError(f"{name}={text}: {error}", hint=f"accepted: {accepts}") from None


def _check_known(name: str) -> None:
    if name == TOPICS_ONLY:
        raise InvalidSettingError(
            f"{name} is not an attribute of a stream: it selects the columns of the records of one topic",
            hint="set it with `lithify topic create`",
        )
    if name not in ATTRIBUTES and name not in SETTINGS:
        known = (*ATTRIBUTES, *INHERITABLE)
        hint = counterpart(name) or nearest(name, known, f"known: {', '.join(known)}")
        raise InvalidSettingError(f"{name}: no such attribute of a stream, nor a topic setting", hint=hint)


def _check_agrees(attribute: Attribute, given: Mapping[str, str]) -> None:
    """The attribute and the setting that it stands for."""
    name, setting = attribute.name, attribute.setting
    if setting is None or name not in given or setting not in given:
        return
    if attribute.of_setting(given[setting]) != given[name]:
        raise InvalidSettingError(
            f"{name}={given[name]} contradicts {setting}={given[setting]}: {name} stands for {setting}",
            hint="set only one of them, and unset the other",
        )
