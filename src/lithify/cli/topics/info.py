"""`lithify topic info`."""

from __future__ import annotations

from lithify.cli import parameters
from lithify.cli.invocation import Invocation, verb
from lithify.cli.terminal.output import count, faint, fields, heading, plural, show
from lithify.model.settings.inheritance import Origin
from lithify.model.settings.table import SETTINGS
from lithify.model.settings.topic_settings import TopicSettings, to_config
from lithify.model.settings.units import format_bytes, format_duration, format_time
from lithify.reports.status import TopicInfo


@verb("info")
@parameters.topic
def info(invocation: Invocation, topic_name: str) -> None:
    """Show a topic: partitions, size, location, and every setting with where its value comes from.

    \b
    Examples:
      lithify topic info orders
      lithify topic info orders --json | jq .config
    """
    found = invocation.open_whole_topic(topic_name).info()
    if invocation.printed(found):
        return
    facts = [
        ("partitions", count(found.partitions)),
        ("records", count(found.records)),
        ("size", format_bytes(found.bytes)),
        *_view(found),
        ("policy", f"{found.config['cleanup.policy']}, {found.config['compaction.mode']}"),
        ("version", count(found.version)),
        *_source(found),
        ("created", format_time(found.created_ms)),
        ("table", found.table),
        ("location", found.location),
    ]
    settings = [(name, _setting(name, found)) for name in SETTINGS if name in found.config]
    show([heading(found.original_name), *fields(facts), faint("  settings"), *fields(settings, indent="    ")])


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
    larger = ""
    if name.endswith(".ms") and int(value) >= 1000:
        larger = f" = {format_duration(int(value))}"
    elif name.endswith(".bytes") and int(value) >= 1024:
        larger = f" = {format_bytes(int(value))}"
    default = "" if value == _DEFAULTS[name] else f", default {_DEFAULTS[name] or '(none)'}"
    whose = "" if origin == Origin.DEFAULT else f", of the {origin}"
    return f"{value or '(none)'}{larger}{whose}{default}"
