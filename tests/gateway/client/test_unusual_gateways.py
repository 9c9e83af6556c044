"""What the command line says where there is no gateway, and where another program answers."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler

import pytest

from gateway.client.odd_servers import a_server, hangs_up, problem, says
from gateway.conftest import Served, orders
from lithify.errors import GatewayError, RefusedError
from lithify.gateway.client import connection
from lithify.gateway.client.remote_lake import remote_lake


def test_no_gateway(ask):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        told = ask("--gateway", url, "topic", "list", code=1)
        changed = ask("--gateway", url, "topic", "create", "t", code=1)
    assert told.out == ""
    assert told.err == (
        f"error[Gateway]: no gateway can be reached at {url}: Connection refused (start one there with "
        "`lithify gateway run`, or correct the URL)\n"
    )
    assert changed.err == told.err


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (says(b"<html>", "text/html"), "is not a gateway of Lithify: it answered 200 with text/html"),
        (says(b"", "text/html", 301, Location="http://elsewhere/"), "redirects to http://elsewhere/, which is not"),
        (says({"detail": "Not Found"}, status=404), "does not know this request: it answered 404"),
        (problem("InvalidInput", "nothing", 405), "does not know this request: it answered 405"),
        (says(b"{"), "answered with what is not JSON"),
        (says({"items": [{"topic": "t"}], "next": None}), "another TopicInfo than this version knows"),
        (hangs_up, "did not answer: "),
    ],
)
def test_what_is_no_gateway_of_this_version(ask, answer, why):
    with a_server(answer) as url:
        told = ask("--gateway", url, "topic", "list", code=1)
    assert told.err.startswith("error[Gateway]: ")
    assert why in told.err
    assert len(told.err.splitlines()) == 1


def test_an_answer_without_end_is_not_taken(ask, monkeypatch):
    monkeypatch.setattr(connection, "MOST_BYTES", 1 << 20)

    def endless(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Type", "application/json")
        request.end_headers()
        for _ in range(100):
            request.wfile.write(b" " * (1 << 18))

    with a_server(endless) as url:
        assert "answered with more than 1 MiB" in ask("--gateway", url, "status", code=1).err


def test_a_change_without_an_answer_may_have_been_made(ask):
    with a_server(hangs_up) as url:
        told = ask("--gateway", url, "topic", "alter", "orders", "--partitions", 2, code=1)
    assert told.err.startswith(f"error[UnknownOutcome]: the gateway at {url} did not answer: ")
    assert "(`lithify history orders` and `lithify status orders` show what was done)" in told.err


def test_a_look_is_repeated_where_the_connection_was_reset(ask):
    empty = says({"items": [], "total": 0, "next": None})
    with a_server(hangs_up, empty, empty) as url:
        assert ask("--gateway", url, "topic", "list", "--json").out == ""


def test_a_job_of_a_topic_that_was_deleted(ask, served: Served):
    orders(served.lake)
    served.lake.delete_topic("shop/orders")
    told = ask("--gateway", served.url, "compact", "shop/orders", code=2)
    assert told.err.startswith("error[UnknownTopic]: shop/orders: no such topic")


@pytest.mark.parametrize("url", ["localhost:7660", "ftp://x", "http://", "http://h:0x5", "http://h/?a=1", "http://h /"])
def test_an_address_that_is_none_is_refused(ask, url):
    told = ask("--gateway", url, "topic", "list", code=2)
    assert told.err.startswith("error[Refused]: ")
    assert "not the URL of a gateway" in told.err


def test_the_path_of_the_api_is_not_in_the_url(ask):
    told = ask("--gateway", "http://h/lithify/api/v1/", "topic", "list", code=2)
    assert told.err.endswith("not the URL of a gateway (leave out /api/v1)\n")


@pytest.mark.parametrize(
    "verb",
    [
        ("cleaner", "run"),
        ("gateway", "run"),
        ("repair", "orders"),
        ("doctor",),
        ("kafka", "promote", "orders"),
        ("replica", "promote", "orders"),
        ("token", "list"),
        ("consume", "orders", "--group", "billing"),
        ("hydrate", "orders", "--to", "x"),
    ],
    ids=" ".join,
)
def test_verbs_that_need_the_warehouse_say_so(ask, verb: Sequence[str], monkeypatch):
    monkeypatch.setenv("LITHIFY_GATEWAY", "http://127.0.0.1:1")
    told = ask(*verb, code=2)
    assert "is not available through a gateway, such as http://127.0.0.1:1" in told.err
    assert "--warehouse or --catalog" in told.err


def test_a_round_with_a_profile_needs_the_warehouse(ask, tmp_path):
    told = ask("--gateway", "http://127.0.0.1:1", "compact", "orders", "--profile", tmp_path / "p", code=2)
    assert "--profile is not available through a gateway" in told.err
    assert not (tmp_path / "p").exists()


def test_flags_that_name_a_warehouse_replace_the_variable_and_exclude_the_flag(ask, tmp_path, monkeypatch):
    monkeypatch.setenv("LITHIFY_GATEWAY", "http://127.0.0.1:1")
    assert "no topics yet in" in ask("--warehouse", tmp_path / "w", "topic", "list").err
    told = ask("--warehouse", tmp_path / "w", "--gateway", "http://127.0.0.1:1", "topic", "list", code=2)
    assert "--warehouse and --gateway are both set" in told.err


def test_errors_of_python_are_those_of_the_command_line():
    with pytest.raises(GatewayError):
        remote_lake("http://127.0.0.1:1").topics()
    with pytest.raises(RefusedError):
        remote_lake("nothing")


def test_a_gateway_that_is_busy_says_so(ask):
    with a_server(problem("Busy", "64 requests run already", 503)) as url:
        told = ask("--gateway", url, "topic", "list", code=1)
    assert told.err == "error[Busy]: 64 requests run already\n"


def test_the_database_that_the_environment_names_is_not_the_gateways(ask, served: Served, monkeypatch):
    monkeypatch.setenv("LITHIFY_COORDINATION_URL", "sqlite:////nothing/there")
    assert ask("--gateway", served.url, "group", "list", "--json").out == ""
    told = ask("--gateway", served.url, "group", "list", "--coordination-url", "sqlite:///x", code=2)
    assert "a gateway has its own database" in told.err
