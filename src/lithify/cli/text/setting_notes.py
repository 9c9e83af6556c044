"""Notes on consequences of settings that their names do not tell (C22, C43)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lithify.cli.terminal.output import plural
from lithify.reports.cut import AlterReport

LATE_RECORDS = (
    "after a tombstone has gone, a late record that it would have beaten counts as new: "
    "delete.retention.ms should be longer than records are late"
)
"""C22: `topic create` and `topic alter` print it."""


def creation_notes(config: Mapping[str, str]) -> Iterator[str]:
    """Notes on a topic that was created with these settings."""
    if config["compaction.strategy"] != "offset":
        yield LATE_RECORDS


def change_notes(report: AlterReport, config: Mapping[str, str]) -> Iterator[str]:
    """Notes on a change; `config` are the settings after it."""
    changed = report.settings
    if report.logs_due:
        logs = "1 log is" if report.logs_due == 1 else f"{report.logs_due:,} logs are"
        yield f"it applies from the next round, for which {logs} due once; removed records are not restored"
    if "compaction.strategy" in changed and config["compaction.strategy"] != "offset":
        yield LATE_RECORDS
    if "empty.value" in changed and config["empty.value"] == "tombstone":
        yield "empty values delete their keys from now on, also those appended before"
    if "compaction.mode" in changed and config["compaction.mode"] == "side-by-side":
        yield "the log stays as it is from now on, and the next round creates the view beside it"
    if "cleanup.policy" in changed:
        yield from _policy_notes(changed["cleanup.policy"].before, config)
    if "null.key" in changed and config["null.key"] != "retain" and "compact" in config["cleanup.policy"]:
        yield "the next round removes the records without a key"
    if report.partitions_after > report.partitions:
        new = plural(report.partitions_after - report.partitions, "new partition")
        yield f"{new}: records stay where they are, while their keys may go to another partition from now on"


def _policy_notes(before: str, config: Mapping[str, str]) -> Iterator[str]:
    after = config["cleanup.policy"]
    if "delete" in after and "delete" not in before:
        limits = f"retention.ms={config['retention.ms']} and retention.bytes={config['retention.bytes']}"
        what = "`lithify retain`, and every round," if "compact" in after else "`lithify retain`"
        yield f"{what} now removes what is past {limits}"
    if "compact" in after and "compact" not in before:
        yield "the next round starts at the log start"
    if "compact" not in after and "compact" in before:
        yield "no round compacts it any more"
