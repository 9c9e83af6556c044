"""Which command lines may be standing jobs."""

from __future__ import annotations

import pytest

from lithify.cli.verbs import lithify_group
from lithify.errors import InvalidInputError, InvalidNameError
from lithify.model.jobs.command_lines import MOST_CHARACTERS, VERBS, check_line
from lithify.model.jobs.definition import checked_job


@pytest.mark.parametrize(
    ("line", "every_ms"),
    [
        ("kafka ingest --topic orders --continuous", None),
        ("kafka ingest --topic orders", 60_000),
        ("pulsar ingest t --available-now", 1_000),
        ("kafka publish orders --to latest --continuous", None),
        ("hydrate orders --to a.db --continuous", None),
        ("kafka hydrate orders --to a.db", 1_000),
        ("replica run --threads 2", None),
        ("replica run --once", 1_000),
        ("pulsar compact t --client-conf c", 300_000),
        ("kafka ingest --kafka-conf sasl.password=${env:P} --continuous", None),
        ("kafka ingest --kafka-conf=sasl.password=${env:P} --continuous", None),
        ("replica run --coordination-url postgresql://me@host/db", None),
    ],
)
def test_these_may(line: str, every_ms: int | None) -> None:
    check_line(line.split(), every_ms)


@pytest.mark.parametrize(
    ("line", "every_ms", "why"),
    [
        ("", None, "nothing"),
        ("topic delete orders", 60_000, "topic delete"),
        ("cleaner run", None, "cleaner run"),
        ("kafka promote t", 60_000, "kafka promote"),
        ("--json hydrate orders --continuous", None, "--json hydrate"),
        ("hydrate orders --to a.db --continuous --json", None, "--json"),
        ("hydrate orders --continuous --warehouse /x", None, "--warehouse"),
        ("hydrate orders --continuous --warehouse=/x", None, "--warehouse"),
        ("hydrate orders --continuous --catalog x", None, "--catalog"),
        ("hydrate orders --help", 60_000, "--help"),
        ("kafka ingest --continuous", 60_000, "runs until it is stopped"),
        ("kafka ingest --continuous --available-now", None, "ends by itself"),
        ("kafka ingest", None, "ends by itself"),
        ("pulsar compact t", None, "ends by itself"),
        ("replica run --once", None, "ends by itself"),
        ("replica run", 60_000, "runs until it is stopped"),
        ("hydrate o", 999, "999 ms"),
        ("hydrate o", 2**63 - 1, "9223372036854775807 ms"),
        ("kafka ingest --kafka-conf sasl.password=s3cret --continuous", None, "secret"),
        ("kafka ingest --kafka-conf=sasl.password=s3cret --continuous", None, "secret"),
        ("kafka ingest --spark-conf spark.hadoop.fs.s3a.secret.key=s3cret --continuous", None, "secret"),
        ("kafka ingest --spark-conf spark.hadoop.fs.azure.account.key.a.dfs.net=s3cret --continuous", None, "secret"),
        ("kafka ingest --spark-conf spark.sql.catalog.prod.credential=me:s3cret --continuous", None, "secret"),
        ("replica run --coordination-url postgresql://me:s3cret@host/db", None, "secret"),
        ("replica run --coordination-url=postgresql://me:s3cret@host/db", None, "secret"),
        (f"hydrate {'x' * MOST_CHARACTERS} --continuous", None, "characters"),
        ("hydrate a\0b --continuous", None, "NUL"),
        (f"hydrate {'x ' * 300} --continuous", None, "words"),
    ],
)
def test_these_may_not(line: str, every_ms: int | None, why: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        check_line(line.split(" ") if line else [], every_ms)
    assert why in str(refused.value)
    assert "s3cret" not in str(refused.value)


def test_every_verb_of_the_list_is_one() -> None:
    for verb in VERBS:
        command = lithify_group
        for word in verb.split():
            command = command.commands[word]  # type: ignore[assignment]
        assert command.name == verb.split()[-1]


@pytest.mark.parametrize("name", ["", "-x", "a/b", "a b", "x" * 300, "ä", "a\n"])
def test_names_that_a_lease_cannot_have_are_refused(name: str) -> None:
    with pytest.raises(InvalidNameError):
        checked_job(name)
