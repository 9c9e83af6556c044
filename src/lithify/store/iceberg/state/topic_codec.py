"""The state of a topic as properties of its table, and back (described in docs/reference/format.md as well).

    lithify.format-version   3, or 4 with features; a higher one is refused
    lithify.features         JSON: what earlier versions of Lithify do not know of the topic
    lithify.version          the version that these properties belong to
    lithify.original-name    the name as the user gave it
    lithify.created-ms
    lithify.clock-ms         the latest time of a commit's clock
    lithify.settings         JSON: every setting under its dotted name
    lithify.own-settings     JSON: names of the settings that it does not inherit from its stream
    lithify.log.<partition>  JSON: one `LogState`, without the fields that are as in a new log
    lithify.versions         JSON: kept versions, newest first
    lithify.no-longer-named-bytes  JSON: by kept version, the size of the files that only earlier versions name
    lithify.reports          JSON: ids of reports, newest first
    lithify.location         the folder that the topic was created in
    lithify.abandoned        JSON: runs that may no longer commit
    lithify.copy-of          the Kafka topic that it is a copy of; empty once it was promoted
    lithify.replica          JSON: the topic that it is a replica of, and at which version (`replica_codec`)
    lithify.refs, .checksum  checksums of branches, tags and these properties (`checksums`)

They change together with the data, in the commit that adds a snapshot to main, and the sequence number of
that snapshot is the version. If main is at another snapshot, another program moved it, and the state
does not describe that snapshot.

The location is pinned (C47): any user who may alter the table can set another. Files at another location are not
the topic's, so Lithify neither reads nor writes nor deletes them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

from lithify.columnar.files.access import normal_form
from lithify.errors import DamagedError, LocationChangedError, UnknownTopicError, UnsupportedFormatError
from lithify.errors.defects import readable
from lithify.model.formats.features import FEATURES_FORMAT, TOPIC_FORMAT, check_known, features_after, format_with
from lithify.model.names import TopicName
from lithify.model.settings.inheritance import own_names
from lithify.model.settings.topic_settings import TopicSettings, stored_settings, to_stored
from lithify.model.sources.origin import origin_of, origin_text
from lithify.model.topic.edit import KeptVersion, TopicEdit, Verb
from lithify.model.topic.log import FIRST_EPOCH, LogState
from lithify.model.topic.state import NewTopic, TopicState
from lithify.ports.documents import REPORTS_KEPT
from lithify.store.iceberg.io.checksums import FIRST_FORMAT, PREFIX, RESTORE, TableFacts, check
from lithify.store.iceberg.state.log_codec import log_from_text, log_to_json
from lithify.store.iceberg.state.replica_codec import replica_in, restated

FORMAT_VERSION = TOPIC_FORMAT
NEWEST_FORMAT = FEATURES_FORMAT
EPOCHS_SINCE = 3
"""The format version from which on a log has an epoch."""

_FORMAT = "lithify.format-version"
VERSION = "lithify.version"
ORIGINAL_NAME = "lithify.original-name"
_CREATED_MS = "lithify.created-ms"
_CLOCK_MS = "lithify.clock-ms"
_SETTINGS = "lithify.settings"
_OWN_SETTINGS = "lithify.own-settings"
_LOG = "lithify.log."
_VERSIONS = "lithify.versions"
_NO_LONGER_NAMED = "lithify.no-longer-named-bytes"
_REPORTS = "lithify.reports"
_ABANDONED = "lithify.abandoned"
_FEATURES = "lithify.features"
COPY_OF = "lithify.copy-of"

_LOCATION = "lithify.location"

SETTINGS_KEPT = 128
"""Texts of settings whose values are known: a commit reads the same ones some ten times."""

RUN = "lithify.run"
"""In the summary of every snapshot that Lithify adds to main: the run that added it."""

FIRST_VERSION = 1

Properties = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Closed:
    """A retained version as the table's properties name it."""

    version: int
    closed_ms: int
    closed_by: str
    record: str
    """Name of its record's file."""
    verb: str = Verb.COMPACT

    def kept(self, no_longer_named_bytes: int | None = None) -> KeptVersion:
        return KeptVersion(self.version, self.closed_ms, self.closed_by, Verb(self.verb), no_longer_named_bytes)


def is_topic(properties: Properties) -> bool:
    return any(name.startswith(PREFIX) for name in properties)


def check_format(name: TopicName, properties: Properties) -> None:
    """Raises `UnknownTopicError` for a table that is not a topic, `UnsupportedFormatError` for a newer one.

    It raises `UnsupportedFormatError` as well for a feature that this version does not support.
    """
    written = properties.get(_FORMAT)
    if written is None and not is_topic(properties):
        raise UnknownTopicError(f"{name}: there is a table with this name, but Lithify did not create it")
    if written is None:
        raise DamagedError(f"{name}: the table's properties do not have the topic's format", hint=RESTORE)
    if written not in map(str, range(1, NEWEST_FORMAT + 1)):
        raise UnsupportedFormatError(
            f"{name}: it was written in format {written}, but this version of Lithify supports formats up to "
            f"{NEWEST_FORMAT}",
            hint="use the newer Lithify that wrote it; nothing was changed",
        )
    check_known(str(name), _features(properties))


def new_topic(new: NewTopic) -> dict[str, str]:
    """The properties of a topic that is being created, without the properties of a replica."""
    return {
        ORIGINAL_NAME: new.original_name,
        _CREATED_MS: str(new.created_ms),
        _OWN_SETTINGS: _text(sorted(own_names(new.own_settings, new.settings))),
        **changed(FIRST_VERSION, new.settings, [LogState(partition) for partition in range(new.partitions)], None),
    }


def changed(
    version: int, settings: TopicSettings | None, logs: Iterable[LogState], clock_ms: int | None
) -> dict[str, str]:
    """The properties that the edit that makes `version` changes."""
    properties = {_FORMAT: str(FORMAT_VERSION), VERSION: str(version)}
    properties |= {f"{_LOG}{log.partition}": _text(log_to_json(log)) for log in logs}
    if settings is not None:
        properties[_SETTINGS] = _text(to_stored(settings))
    if clock_ms is not None:
        properties[_CLOCK_MS] = str(clock_ms)
    return properties


def edited(properties: Properties, version: int, edit: TopicEdit, kept: tuple[Closed, ...]) -> dict[str, str]:
    """The properties that the commit of `edit` as `version` changes; `kept` are the retained versions after it."""
    new = changed(version, edit.settings, edit.logs.values(), edit.clock_ms)
    new |= restated(properties, int(properties[VERSION]), version, edit)
    if edit.own_settings is not None:
        new[_OWN_SETTINGS] = _text(sorted(edit.own_settings))
    known = _features(properties)
    features = features_after(known, edit)
    new[_FORMAT] = str(format_with(features))
    if features != known:
        new |= featured(features)
    if edit.origin is not None and (origin := origin_text(edit.origin)) is not None:
        new[COPY_OF] = origin
    if edit.abandon is not None:
        new[_ABANDONED] = _text(edit.abandon)
    if kept != closed_versions(properties):
        new[_VERSIONS] = _text([asdict(closed) for closed in kept])
    if edit.report_id is not None:
        new[_REPORTS] = _text((edit.report_id, *report_ids(properties))[:REPORTS_KEPT])
    return new


def featured(features: tuple[str, ...]) -> dict[str, str]:
    """The properties of a topic that say which features it has."""
    return {_FORMAT: str(format_with(features)), _FEATURES: _text(features)}


def state_of(name: TopicName, facts: TableFacts) -> TopicState:
    """The state of a topic.

    Raises `UnknownTopicError`, `UnsupportedFormatError`, `LocationChangedError`, or `DamagedError` where
    the state cannot be read, or where something other than Lithify moved main.
    """
    properties = facts.properties
    check_format(name, properties)
    version = properties.get(VERSION)
    if version is None or str(facts.version) != version:
        raise DamagedError(
            f"{name}: something other than Lithify moved the table's main branch: it is not at version {version}",
            hint=f"set main back to version {version} with `lithify repair {name}`",
        )
    where = f"{name}: {facts.file}"
    needed = int(properties[_FORMAT]) >= FIRST_FORMAT
    check(where, f"{name.stream}.{name.topic}", facts, needed=needed)
    location = topic_location(name, properties, facts.location)
    with readable(f"{where}: the state in the table's properties"):
        return TopicState(
            name=name,
            original_name=properties[ORIGINAL_NAME],
            identity=facts.identity,
            version=int(version),
            location=location,
            settings=settings_in(properties),
            own_settings=own_names(_own_settings(properties), settings_in(properties)),
            logs=_logs(properties),
            created_ms=int(properties[_CREATED_MS]),
            clock_ms=int(properties[_CLOCK_MS]) if _CLOCK_MS in properties else None,
            abandoned=tuple(json.loads(properties.get(_ABANDONED, "[]"))),
            features=_features(properties),
            replica=replica_in(properties),
            origin=origin_of(properties.get(COPY_OF)),
            format_version=int(properties[_FORMAT]),
        )


def settings_in(properties: Properties) -> TopicSettings:
    """The settings that the properties have. Raises `InvalidSettingError`, or errors of JSON, for others."""
    return _settings_of(properties[_SETTINGS])


@lru_cache(SETTINGS_KEPT)
def _settings_of(text: str) -> TopicSettings:
    return stored_settings(json.loads(text))


def _features(properties: Properties) -> tuple[str, ...]:
    with readable(f"the table property {_FEATURES}"):
        return tuple(map(str, json.loads(properties.get(_FEATURES, "[]"))))


def _own_settings(properties: Properties) -> list[str] | None:
    """None of a topic that an earlier Lithify created."""
    listed = properties.get(_OWN_SETTINGS)
    return None if listed is None else list(map(str, json.loads(listed)))


def closed_versions(properties: Properties) -> tuple[Closed, ...]:
    """Retained versions, newest first."""
    with readable(f"the table property {_VERSIONS}"):
        return tuple(Closed(**entry) for entry in json.loads(properties.get(_VERSIONS, "[]")))


def kept_versions(properties: Properties) -> tuple[KeptVersion, ...]:
    """The same as the port has them, with the sizes of files that only they name."""
    sizes = no_longer_named_bytes(properties)
    return tuple(closed.kept(sizes.get(closed.version)) for closed in closed_versions(properties))


def no_longer_named_bytes(properties: Properties) -> dict[int, int]:
    """By closed version, the size of the files that its closing dropped; without those an earlier Lithify closed.

    A property of its own: earlier versions of Lithify accept no other key in `lithify.versions`.
    """
    with readable(f"the table property {_NO_LONGER_NAMED}"):
        return {int(v): int(size) for v, size in json.loads(properties.get(_NO_LONGER_NAMED, "{}")).items()}


def sized(properties: Properties, sizes: Mapping[int, int], kept: Iterable[Closed]) -> dict[str, str]:
    """The property with the sizes of those versions that are kept, unless it is the same as before."""
    after = {closed.version: sizes[closed.version] for closed in kept if closed.version in sizes}
    return {} if after == no_longer_named_bytes(properties) else {_NO_LONGER_NAMED: _text(after)}


def report_ids(properties: Properties) -> tuple[str, ...]:
    """Ids of the topic's reports, newest first."""
    with readable(f"the table property {_REPORTS}"):
        return tuple(json.loads(properties.get(_REPORTS, "[]")))


def _logs(properties: Properties) -> tuple[LogState, ...]:
    # Once the topic is of a format with epochs, versions of Lithify without them refuse to commit.
    new_epoch = 0 if int(properties[_FORMAT]) < EPOCHS_SINCE else FIRST_EPOCH
    stored = {int(name.removeprefix(_LOG)): text for name, text in properties.items() if name.startswith(_LOG)}
    return tuple(log_from_text(p, stored[p], new_epoch) for p in range(len(stored)))


def _text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


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
            hint=f"set it back with `lithify repair {name}`; nothing was changed",
        )
    return pinned


def located(properties: Properties, location: str) -> dict[str, str]:
    """Pins the folder of a topic that an earlier Lithify created without it."""
    return {} if _LOCATION in properties else {_LOCATION: location}
