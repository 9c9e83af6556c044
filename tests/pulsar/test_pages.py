"""The commands of pages about Pulsar run in their order, on a real Pulsar."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.pages.lists import PULSAR
from support.pages.shell import Shell, a_shell
from support.pages.text import text_of
from support.pages.walk import Walk
from support.pulsar.clients import send
from support.pulsar.jars import pulsar_jars
from support.pulsar.server import PulsarServer

TOPICS = ("shop/eu/orders", "shop/orders/states")
"""That the pages are about."""


@pytest.fixture(scope="module")
def server(pulsar_server: PulsarServer) -> PulsarServer:
    """With the topics; each has a key whose first value is superseded."""
    pulsar_server.admin("PUT", "tenants/shop", json={"allowedClusters": ["standalone"]})
    for name in TOPICS:
        namespace, _, topic = name.rpartition("/")
        pulsar_server.admin("PUT", f"namespaces/{namespace}", json={"bundles": {"numBundles": 1}})
        made = pulsar_server.make_topic(name=topic, namespace=namespace)
        for value in ("placed", "paid"):
            send(pulsar_server, made, value, key="o-1")
    return pulsar_server


@pytest.fixture(scope="module")
def shell() -> Iterator[Shell]:
    with a_shell() as shell:
        yield shell


@pytest.mark.parametrize("page", PULSAR)
def test_a_page_runs_in_its_order(
    page: str,
    shell: Shell,
    server: PulsarServer,
    session: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert any(f"persistent://{topic} " in text_of(page) for topic in TOPICS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LITHIFY_PULSAR_JARS", str(pulsar_jars()))
    Path("client.conf").write_text(f"brokerServiceUrl={server.service_url}\nwebServiceUrl={server.admin_url}\n")
    places = {
        "pulsar://broker:6650": server.service_url,
        "http://broker:8080": server.admin_url,
        "/etc/pulsar/client.conf": "client.conf",
        "/opt/pulsar/lib": str(pulsar_jars()),
    }
    assert Walk(page, shell, places, ("Pulsar",)).run()
