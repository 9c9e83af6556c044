"""`lithify pulsar ingest` without a cluster (C50)."""

from __future__ import annotations

TOPIC = "persistent://shop/orders/states"


def test_a_cluster_that_never_answers_is_said_and_given_up(lithify, monkeypatch):
    monkeypatch.setattr("lithify.spark.pulsar.pulsar_source.FIRST_ANSWER_S", 2.0)
    monkeypatch.setattr("lithify.pulsar.client.patience.WARNING_AFTER_S", 0.2)
    done = lithify("--debug", "pulsar", "ingest", TOPIC, "--service-url", "pulsar://127.0.0.1:1", code=1)
    waits = [line for line in done.err.splitlines() if "trying again for" in line]
    assert len(waits) == 1
    assert waits[0].startswith("no broker can be reached at 127.0.0.1:1: ")
    assert "check the service URL" in waits[0]
    assert "Connection refused, for 2 s" in done.err
