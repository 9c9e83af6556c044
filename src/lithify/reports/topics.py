"""A topic and its retained versions: what `lithify topic info`, `topic list` and `versions` print.

Bytes are compressed sizes, times epoch ms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lithify.model.segment import Volume
from lithify.model.settings.inheritance import Origin
from lithify.model.settings.table import SETTINGS
from lithify.model.settings.topic_settings import TopicSettings, to_config
from lithify.model.settings.units import format_bytes, format_second, format_time, plural
from lithify.model.sources.origin import origin_of
from lithify.model.topic.edit import KeptVersion, Verb
from lithify.model.topic.state import TopicState
from lithify.reports.page import Page, Section, Table
from lithify.reports.page.wording import count, in_units
from lithify.reports.report import Report
from lithify.reports.topic_space import Space, space_line


@dataclass(frozen=True, slots=True)
class TopicInfo(Report):
    """What a topic is: `lithify topic info` and `topic list`. Settings under Kafka's names."""

    topic: str
    original_name: str
    table: str
    """In the catalog: `load_table` of PyIceberg takes it."""
    partitions: int
    version: int
    records: int
    bytes: int
    view_records: int | None
    """Of the compacted views; null if there is none."""
    view_bytes: int | None
    location: str
    created_ms: int
    config: dict[str, str]
    config_from: dict[str, str]
    """Where each setting's value comes from: `topic`, `stream` or `default` (C56)."""
    source: str | None
    """The warehouse of a replica's source (C63)."""
    source_version: int | None
    """The version of the source that the replica has."""
    compacts_by_itself: bool | None
    """Whether a replica has rounds of its own (C67)."""
    not_compacting: str | None
    """Of one that is to: why it has none."""
    copy_of: str | None = None
    """The Kafka topic that it is a copy of (C70)."""
    space: Space | None = None
    """What it takes with earlier versions; null in `topic list`, which reads only the topic's metadata."""

    def page(self) -> Page:
        return Page(
            self.original_name,
            sections=[Section("", _topic_facts(self)), Section("settings", _topic_settings(self))],
        )

    @classmethod
    def listed(cls, reports: Sequence[TopicInfo]) -> Page:
        header = ("TOPIC", "PARTITIONS", "RECORDS", "SIZE")
        return Page("topics", table=Table(header, reports, _topic_row, left=("TOPIC",)))


@dataclass(frozen=True, slots=True)
class VersionReport(Report):
    """A retained version: what it holds, and the commit that closed it."""

    topic: str
    version: int
    closed_ms: int
    closed_by: str
    """The run of that commit: of a round, the `run_id` of its report."""
    verb: Verb
    records: int
    bytes: int
    view_records: int | None
    view_bytes: int | None
    """Of the compacted views; null if there is none."""
    files_stay_until_ms: int
    """Its files remain at least until then, even if the version expires before (C6)."""

    @classmethod
    def listed(cls, reports: Sequence[VersionReport]) -> Page:
        return Page("retained versions, newest first", table=_version_table(reports))


def volumes_of(state: TopicState) -> tuple[Volume, Volume | None]:
    """Of all logs, and of their compacted views; None if there is no view."""
    views = [log.view.volume for log in state.logs if log.view is not None]
    return sum((log.volume for log in state.logs), Volume()), sum(views, Volume()) if views else None


def version_report(kept: KeptVersion, state: TopicState, versions_retention_ms: int) -> VersionReport:
    """The report of a retained version, whose state is `state`."""
    logs, views = volumes_of(state)
    return VersionReport(
        topic=str(state.name),
        version=kept.version,
        closed_ms=kept.closed_ms,
        closed_by=kept.closed_by,
        verb=kept.verb,
        records=logs.records,
        bytes=logs.size_bytes,
        view_records=None if views is None else views.records,
        view_bytes=None if views is None else views.size_bytes,
        files_stay_until_ms=kept.closed_ms + versions_retention_ms,
    )


def _topic_row(info: TopicInfo) -> tuple[str, ...]:
    return info.original_name, count(info.partitions), count(info.records), format_bytes(info.bytes)


def _topic_facts(topic: TopicInfo) -> list[tuple[str, str]]:
    """What it is, by name."""
    stored = space_line(topic.space).removeprefix("stored ")
    return [
        ("partitions", count(topic.partitions)),
        ("records", count(topic.records)),
        ("size", format_bytes(topic.bytes)),
        *_view(topic),
        *([("stored", stored)] if stored else []),
        ("policy", f"{topic.config['cleanup.policy']}, {topic.config['compaction.mode']}"),
        ("version", count(topic.version)),
        *([("copy of", str(origin_of(topic.copy_of)))] if topic.copy_of else []),
        *_source(topic),
        ("created", format_time(topic.created_ms)),
        ("table", topic.table),
        ("location", topic.location),
    ]


def _topic_settings(topic: TopicInfo) -> list[tuple[str, str]]:
    """Every setting by name: its value, the same in larger units, where it comes from."""
    return [(name, _setting(name, topic)) for name in SETTINGS if name in topic.config]


def _view(topic: TopicInfo) -> list[tuple[str, str]]:
    if topic.view_records is None or topic.view_bytes is None:
        return []
    return [("compacted view", f"{plural(topic.view_records, 'record')}, {format_bytes(topic.view_bytes)}")]


def _source(topic: TopicInfo) -> list[tuple[str, str]]:
    if topic.source is None:
        return []
    copied = f"version {count(topic.source_version)}" if topic.source_version else "nothing copied yet"
    of = ("replica of", f"{topic.original_name} in {topic.source}, {copied}")
    if topic.compacts_by_itself:
        return [of, ("rounds", "its own: it compacts by itself, beside the log of its source")]
    return [of] if topic.not_compacting is None else [of, ("rounds", f"none of its own: {topic.not_compacting}")]


_DEFAULTS = to_config(TopicSettings())


def _setting(name: str, topic: TopicInfo) -> str:
    """A value, the same in larger units, where it comes from, and the default if it differs."""
    value, origin = topic.config[name], topic.config_from[name]
    default = "" if value == _DEFAULTS[name] else f", default {_DEFAULTS[name] or '(none)'}"
    whose = "" if origin == Origin.DEFAULT else f", of the {origin}"
    return f"{in_units(name, value)}{whose}{default}"


def _version_table(versions: Sequence[VersionReport]) -> Table[VersionReport]:
    """A retained version in each row; VIEW only where one had a compacted view."""
    viewed = any(version.view_records is not None for version in versions)
    closing = ("CLOSED AT", "BY", "FILES REMAIN UNTIL")
    header = ("VERSION", "RECORDS", "SIZE", *(("VIEW",) if viewed else ()), *closing)
    return Table(header, versions, lambda version: _version_row(version, viewed=viewed), left=closing, wrap=False)


def _version_row(version: VersionReport, *, viewed: bool) -> tuple[str, ...]:
    view = "-" if version.view_records is None else count(version.view_records)
    return (
        count(version.version),
        count(version.records),
        format_bytes(version.bytes),
        *((view,) if viewed else ()),
        format_second(version.closed_ms),
        version.verb.value,
        format_second(version.files_stay_until_ms),
    )


def no_topics(where: str) -> str:
    """What is said of an empty warehouse; `where` is its place."""
    return f"no topics yet in {where} (`lithify topic create` makes one)"
