"""Writes docs/reference/settings.md from the table of settings; `just docs` calls it.

A test compares the page with what this would write, so that the page cannot fall behind.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from lithify.model.settings.table import SETTINGS, Setting
from lithify.model.settings.topic_settings import TopicSettings, settings_of, to_config
from lithify.model.settings.units import format_bytes

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "settings.md"

_OPENING = """\
# Settings of a topic

<!-- Written by scripts/settings_reference.py from src/lithify/model/settings/table.py: edit that. -->

A topic gets its settings when it is created: `lithify topic create orders --config
min.compaction.lag.ms=1h`, or `lake.create_topic("orders", config={"min.compaction.lag.ms":
3_600_000})`. Names that Kafka has mean what they mean there. Sizes and durations may carry a unit
(`128MiB`, `7d`); a bare number has the unit of the name. An unknown name or a value that is not
accepted is refused, and the error says what would be.

`lithify topic info TOPIC` shows the settings in force, and `lithify topic alter` changes them on a topic
that has data: [what that means](../operate/settings-and-streams.md).

| setting | default | accepts | meaning |
| --- | --- | --- | --- |
"""

_PRESETS = """
## Presets

`--like`, or `like=`, selects the defaults of a system. Settings that are not here are the same
for all.

| setting | kafka | pulsar | mapr |
| --- | --- | --- | --- |
"""

_DIFFERENCES = """
Masked records are in no reader's way, but their bytes stay in the files until the segment is rewritten. Where what was
deleted or superseded has to leave the storage with the next round, as for a right to erasure, set
`segment.max.dead.ratio=0`: the next round then also rewrites every segment that has a mask, and `sweep` deletes the
old files once `versions.retention.ms` is over.

Where a preset differs from the system that it is named after:

- **kafka**: a topic is compacted (`cleanup.policy=compact`), where Kafka's default is `delete`: `--config
  cleanup.policy=delete` makes such a topic. A record without a key is refused when it is appended, as Kafka does for
  compacted topics. `segment.bytes` is 128 MiB of compressed data instead of 1 GiB, and there is no `segment.ms`: every
  append writes segments of its own, so there is no active segment that compaction leaves out.
- **pulsar**: a record without a key is not in the compacted view (`null.key=drop`), as Pulsar's brokers do
  unless `topicCompactionRetainNullKey` is set. A topic is due from 100 MiB of dirty data on, where Pulsar's default is
  never. A deleted key is gone after the round that covers its delete, in Pulsar as well.
- **mapr**: the settings are Kafka's, except that `min.compaction.lag.ms` counts from the write, as in MapR, not from
  the timestamps of records. What MapR's streams have beside them are attributes of a
  [stream](../operate/settings-and-streams.md#streams): `compact`, `ttl` and others.
"""

_FROM_KAFKA = """
## For those who come from Kafka

| Kafka | here |
| --- | --- |
"""

_KAFKAS = (
    (
        "`retention.ms` with `cleanup.policy=compact`",
        "no effect, as in Kafka: it counts with `delete` only. To leave the newest records untouched, as readers of "
        "KAFKA-631 may expect of it, set `min.compaction.lag.ms`, or `min.compaction.lag.bytes` for the newest bytes",
    ),
    (
        "`min.compaction.lag.ms`, `max.compaction.lag.ms`, `min.cleanable.dirty.ratio`, `delete.retention.ms`",
        "the same",
    ),
    (
        "`log.cleaner.threads`, `log.cleaner.backoff.ms`",
        "`--threads` and `--interval` of [`cleaner run`](cli.md#cleaner-run)",
    ),
    (
        "`log.cleaner.io.max.bytes.per.second`",
        "`--read-rate` and `--write-rate`, and [`throttle`](cli.md#throttle) for what is running",
    ),
    (
        "`log.cleaner.dedupe.buffer.size`",
        "`--task-memory`; more keys are processed in parts, in one round",
    ),
    (
        "`segment.ms`, `segment.jitter.ms`, `local.retention.*`, `remote.*`",
        "none: there is no active segment, and one kind of store",
    ),
)

_PULSAR = """
## For those who come from Pulsar

Which settings of a Pulsar cluster, namespace or topic have which counterpart: in a topic of the lake, such as a
[copy](../data-in/ingest-pulsar.md), and for [rounds of a live topic](../operate/live-pulsar.md).
Policies of a live topic stay Pulsar's; no verb changes them.

| Pulsar | in the lake | for a live topic |
| --- | --- | --- |
"""

_PULSARS = (
    (
        "`compactionThreshold`, `brokerServiceCompactionThresholdInBytes`",
        "`compaction.threshold.bytes`, in bytes as they are stored here. Pulsar's 0, never, is -1",
        "set it to 0, or brokers compact the topic as well. `pulsar compact` says which threshold there is",
    ),
    (
        "`brokerServiceCompactionMonitorIntervalInSeconds`",
        "`--interval` of [`cleaner run`](cli.md#cleaner-run)",
        "none: a round runs when it is started, from cron for example",
    ),
    (
        "`topicCompactionRetainNullKey`",
        "`null.key`: `drop` for false, `retain` for true",
        "as the broker has it, or `--drop-null-key`, `--retain-null-key`",
    ),
    (
        "`compactionServiceFactoryClassName`, Pulsar's `EventTimeCompactionServiceFactory`",
        "none: rounds of a copy know offsets, publish times (`compaction.strategy=timestamp`) and headers, not "
        "event times",
        "as the broker has it, or `--order event-time`",
    ),
    (
        "the same, a plug-in of your own",
        "none",
        "none. Say by which rules a round goes: `--order publish`, `--drop-null-key`",
    ),
    (
        "an empty payload deletes its key, at once",
        "`empty.value=tombstone`, `delete.retention.ms=0`",
        "the same",
    ),
    (
        "`retentionTimeInMinutes`, `retentionSizeInMB`",
        "with `cleanup.policy=compact,delete`: `retention.ms`, `retention.bytes`. They trim the backlog; the view "
        "keeps the latest of every key",
        "brokers apply it to what all subscriptions have passed, so not to what an ingest or a round has not "
        "covered yet. A view is exempt",
    ),
    (
        "`messageTTLInSeconds`",
        "none; `retention.ms` is next to it",
        "it moves the subscription of an ingest: what is older before it is copied is lost, and named. "
        "`__compaction` is exempt",
    ),
    (
        "a backlog quota with `consumer_backlog_eviction`",
        "none",
        "it moves both subscriptions: choose another policy. Others count what is not copied yet as backlog",
    ),
    (
        "`subscriptionExpirationTimeMinutes`",
        "none",
        "it deletes the subscription of an ingest that has not run for so long. `__compaction` is exempt",
    ),
    (
        "`maxMessageSize`",
        "`max.message.bytes`; `pulsar ingest` sets it as large as can be",
        "none",
    ),
    (
        "`managedLedgerMaxSizePerLedgerMbytes`",
        "`segment.bytes`",
        "a view is one ledger of any size",
    ),
    (
        "ensemble, write and ack quorum",
        "none: the warehouse keeps the copies",
        "as brokers say, or `--replication E,W,A`",
    ),
    (
        "`readCompacted` of a reader",
        "`consume --compacted`, `reader(compacted=True)`",
        "Pulsar's own",
    ),
)
"""Of each setting there: its names, its counterpart in the lake, and what it means for live topics."""

_CLOSING = """
## Which go together

- `compaction.mode=side-by-side` needs `compact` in `cleanup.policy`: without it there is no view.
- `compaction.strategy=header` needs `compaction.strategy.header`.
- A record that is appended now with an old timestamp, by a backfill or a device that was offline, is older than
  `min.compaction.lag.ms` at once, as in Kafka. If readers rely on the lag to read every record before a round
  removes it, such as a consumer that reads every hour, set `min.compaction.lag.from=commit`: then the lag counts
  from the append, if that is later. A round waits up to an eighth of the lag longer than that, and records that are
  dirty when it is switched on count as appended then.
- `min.compaction.lag.ms` must not be above `max.compaction.lag.ms`.
- `retention.ms` and `retention.bytes` count only with `delete` in `cleanup.policy`; `null.key`,
  `empty.value`, the lags and the ratio only with `compact`.
- With a `compaction.strategy` other than `offset`, a record that arrives after a round has dropped the tombstone
  that would have beaten it counts as new
  ([C22](guarantees.md#c22)): set `delete.retention.ms` longer than records are late.
- `versions.kept` protects whole versions with all their files; `versions.retention.ms` protects the
  files of expired versions for their readers.
"""


_UNITS_MS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"), (1, "ms"))


def page() -> str:
    """The whole page."""
    defaults = to_config(TopicSettings())
    rows = (_row(setting, defaults[setting.name]) for setting in SETTINGS.values())
    return "".join(
        [
            _OPENING,
            *rows,
            _PRESETS,
            *_preset_rows(),
            _DIFFERENCES,
            _FROM_KAFKA,
            *_table(_KAFKAS),
            _PULSAR,
            *_table(_PULSARS),
            _CLOSING,
        ]
    )


def _preset_rows() -> Iterator[str]:
    presets = [to_config(settings_of({}, like=like)) for like in ("kafka", "pulsar", "mapr")]
    for name in SETTINGS:
        values = [preset[name] for preset in presets]
        if len(set(values)) > 1:
            yield f"| `{name}` | " + " | ".join(f"`{value}`" for value in values) + " |\n"


def _table(rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    return (f"| {' | '.join(row)} |\n" for row in rows)


def _row(setting: Setting, default: str) -> str:
    shown = f"`{default}`{_spelled_out(setting, default)}" if default else "(none)"
    return f"| `{setting.name}` | {shown} | {setting.accepts} | {setting.doc} |\n"


def _spelled_out(setting: Setting, default: str) -> str:
    """The default in units for people, where that says more than the number."""
    if default in ("-1", "0") or not default.isdigit():
        return ""
    if setting.name.endswith(".ms"):
        factor, unit = next((f, u) for f, u in _UNITS_MS if int(default) % f == 0)
        return f" ({int(default) // factor} {unit})"
    return f" ({format_bytes(int(default))})" if setting.name.endswith(".bytes") else ""


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
