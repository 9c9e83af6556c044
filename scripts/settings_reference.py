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

You set settings when you create a topic, from the command line or in Python:

```sh
lithify topic create orders --config min.compaction.lag.ms=1h
```

```python
import lithify

lake = lithify.open("./lithify-warehouse")
lake.create_topic("payments", config={"min.compaction.lag.ms": 3_600_000})
```

- Names that Kafka has mean what they mean in Kafka.
- Sizes and durations may have a unit (`128MiB`, `7d`). A bare number has the unit of the name.
- An unknown name or a bad value is refused, and the error lists what is accepted.
- `lithify topic info TOPIC` prints the settings in force.
- `lithify topic alter` [changes them](../operate/settings-and-streams.md) on a topic that has data.

| setting | default | accepts | meaning |
| --- | --- | --- | --- |
"""

_PRESETS = """
To erase deleted and superseded records in the next round, as for a right to erasure, set `segment.max.dead.ratio=0`.
Otherwise the bytes of records that a mask hides remain until a round rewrites the segment. With 0 the next round also
rewrites every segment that has a mask. `sweep` deletes the old files once `versions.retention.ms` is over.

## Presets

`--like`, or `like=`, selects the defaults of a system. All other settings are the same for all.

| setting | kafka | pulsar | mapr |
| --- | --- | --- | --- |
"""

_DIFFERENCES = """
Where a preset differs from the system that it is named after:

- **kafka**
  - A topic is compacted (`cleanup.policy=compact`). Kafka's default is `delete`: set `--config cleanup.policy=delete`.
  - An append refuses a record without a key, as Kafka does for compacted topics.
  - `segment.bytes` is 128 MiB of compressed data; Kafka's default is 1 GiB.
  - `segment.ms` does not exist: every append writes segments of its own, so no active segment is left out of rounds.
- **pulsar**
  - A record without a key is not in the compacted view (`null.key=drop`). Pulsar's brokers do the same unless
    `topicCompactionRetainNullKey` is set.
  - A log is due when it has more than 100 MiB of dirty data; Pulsar's default is never.
  - The round that covers a delete removes the deleted key, as in Pulsar.
- **mapr**
  - The settings are Kafka's, except that `min.compaction.lag.ms` counts from the write, as in MapR, not from the
    timestamps of records.
  - MapR's other settings are attributes of a [stream](../operate/settings-and-streams.md#streams): `compact`, `ttl`
    and others.
"""

_FROM_KAFKA = """
## For those who come from Kafka

Each row has the counterpart of a Kafka setting, and what the first [ingest](../data-in/ingest-kafka.md) of a topic does
with it. `--config` of the ingest sets another value.

| Kafka | here | in a copy |
| --- | --- | --- |
"""

_KAFKAS = (
    (
        "`cleanup.policy`",
        "the same",
        "`compact` is copied. `compact,delete` becomes `compact`. `delete` remains `delete`, without a limit",
    ),
    (
        "`min.cleanable.dirty.ratio`, `min.compaction.lag.ms`, `max.compaction.lag.ms`",
        "the same. There is no active segment: records older than the lag can be compacted, rolled or not",
        "copied",
    ),
    (
        "`delete.retention.ms`",
        "the same. Once it is over, a cleaner runs the round that removes the tombstone, even without new records. "
        "Kafka's cleaner does not run for that alone",
        "copied",
    ),
    (
        "`retention.ms`, `retention.bytes`",
        "the same. They count with `delete` only, as in Kafka. To leave the newest records untouched, set "
        "`min.compaction.lag.ms`, or `min.compaction.lag.bytes` for the newest bytes",
        "not applied; stored, as all settings of the topic, for "
        "[a restore](../data-out/hydrate-and-publish.md#restore-a-cluster)",
    ),
    ("`max.message.bytes`", "the same", "not copied: records that Kafka accepted are not refused"),
    ("`segment.bytes`", "the same, of compressed data; rounds merge small segments", "not copied"),
    (
        "`segment.ms`, `segment.jitter.ms`, `local.retention.*`, `remote.*`",
        "none: there are no active segments, and there is one kind of store",
        "not copied",
    ),
    (
        "`log.cleaner.threads`, `log.cleaner.backoff.ms`",
        "`--threads` and `--interval` of [`cleaner run`](cli/cleaner.md#cleaner-run)",
        "none",
    ),
    (
        "`log.cleaner.io.max.bytes.per.second`",
        "`--read-rate` and `--write-rate`, and [`throttle`](cli/cleaner.md#throttle) for running rounds",
        "none",
    ),
    (
        "`log.cleaner.dedupe.buffer.size`, `log.cleaner.io.buffer.load.factor`",
        "`--task-memory` bounds a task, which processes more keys in parts. A round always covers the whole dirty part",
        "none",
    ),
)
"""Of each setting there: its names, its counterpart here, and what the first ingest of a topic does with it."""

_PULSAR = """
## For those who come from Pulsar

Each row has the counterpart of a Pulsar setting: in a topic of the warehouse, such as a
[copy](../data-in/ingest-pulsar.md), and for [rounds of a live topic](../operate/live-pulsar.md). The policies of a live
topic remain Pulsar's; no verb changes them.

| Pulsar | in the warehouse | for a live topic |
| --- | --- | --- |
"""

_PULSARS = (
    (
        "`compactionThreshold`, `brokerServiceCompactionThresholdInBytes`",
        "`compaction.threshold.bytes`, in compressed bytes. Pulsar's 0 (never) is -1",
        "set it to 0, or brokers compact the topic as well. `pulsar compact` prints the threshold",
    ),
    (
        "`brokerServiceCompactionMonitorIntervalInSeconds`",
        "`--interval` of [`cleaner run`](cli/cleaner.md#cleaner-run)",
        "none: start rounds yourself, from cron for example",
    ),
    (
        "`topicCompactionRetainNullKey`",
        "`null.key`: `drop` for false, `retain` for true",
        "as the broker has it, or `--drop-null-key`, `--retain-null-key`",
    ),
    (
        "`compactionServiceFactoryClassName`, Pulsar's `EventTimeCompactionServiceFactory`",
        "none: rounds of a copy support offsets, publish times (`compaction.strategy=timestamp`) and headers, not "
        "event times",
        "as the broker has it, or `--order event-time`",
    ),
    (
        "the same, a plug-in of your own",
        "none",
        "none. Set the rules of a round: `--order publish`, `--drop-null-key`",
    ),
    (
        "an empty payload deletes its key, at once",
        "`empty.value=tombstone`, `delete.retention.ms=0`",
        "the same",
    ),
    (
        "`retentionTimeInMinutes`, `retentionSizeInMB`",
        "with `cleanup.policy=compact,delete`: `retention.ms`, `retention.bytes`. They trim the full log; the view "
        "retains the latest of every key",
        "brokers apply it to messages that all subscriptions have passed, so not before an ingest or a round has "
        "covered them. A view is exempt",
    ),
    (
        "`messageTTLInSeconds`",
        "none; `retention.ms` is the closest",
        "it moves the subscription of an ingest: messages that expire before they are copied are lost, and the ingest "
        "reports them. `__compaction` is exempt",
    ),
    (
        "a backlog quota with `consumer_backlog_eviction`",
        "none",
        "it moves both subscriptions: choose another policy. Other policies count uncopied messages as backlog",
    ),
    (
        "`subscriptionExpirationTimeMinutes`",
        "none",
        "it deletes the subscription of an ingest that does not run for that long. `__compaction` is exempt",
    ),
    (
        "`maxMessageSize`",
        "`max.message.bytes`; `pulsar ingest` sets it to the maximum",
        "none",
    ),
    (
        "`managedLedgerMaxSizePerLedgerMbytes`",
        "`segment.bytes`",
        "a view is one ledger of any size",
    ),
    (
        "ensemble, write and ack quorum",
        "none: the store keeps the copies",
        "as configured in the brokers, or `--replication E,W,A`",
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

- `compaction.mode=side-by-side` needs `compact` in `cleanup.policy`; otherwise there is no view.
- `compaction.strategy=header` needs `compaction.strategy.header`.
- `min.compaction.lag.ms` must not be above `max.compaction.lag.ms`.
- `retention.ms` and `retention.bytes` count only with `delete` in `cleanup.policy`.
- `null.key`, `empty.value`, the lags and the ratio count only with `compact` in `cleanup.policy`.
- `versions.kept` protects whole versions with all their files. `versions.retention.ms` protects the files of expired
  versions for their readers.

**Late tombstones.** With a `compaction.strategy` other than `offset`, a round may drop a tombstone before a record
arrives that the tombstone would have beaten. Such a record counts as new ([C22](../guarantees.md#c22)). Set
`delete.retention.ms` longer than records are late.

**Old timestamps.** An append from a backfill or from a device that was offline has old timestamps. As in Kafka, its
records are older than `min.compaction.lag.ms` at once, so the next round may remove some before every reader has read
them. If readers rely on the lag, as a consumer that reads every hour does, set `min.compaction.lag.from=commit`:

- The lag then counts from the append if that is later than the timestamp.
- A round waits up to an eighth of the lag longer.
- Records that are dirty when you set it count as appended then.
"""


_UNITS_MS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"), (1, "ms"))


def page() -> str:
    """The whole page."""
    defaults = to_config(TopicSettings())
    rows = (_row(setting, defaults[setting.name]) for setting in SETTINGS.values())
    between = (_DIFFERENCES, _FROM_KAFKA, *_table(_KAFKAS), _PULSAR, *_table(_PULSARS))
    return "".join([_OPENING, *rows, _PRESETS, *_preset_rows(), *between, _CLOSING])


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
