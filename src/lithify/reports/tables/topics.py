"""Topics, streams and kept versions as tables, and the facts of one topic."""

from __future__ import annotations

from collections.abc import Sequence

from lithify.model.settings.inheritance import Origin
from lithify.model.settings.table import SETTINGS
from lithify.model.settings.topic_settings import TopicSettings, to_config
from lithify.model.settings.units import format_bytes, format_time, plural
from lithify.reports.status import TopicInfo, VersionReport
from lithify.reports.streams import StreamInfo
from lithify.reports.tables.space import space_line
from lithify.reports.tables.table import Table
from lithify.reports.tables.wording import count, in_units


def topic_table(infos: Sequence[TopicInfo]) -> Table[TopicInfo]:
    """A topic in each row."""
    return Table(("TOPIC", "PARTITIONS", "RECORDS", "SIZE"), infos, _topic_row, left=("TOPIC",))


def _topic_row(info: TopicInfo) -> tuple[str, ...]:
    return info.original_name, count(info.partitions), count(info.records), format_bytes(info.bytes)


def stream_table(infos: Sequence[StreamInfo]) -> Table[StreamInfo]:
    """A stream in each row."""
    return Table(("STREAM", "TOPICS", "KEEPS"), infos, _stream_row, left=("STREAM", "KEEPS"))


def _stream_row(info: StreamInfo) -> tuple[str, ...]:
    return info.stream, count(info.topics), info.keeps


def version_table(versions: Sequence[VersionReport]) -> Table[VersionReport]:
    """A kept version in each row; VIEW only where one had a compacted view."""
    viewed = any(version.view_records is not None for version in versions)
    closing = ("CLOSED AT", "BY", "FILES STAY UNTIL")
    header = ("VERSION", "RECORDS", "SIZE", *(("VIEW",) if viewed else ()), *closing)
    return Table(header, versions, lambda version: _version_row(version, viewed=viewed), left=closing, wrap=False)


def _version_row(version: VersionReport, *, viewed: bool) -> tuple[str, ...]:
    view = "-" if version.view_records is None else count(version.view_records)
    return (
        count(version.version),
        count(version.records),
        format_bytes(version.bytes),
        *((view,) if viewed else ()),
        format_time(version.closed_ms)[:19],
        version.verb.value,
        format_time(version.files_stay_until_ms)[:19],
    )


def topic_facts(found: TopicInfo) -> list[tuple[str, str]]:
    """What it is, by name."""
    stored = space_line(found.space).removeprefix("stored ")
    return [
        ("partitions", count(found.partitions)),
        ("records", count(found.records)),
        ("size", format_bytes(found.bytes)),
        *_view(found),
        *([("stored", stored)] if stored else []),
        ("policy", f"{found.config['cleanup.policy']}, {found.config['compaction.mode']}"),
        ("version", count(found.version)),
        *([("copy of", f"Kafka's {found.copy_of}")] if found.copy_of else []),
        *_source(found),
        ("created", format_time(found.created_ms)),
        ("table", found.table),
        ("location", found.location),
    ]


def topic_settings(found: TopicInfo) -> list[tuple[str, str]]:
    """Every setting by name: its value, the same in larger units, where it comes from."""
    return [(name, _setting(name, found)) for name in SETTINGS if name in found.config]


def _view(found: TopicInfo) -> list[tuple[str, str]]:
    if found.view_records is None or found.view_bytes is None:
        return []
    return [("view", f"{plural(found.view_records, 'record')}, {format_bytes(found.view_bytes)}")]


def _source(found: TopicInfo) -> list[tuple[str, str]]:
    if found.source is None:
        return []
    copied = f"version {count(found.source_version)}" if found.source_version else "nothing copied yet"
    of = ("replica of", f"{found.original_name} in {found.source}, {copied}")
    if found.compacts_by_itself:
        return [of, ("rounds", "its own: it compacts by itself, beside the log of its source")]
    return [of] if found.not_compacting is None else [of, ("rounds", f"none of its own: {found.not_compacting}")]


_DEFAULTS = to_config(TopicSettings())


def _setting(name: str, found: TopicInfo) -> str:
    """A value, the same in larger units, where it comes from, and the default if it differs."""
    value, origin = found.config[name], found.config_from[name]
    default = "" if value == _DEFAULTS[name] else f", default {_DEFAULTS[name] or '(none)'}"
    whose = "" if origin == Origin.DEFAULT else f", of the {origin}"
    return f"{in_units(name, value)}{whose}{default}"
