"""An error does not repeat a long value whole, whatever way it came: no terminal and no log is filled with it."""

from __future__ import annotations

import json

import pytest

from lithify.errors.redaction import LONGEST

LONG = "x" * 100_000
KAFKA = ("--bootstrap-servers", "127.0.0.1:1", "--topic", "t")
GIVEN = {
    "a verb": (LONG,),
    "a flag": ("status", f"--{LONG}"),
    "a topic": ("status", LONG),
    "a topic of Pulsar": ("status", f"persistent://a/b/{LONG}"),
    "a topic of MapR": ("status", f"/a/b:{LONG}"),
    "a new topic": ("topic", "create", LONG),
    "a stream": ("stream", "info", LONG),
    "a group": ("group", "describe", LONG),
    "a setting": ("topic", "alter", "orders", "--config", f"{LONG}=1"),
    "its value": ("topic", "alter", "orders", "--config", f"retention.ms={LONG}"),
    "no setting": ("topic", "alter", "orders", "--config", LONG),
    "a setting to unset": ("topic", "alter", "orders", "--unset", LONG),
    "a preset": ("topic", "create", "new", "--like", LONG),
    "a partition": ("consume", "orders", "--partition", LONG),
    "an offset": ("consume", "orders", "--from", LONG),
    "a time": ("table", "orders", "--at", LONG),
    "a rate": ("throttle", "orders", "--read-rate", LONG),
    "a setting of Spark": ("compact", "orders", "--spark-conf", LONG),
    "a folder": ("--warehouse", f"/{LONG}", "topic", "list"),
    "a catalog": ("--catalog", LONG, "topic", "list"),
    "a file": ("produce", "orders", LONG),
    "a table": ("hydrate", "orders", "--to", f"sqlite:/{LONG}"),
    "a setting of Kafka": ("kafka", "ingest", *KAFKA, "--kafka-conf", f"{LONG}=1"),
    "a file of them": ("kafka", "ingest", *KAFKA, "--kafka-conf-file", f"/{LONG}"),
    "an address of Pulsar": ("pulsar", "ingest", "persistent://a/b/c", "--service-url", LONG),
    "a place of replicas": ("replica", "add", "orders", "--to", f"/{LONG}", "--name", "r"),
}

FAILED = {"--warehouse", "--catalog", "add"}
"""Of what is not refused before it is tried."""


@pytest.mark.parametrize("given", GIVEN.values(), ids=GIVEN)
def test_an_error_repeats_no_long_value_whole(given, lithify):
    lithify("topic", "create", "orders")
    for form in ((), ("--json",)):
        outcome = lithify(*form, *given, code=1 if FAILED.intersection(given) else 2)
        assert outcome.out == ""
        (line,) = outcome.err.splitlines()
        assert len(line) < 2 * LONGEST + 200
        assert "characters left out" in line
        if form:
            error = json.loads(line)
            assert max(len(error["message"]), len(error["hint"] or "")) <= LONGEST


@pytest.mark.parametrize(
    "record", [{"key": LONG, "value": 5}, {LONG: "v"}, {"key": "k", "value": "v", "headers": LONG}]
)
def test_nor_does_one_about_a_record(record, lithify):
    lithify("topic", "create", "orders")
    refused = lithify.error("produce", "orders", stdin=json.dumps(record) + "\n")
    assert len(refused) < 2 * LONGEST


def test_one_that_names_a_record_keeps_what_it_is_about(lithify):
    lithify("topic", "create", "orders")
    said = lithify.error("topic", "alter", "orders", "--config", f"{LONG}=1")
    assert said.startswith("xxx")
    assert " … 98," in said
    assert " characters left out … xxx" in said
    assert "x: no such setting (known: " in said
