"""docs/understand/measurements.md: what the programs beside `just bench` measured last."""

from __future__ import annotations

from collections.abc import Iterator

from figure_tables import of_rows
from published import Figures, Measurement, of_program, where

PAGE = "understand/measurements.md"

ABOUT = {
    "produce_rate.py": (
        "Appends",
        "Records of 48 bytes appended from Parquet files, each append committed: by `Topic.append` in a "
        "running program, and by the whole command `lithify produce`.",
    ),
    "append_latency.py": (
        "Appends by partitions",
        "One record appended to a topic with records in all its partitions, in turns with a topic of one partition.",
    ),
    "many_segments.py": (
        "Plans by segments",
        "A plan, `status`, a reader at the end and a reader of one partition, on simulated topics, each "
        "in a process that has just opened the warehouse. Nothing measured here opens a segment.",
    ),
    "few_changes.py": (
        "Rounds of few changes",
        "Rounds of new records with random keys over a large clean log in which each key has one record: "
        "warm, commit included, with an index of keys and without.",
    ),
    "many_rounds.py": (
        "Many rounds of few new records",
        "Rounds of new records over all keys of a clean log, one after the other: masks, merges and rewrites "
        "included. `read` is a full read of the log after them, `rewritten read` the same once all is written anew.",
    ),
    "get.py": (
        "Lookups of one key",
        "`topic.get` of one key, with an index of keys in the segments and without. Each key is in one of 20 "
        "segments. `there` is a key with a record, `absent` a key without one. The process has "
        "looked up a key before, except for `first`.",
    ),
    "key_index.py": (
        "The index of keys",
        "The records of some keys found in one segment: by its index of keys, and by reading all its keys. "
        "The index adds to the time and size of writing.",
    ),
    "key_pass.py": (
        "The key pass of one range",
        "The key pass of one hash range on one core, beside reading its keys once (`floor`) and a query in "
        "DuckDB. Each is in a process of its own.",
    ),
    "key_ranges.py": (
        "The key pass by ranges",
        "The key pass of a large log on Spark by the number of hash ranges: `direct` reads all keys for "
        "each range, `shuffled` reads them once and sends them to the ranges. `whole round` includes the "
        "rewrite and the commit.",
    ),
    "throttle.py": (
        "Rate limits",
        "Rounds under a rate limit, and how soon a running round follows when its rate is changed.",
    ),
    "small_topics.py": (
        "Many small topics",
        "A cleaner's pass over many small topics, all due, and the same rounds one by one.",
    ),
    "shared_topic.py": (
        "Several cleaners",
        "One topic of 1,000 partitions, all due, shared by several cleaners, each on one core. Most of "
        "the time is fixed: the start of Spark, and code that is not warm yet.",
    ),
    "idle_look.py": (
        "Checks of idle topics",
        "A cleaner's check of topics that have not changed: after its start, again, and with a catalog "
        "without change tokens. It opens no manifest and no data file.",
    ),
    "idle_replicas.py": (
        "Checks of idle replicas",
        "A check by the replica daemon of topics that have not changed on either side, and `replica "
        "status` of all of them.",
    ),
    "gateway_commands.py": (
        "Commands through a gateway",
        "Commands through a warm gateway, and the same commands without one. `compact` is of a topic with three new "
        "records. The processor time is the command's own.",
    ),
    "gateway_http.py": (
        "Records over HTTP",
        "Clients that append batches of 100 records of 200 bytes, each of which is acknowledged once it is committed; "
        "a topic read whole; and the overview of topics in memory. The processor time is the server's.",
    ),
    "gateway_page.py": (
        "The page of a gateway",
        "The page with the list of topics in Chromium, and the overview that it is made of. The topics are in memory.",
    ),
    "gateway_memory.py": (
        "The memory of a gateway",
        "A gateway over a day's worth of rounds: each step appends 1,000 records to one topic, compacts it, reads it, "
        "and asks for the overview, while the events are followed. Measured is the gateway's own "
        "process, without Spark's.",
    ),
    "replicate.py": (
        "A fresh replica",
        "A fresh replica of 100 files against a plain copy of them, both synced to disk, in turns; then what "
        "the replica copies after a round that rewrites one segment of a hundred.",
    ),
    "group_commits.py": (
        "Positions of consumer groups",
        "Positions of a consumer group committed to an SQLite file in one transaction, on disk each time.",
    ),
    "kafka_import.py": (
        "Imports of Kafka's log directories",
        "Segments with values of 200 bytes, imported by `kafka import` on a warm session with two tasks at once, and "
        "its phases: one segment alone in a process. The values are hexadecimal noise.",
    ),
    "served_logs.py": (
        "Topics served to Kafka's clients",
        "A topic with values of 200 bytes, read from its start to its end by confluent-kafka. The processor time is "
        "the server's, which keeps 128 MiB of batches in memory, but for `memory`, where it keeps all. The first "
        "topic pays for what a process does once. `least` and `most` are of five times.",
    ),
    "kafka_ingest.py": (
        "Kafka ingest",
        "A Kafka topic of 200-byte values copied into the lake several times on one Spark session. The "
        "broker is on the same machine.",
    ),
    "hydrate.py": (
        "A table from the lake or from Kafka",
        "A table of a Kafka topic filled from the lake and Kafka's tail, against a plain consumer of the whole "
        "Kafka topic, in turns. The ratio is the plain consumer's time divided by Lithify's.",
    ),
    "kafka_clients.py": (
        "Hydrate and publish",
        "`hydrate`, `kafka hydrate` and `kafka publish` as whole commands beside Kafka's "
        "`kafka-consumer-perf-test`, distinct keys. The processor time of the broker does not count.",
    ),
    "pulsar_compact.py": (
        "Live Pulsar topics",
        "Rounds of a live Pulsar topic against Pulsar's own compactor on the same topic, warm. The "
        "broker is on the same machine.",
    ),
}
"""The programs in the order of the page, with the title of each, and what it measures."""

_OPENING = """\
# Measurements

<!-- Written by `just docs` from docs/figures.json, which the programs in bench write with `--publish`. -->

Each program in [bench](../../bench/README.md) measures one thing. [Benchmarks](benchmarks.md) compares rounds with
other programs. Figures are medians if a program repeats what it measures. CPU is processor time. *Load* is the number
of programs that wanted a processor before the measurement. If it is above the number of cores, times by the clock are
longer than on an idle machine.
"""


def files(figures: Figures) -> dict[str, str]:
    """The page, by its place below `docs`."""
    return {PAGE: "".join([_OPENING, *_sections(figures)])}


def _sections(figures: Figures) -> Iterator[str]:
    for program, (title, about) in ABOUT.items():
        found = of_program(figures, program)
        if found:
            yield f"\n## {title}\n\n{about}\n"
            yield from (_measured(command, one) for command, one in found.items())


def _measured(command: str, one: Measurement) -> str:
    return f"\n`{command}`, {where(one)}:\n\n{of_rows(one['rows'])}\n"
