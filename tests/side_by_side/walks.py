"""Walks: what a user might type, drawn from a seed, and looks at the end that show all that came of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

TOPIC = "orders"
STRATEGIES = (
    [],
    ["compaction.strategy=timestamp"],
    ["compaction.strategy=header", "compaction.strategy.header=version"],
)
CHOICES = (
    ["cleanup.policy=compact,delete", "retention.ms=2h"],
    ["cleanup.policy=compact,delete", "retention.bytes=4000"],
    ["delete.retention.ms=0"],
    ["min.compaction.lag.ms=1m"],
    ["max.compaction.lag.ms=1h"],
    ["null.key=drop"],
    ["empty.value=tombstone"],
    ["backlog.trim.groups=g"],
    ["tombstone.hold.groups=g"],
    ["compaction.mode=side-by-side"],
    ["min.cleanable.dirty.ratio=0.1"],
    ["segment.bytes=1KiB"],
    ["no.such.setting=1"],
)
START_MS = 1_790_000_000_000


@dataclass(frozen=True, slots=True)
class Step:
    """One command line, what is typed into it, and when."""

    now_ms: int
    arguments: tuple[str, ...]
    stdin: str = ""


def walk(seed: int, length: int) -> Iterator[Step]:
    """The steps of a walk; the last show everything."""
    random = Random(seed)
    now_ms = START_MS
    partitions = random.choice((1, 1, 2, 5))
    settings = [*random.choice(STRATEGIES), *random.choice(CHOICES)[: random.choice((0, 2))]]
    like = random.choice(((), ("--like", "kafka"), ("--like", "pulsar"), ("--like", "mapr")))
    create = ("topic", "create", TOPIC, "--partitions", str(partitions), *like)
    yield Step(now_ms, (*create, *(word for one in settings for word in ("--config", one))))
    for _ in range(length):
        now_ms += random.choice((1, 1_000, 90_000, 4_000_000, 90_000_000))
        yield step(random, now_ms, partitions)
    now_ms += 1_000
    for look in LOOKS:
        yield Step(now_ms, look)


LOOKS = tuple(
    tuple(look.split())
    for look in (
        "topic list --json",
        f"topic info {TOPIC} --json",
        f"topic info {TOPIC}",
        "status",
        f"status {TOPIC} --json",
        f"history {TOPIC} --json",
        f"versions {TOPIC} --json",
        f"consume {TOPIC} --json --encoding base64",
        f"consume {TOPIC} --compacted",
        f"table {TOPIC} --json",
        f"compact {TOPIC} --plan --json",
        f"sweep {TOPIC} --json",
        "group list --json",
        "warehouse info --json",
    )
)


def step(random: Random, now_ms: int, partitions: int) -> Step:
    """A command that fits the topic, mostly."""
    partition = str(random.randrange(partitions))
    offset = str(random.randrange(30))
    flags = [flag for flag in ("--json",) if random.random() < 0.5]
    sure = [flag for flag in ("--yes",) if random.random() < 0.8]
    verb = random.choice(
        ("produce",) * 7 + ("compact",) * 5 + ("group", "plan", "status", "retain", "delete-records", "truncate")
        + ("alter", "undo", "sweep", "consume", "partitions", "unset")
    )  # fmt: skip
    typed = ""
    match verb:
        case "produce":
            words = [verb, TOPIC, *flags]
            typed = records(random, now_ms, partitions)
        case "compact":
            words = [verb, TOPIC, *(["--partition", partition] if random.random() < 0.2 else []), *flags]
        case "plan":
            words = ["compact", TOPIC, "--plan", *flags]
        case "group":
            words = ["consume", TOPIC, "--group", "g", "--max", str(random.randrange(9))]
        case "consume":
            words = [verb, TOPIC, "--partition", partition, "--from", offset, *flags]
        case "delete-records":
            words = [verb, TOPIC, "--partition", partition, "--before", offset, *sure, *flags]
        case "truncate":
            below = [flag for flag in ("--below-compacted",) if random.random() < 0.5]
            words = [verb, TOPIC, "--partition", partition, "--to", offset, *below, *sure, *flags]
        case "alter":
            chosen = random.choice((*STRATEGIES[1:], *CHOICES))
            words = ["topic", "alter", TOPIC, *(word for one in chosen for word in ("--config", one))]
        case "unset":
            words = ["topic", "alter", TOPIC, "--unset", random.choice(CHOICES)[0].partition("=")[0]]
        case "partitions":
            words = ["topic", "alter", TOPIC, "--partitions", str(partitions)]
        case "undo" | "sweep":
            words = [verb, TOPIC, *sure, *flags]
        case _:
            words = [verb, TOPIC, *flags]
    return Step(now_ms, tuple(words), typed)


def records(random: Random, now_ms: int, partitions: int) -> str:
    """Lines for `produce`, without a key or a value here and there."""
    lines = []
    for _ in range(random.choice((1, 3, 12, 40))):
        record = {
            "key": random.choice(("a", "b", "c", "d", "e", "", None)),
            "value": random.choice(("x", "y" * 50, "", None)),
            "timestamp": now_ms - random.randrange(10_000),
            "headers": [["version", "\0" * 7 + random.choice("\1\2")]] if random.random() < 0.3 else [],
        }
        if random.random() < 0.3:
            record["partition"] = random.randrange(partitions)
        lines.append(json.dumps(record))
    return "".join(f"{line}\n" for line in lines)
