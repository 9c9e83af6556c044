"""Several gateways behind a balancer that sends each connection to the next one: no verb needs the same one twice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import cycle
from threading import Event
from urllib.parse import urlsplit

import pytest

import lithify as package
from cli.surroundings.test_interrupts import handled, press
from gateway.conftest import ENOUGH_S
from lithify.gateway.server.jobs.jobs import Jobs
from lithify.testing.oracle_engine import OracleEngine
from support.servers.gateways import serving_gateway
from support.servers.tcp_proxy import TcpProxy

__all__ = ["handled"]

Target = tuple[str, int]


class Balancer(TcpProxy):
    """Each connection goes to the next target."""

    @property
    def _target(self) -> Target:
        return next(self._targets)

    @_target.setter
    def _target(self, targets: Iterable[Target]) -> None:
        self._targets = cycle(targets)


@pytest.fixture
def balanced(tmp_path, monkeypatch) -> Iterator[tuple[package.Lake, str]]:
    """A topic with something to compact, and the URL of a balancer before three gateways."""
    monkeypatch.setattr("lithify.api.topic.spark_engine", lambda warehouse, *_: OracleEngine(warehouse.files))
    lake = package.open(str(tmp_path / "lake"))
    topic = lake.create_topic("orders")
    topic.append([package.Record(key=b"a", value=b"%d" % n) for n in range(3)])
    with serving_gateway(lake) as one, serving_gateway(lake) as two, serving_gateway(lake) as three:
        balancer = Balancer([(urlsplit(url).hostname, urlsplit(url).port) for url in (one, two, three)])
        yield lake, f"http://{balancer.address}"
        balancer.close()


def test_rounds_and_records_need_no_certain_gateway(ask, balanced):
    lake, url = balanced
    for number in range(3):
        ask("--gateway", url, "produce", "orders", stdin=f'{{"key":"b","value":"{number}"}}\n')
        assert ask("--gateway", url, "compact", "orders", "--json").json["changed"]
        assert len(ask("--gateway", url, "consume", "orders").lines) == 2
    assert [record.value for record in lake.topic("orders").reader()] == [b"2", b"2"]


@pytest.mark.usefixtures("handled")
def test_ctrl_c_finds_the_gateway_that_runs_the_round(ask, balanced, monkeypatch):
    lake, url = balanced
    cancelled, open_round, cancel = Event(), OracleEngine.open_round, Jobs.cancel

    def noted(jobs, job):
        cancel(jobs, job)
        cancelled.set()

    def struck(*given):
        press()
        assert cancelled.wait(ENOUGH_S)
        return open_round(*given)

    monkeypatch.setattr(Jobs, "cancel", noted)
    monkeypatch.setattr(OracleEngine, "open_round", struck)
    stopped = ask("--gateway", url, "compact", "orders", code=130)
    assert stopped.err.splitlines()[-1] == "interrupted: the logs of orders are unchanged"
    assert lake.topic("orders").info().records == 3
