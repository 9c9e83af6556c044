"""`lithify pulsar compact`, `uncompact` and `leftovers` without a cluster: what is refused, and how (C54)."""

from __future__ import annotations

import subprocess
import sys

import pytest

TOPIC = "persistent://shop/orders/states"
URLS = ("--service-url", "pulsar://127.0.0.1:1", "--admin-url", "http://127.0.0.1:1")

REFUSED = {
    "a topic that is not persistent": (("non-persistent://a/b/c", *URLS, "--plan"), "is not a persistent topic"),
    "a short name": (("states", *URLS, "--plan"), "is not the name of a Pulsar topic"),
    "no brokers": ((TOPIC, "--plan"), "service URL of the Pulsar cluster is missing"),
    "no admin interface": ((TOPIC, *URLS[:2], "--plan"), "admin interface is missing"),
    "not an admin interface": ((TOPIC, *URLS[:2], "--admin-url", "pulsar://x", "--plan"), "is not the URL"),
    "too little memory": ((TOPIC, *URLS, "--task-memory", "1MiB"), "needs at least"),
    "no replication": ((TOPIC, *URLS, "--replication", "2,3,1"), "cannot be larger"),
    "half a replication": ((TOPIC, *URLS, "--replication", "2"), "is not three numbers"),
    "another order": ((TOPIC, *URLS, "--order", "random"), "is not one of"),
}


@pytest.mark.parametrize("arguments, said", REFUSED.values(), ids=REFUSED)
def test_what_is_refused_before_anything_is_asked(lithify, arguments, said):
    assert said in lithify("pulsar", "compact", *arguments, code=2).err


def test_jars_that_are_missing_are_named_before_anything_is_asked(lithify, monkeypatch, tmp_path):
    monkeypatch.delenv("LITHIFY_PULSAR_JARS", raising=False)
    assert "--jars DIR" in lithify("pulsar", "compact", TOPIC, *URLS, code=1).err
    assert "lack bookkeeper-server" in lithify("pulsar", "compact", TOPIC, *URLS, "--jars", str(tmp_path), code=1).err
    assert "is not a folder" in lithify("pulsar", "compact", TOPIC, *URLS, "--jars", "/nowhere", code=1).err


IMPORTED = """
import sys
from lithify.api.wiring import BookKeeperChoice, SparkChoice, pulsar_ports
from lithify.pulsar.client import ClientConfig
there = BookKeeperChoice("zk:127.0.0.1:1", (1, 1, 1))
assert pulsar_ports(ClientConfig("pulsar://127.0.0.1:1", "http://127.0.0.1:1"), SparkChoice(), sys.argv[1], there)
assert "pyspark" not in sys.modules
"""


def test_a_round_imports_no_pyspark_before_it_needs_spark(tmp_path):
    for jar in ("bookkeeper-server-1.jar", "pulsar-metadata-1.jar"):
        (tmp_path / jar).touch()
    subprocess.run([sys.executable, "-c", IMPORTED, str(tmp_path)], check=True)


def test_a_cluster_that_is_not_there_is_an_error(lithify):
    assert "does not answer" in lithify("pulsar", "compact", TOPIC, *URLS, "--plan", code=1).err


def test_no_secret_of_client_conf_is_shown(lithify, tmp_path):
    conf = tmp_path / "client.conf"
    conf.write_text(
        "brokerServiceUrl=pulsar://127.0.0.1:1\nwebServiceUrl=http://127.0.0.1:1\n"
        "authPlugin=org.apache.pulsar.client.impl.auth.AuthenticationToken\nauthParams=token:verysecret\n"
    )
    done = lithify("--debug", "pulsar", "compact", TOPIC, "--client-conf", str(conf), "--plan", code=1)
    assert "verysecret" not in done.out + done.err


def test_leftovers_of_topics_that_are_gone_are_asked_for_without_a_topic(lithify, monkeypatch):
    monkeypatch.delenv("LITHIFY_PULSAR_JARS", raising=False)
    assert "--jars DIR" in lithify("pulsar", "leftovers", *URLS, "--yes", code=1).err
    assert "Missing" not in lithify("pulsar", "leftovers", *URLS, code=1).err


def test_views_are_dropped_only_when_it_is_confirmed(lithify):
    assert "nothing was dropped" in lithify("pulsar", "uncompact", TOPIC, *URLS, code=2).err
    assert "does not answer" in lithify("pulsar", "uncompact", TOPIC, *URLS, "--yes", code=1).err
