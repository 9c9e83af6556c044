"""`--metrics-port` and `--metrics-per-topic`: what they take, and what they refuse before any work begins."""

from __future__ import annotations

import sys

import click
import pytest
from click.testing import CliRunner

from lithify.cli.metrics_options import MetricsAsked, in_turn, metrics_options
from lithify.cli.parameters import AddressType
from lithify.errors import UnusableEnvironmentError
from lithify.metrics.cleaner_metrics import CleanerMetrics
from support.scrapes import scraped
from support.servers.tcp_proxy import free_port


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("9464", ("127.0.0.1", 9464)),
        ("0.0.0.0:9464", ("0.0.0.0", 9464)),
        ("localhost:1", ("localhost", 1)),
        ("[::1]:65535", ("::1", 65535)),
        ("[::]:9464", ("::", 9464)),
    ],
)
def test_an_address_is_a_port_with_or_without_a_host(text, address):
    assert AddressType().convert(text, None, None) == address


@pytest.mark.parametrize("text", ["", "0", "65536", "-1", "9464x", "host:", ":", "1" * 5000, "٣", "1.5", "a b:x"])
def test_what_is_no_port_is_refused(text):
    with pytest.raises(click.BadParameter, match=r"must be a number from 1 to 65535|name a host"):
        AddressType().convert(text, None, None)


def test_all_addresses_are_named_and_not_left_out():
    with pytest.raises(click.BadParameter, match=r"name a host, such as 0\.0\.0\.0:9464 for all addresses"):
        AddressType().convert(":9464", None, None)


@pytest.mark.parametrize("text", ["7660", ":7660", "h:65536", "h:" + "1" * 5000, "h:٣", "h:", "h:-1"])
def test_an_address_that_needs_a_host_is_refused_without_one(text):
    with pytest.raises(click.BadParameter, match=r"must be a number from 0 to 65535|name a host, such as 0\.0\.0\.0:"):
        AddressType(host=None, least_port=0).convert(text, None, None)
    assert AddressType(host=None, least_port=0).convert("[::1]:0", None, None) == ("::1", 0)


@metrics_options
def verb(metrics: MetricsAsked) -> None:
    click.echo(f"{metrics.address} {metrics.topics}")


COMMAND = click.command()(verb)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "None 0"),
        (["--metrics-port", "9464"], "('127.0.0.1', 9464) 0"),
        (["--metrics-port", "9464", "--metrics-per-topic", "20"], "('127.0.0.1', 9464) 20"),
    ],
)
def test_both_are_one_value(arguments, said):
    assert CliRunner().invoke(COMMAND, arguments).output.strip() == said


def test_labels_without_metrics_are_refused():
    done = CliRunner().invoke(COMMAND, ["--metrics-per-topic", "20"])
    assert done.exit_code == 2 and "--metrics-per-topic needs --metrics-port" in done.output


def test_metrics_are_served_meanwhile_and_not_before_or_after():
    port = free_port()
    with MetricsAsked(("127.0.0.1", port), 0).served() as meter:
        CleanerMetrics(meter, 15_000)
        assert scraped(port)["lithify_compaction_rounds_total"] == 0
        with (
            pytest.raises(UnusableEnvironmentError, match="Address already in use"),
            MetricsAsked(("127.0.0.1", port), 0).served(),
        ):
            pass
    with pytest.raises(OSError):
        scraped(port)


def test_without_what_serves_them_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    monkeypatch.delitem(sys.modules, "lithify.metrics.registry", raising=False)
    asked = MetricsAsked(("127.0.0.1", free_port()), 0)
    with pytest.raises(UnusableEnvironmentError, match="prometheus_client") as missing, asked.served():
        pass
    assert "pip install 'lithify[gateway]'" in missing.value.hint
    with MetricsAsked(None, 0).served() as meter:  # without the option nothing is missing
        CleanerMetrics(meter, 15_000)


def test_calls_in_turn_get_the_same():
    got: list[tuple[str, int]] = []
    in_turn(lambda value: got.append(("a", value)), lambda value: got.append(("b", value)))(7)
    assert got == [("a", 7), ("b", 7)]
