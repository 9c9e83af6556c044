"""What `topic alter` changed, and consequences of settings that their names do not tell (C22, C43)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from lithify.model.settings.table import NO_LIMIT
from lithify.model.settings.units import format_duration, plural
from lithify.reports.report import Report


@dataclass(frozen=True, slots=True)
class SettingChange:
    """A setting, as text, before and after."""

    before: str
    after: str


@dataclass(frozen=True, slots=True)
class AlterReport(Report):
    """What `topic alter` changed, settings under their dotted names."""

    topic: str
    version: int
    changed: bool
    settings: dict[str, SettingChange]
    partitions: int
    partitions_after: int
    logs_due: int
    """Logs that are due for a round once, since they have records and a setting changed (C43)."""
    own: tuple[str, ...] = ()
    """Settings that became the topic's own."""
    inherited: tuple[str, ...] = ()
    """Settings that were its own, and that it inherits from its stream now (C56)."""


LATE_RECORDS = (
    "after a tombstone was removed, a late record that it would have beaten counts as new: set delete.retention.ms "
    "longer than records are late"
)
"""C22: `topic create` and `topic alter` print it."""


_OF_RETENTION = ("retention.ms", "retention.bytes")
_OF_ROUNDS = (
    "compaction.strategy",
    "null.key",
    "empty.value",
    "delete.retention.ms",
    "tombstone.hold.groups",
    "min.cleanable.dirty.ratio",
    "min.compaction.lag.ms",
    "min.compaction.lag.bytes",
    "max.compaction.lag.ms",
    "compaction.threshold.bytes",
)


def creation_notes(config: Mapping[str, str], given: Collection[str] = ()) -> Iterator[str]:
    """Notes on a topic that was created with these settings, of which some were given."""
    yield from _unused_notes(config, given)
    if config["compaction.strategy"] != "offset":
        yield LATE_RECORDS
    yield from _hold_notes(config)


def change_notes(report: AlterReport, config: Mapping[str, str]) -> Iterator[str]:
    """Notes on a change; `config` are the settings after it."""
    changed = report.settings
    yield from _unused_notes(config, [name for name in changed if config[name] == changed[name].after])
    if report.logs_due:
        logs = "1 log is" if report.logs_due == 1 else f"{report.logs_due:,} logs are"
        yield f"it applies from the next round; {logs} due for it at any dirty ratio; removed records are not restored"
    if "compaction.strategy" in changed and config["compaction.strategy"] != "offset":
        yield LATE_RECORDS
    if "empty.value" in changed and config["empty.value"] == "tombstone":
        yield "from now on empty values delete their keys, even values appended before"
    if "compaction.mode" in changed and config["compaction.mode"] == "side-by-side":
        yield "from now on the log remains as written, and the next round creates the compacted view beside it"
    if "cleanup.policy" in changed:
        yield from _policy_notes(changed["cleanup.policy"].before, config)
    if "null.key" in changed and config["null.key"] != "retain" and "compact" in config["cleanup.policy"]:
        yield "the next round removes the records without a key"
    if "tombstone.hold.groups" in changed or "tombstone.hold.max.ms" in changed:
        yield from _hold_notes(config)
    if report.partitions_after > report.partitions:
        new = plural(report.partitions_after - report.partitions, "new partition")
        yield f"{new}: existing records remain where they are, but their keys may move to another partition"


def _unused_notes(config: Mapping[str, str], given: Collection[str]) -> Iterator[str]:
    """Settings among those given that do nothing under the policy. Kafka accepts and ignores them as well."""
    policy = config["cleanup.policy"]
    if "delete" not in policy and (names := [name for name in _OF_RETENTION if _limits(config, given, name)]):
        yield (
            f"{', '.join(names)}: no effect with cleanup.policy={policy}; cleanup.policy=compact,delete removes old "
            "records, even of live keys, and min.compaction.lag.ms keeps recent records from being compacted"
        )
    if "compact" not in policy and (names := [name for name in _OF_ROUNDS if name in given]):
        yield f"{', '.join(names)}: no effect with cleanup.policy={policy}, under which no round compacts the topic"


def _limits(config: Mapping[str, str], given: Collection[str], name: str) -> bool:
    return name in given and int(config[name]) != NO_LIMIT


def _hold_notes(config: Mapping[str, str]) -> Iterator[str]:
    """C61: a group that never reads, perhaps as its name is misspelled, holds everything."""
    groups, most_ms = config["tombstone.hold.groups"], int(config["tombstone.hold.max.ms"])
    if groups:
        most = "for ever" if most_ms == NO_LIMIT else f"for at most {format_duration(most_ms)}"
        until = f"until each of {groups} has read them"
        yield f"tombstones remain, {most}, {until}; a group that never reads holds all of them"


def _policy_notes(before: str, config: Mapping[str, str]) -> Iterator[str]:
    after = config["cleanup.policy"]
    if "delete" in after and "delete" not in before:
        limits = f"retention.ms={config['retention.ms']} and retention.bytes={config['retention.bytes']}"
        what = "`lithify retain`, and every round," if "compact" in after else "`lithify retain`"
        yield f"{what} now removes records past {limits}"
    if "compact" in after and "compact" not in before:
        yield "the next round starts at the log start"
    if "compact" not in after and "compact" in before:
        yield "rounds no longer compact it"
