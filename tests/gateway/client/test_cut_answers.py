"""Answers that break off at any byte: what changes something is never said to have failed, or not to have begun."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from http.server import BaseHTTPRequestHandler

import pytest

from gateway.client.odd_servers import BEGUN, REPORT, ROUND, Answers, a_server, events, problem, says
from gateway.conftest import Served
from lithify.errors import GatewayError, LithifyError, UnknownOutcomeError
from lithify.gateway.client.address import address_of
from lithify.gateway.client.connection import CONNECT_S, Connection, Request
from lithify.gateway.client.remote_lake import remote_lake

BUSY = problem("Busy", "64 looks are under way, and too many wait", 503)
UNAVAILABLE = says(b"<html>", "text/html", 503)
ENDED = says({**ROUND, "report": REPORT})


def raw(answer: bytes) -> Answers:
    """These bytes, after which the connection ends."""

    def send(request: BaseHTTPRequestHandler) -> None:
        request.rfile.read(int(request.headers.get("Content-Length", 0)))
        request.wfile.write(answer)
        request.close_connection = True

    return send


def cuts_of(answer: bytes) -> list[Answers]:
    """It, broken off at any byte of its first lines, and here and there in what follows."""
    sizes = (*range(150), *range(150, len(answer), 40))
    return [raw(answer[:size]) for size in sizes]


def answer_of(served: Served, path: str, body: object) -> bytes:
    """What a gateway answers, to the byte."""
    data = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {len(data)}"
    host, port = served.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(f"{head}\r\nConnection: close\r\n\r\n".encode() + data)
        return b"".join(iter(lambda: connection.recv(65_536), b""))


def test_a_change_whose_answer_is_cut_may_have_been_made(served: Served, ask) -> None:
    whole = answer_of(served, "/api/v1/topics", {"name": "orders"})
    cuts = cuts_of(whole)
    with a_server(*cuts, raw(whole)) as url, closing(remote_lake(url)) as lake:
        for _ in cuts:
            with pytest.raises(UnknownOutcomeError):
                lake.create_topic("orders")
        assert lake.create_topic("orders").name == "orders"


def test_a_job_whose_beginning_is_cut_may_run(served: Served, ask) -> None:
    served.lake.create_topic("orders")
    whole = answer_of(served, "/api/v1/topics/orders/rounds", {})
    cuts = cuts_of(whole)
    with a_server(*cuts) as url, closing(remote_lake(url)) as lake:
        for _ in cuts:
            with pytest.raises(UnknownOutcomeError):
                lake.topic("orders").compact()


@pytest.mark.parametrize("status", [500, 502, 504])
def test_a_proxy_whose_gateway_is_gone_does_not_know_either(ask, status: int) -> None:
    with a_server(says(b"<html>", "text/html", status)) as url:
        told = ask("--gateway", url, "gateway", "job", "add", "j", "--", "replica", "run", code=1)
    assert told.err.startswith("error[UnknownOutcome]: ")
    assert "(`lithify gateway job list` shows what was done)" in told.err


def test_events_that_break_off_at_any_byte_are_taken_up_again(ask) -> None:
    told = events(("progress", {"event": "progress", "phase": "rewrite", "done": 1, "total": 2}), ("end", END))
    whole = recorded(told)
    for size in range(0, len(whole), 7):
        with a_server(BEGUN, raw(whole[:size]), told) as url, closing(remote_lake(url)) as lake:
            assert lake.topic("t").compact().version == 7


END = {**ROUND, "report": REPORT}


def recorded(answer: Answers) -> bytes:
    with a_server(answer) as url:
        host, port = url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\n\r\n")
            return b"".join(iter(lambda: connection.recv(65_536), b""))


def test_a_job_of_a_busy_gateway_goes_on(ask) -> None:
    with a_server(BEGUN, *[BUSY] * 21, ENDED) as url, closing(remote_lake(url)) as lake:
        assert lake.topic("t").compact().version == 7


@pytest.mark.parametrize(
    ("then", "why"),
    [
        (problem("AccessDenied", "no such token", 401, 2), "tells no more of job j1, which goes on: no such token"),
        (problem("NoJob", "no such job", 404), "has no job j1 any more"),
        (says({"title": "no such job"}, "application/problem+json", 404), "has no job j1 any more"),
        (UNAVAILABLE, "does not answer any more; if it still runs, job j1 goes on"),
    ],
)
def test_a_job_that_is_not_told_of_where_it_is_looked_at(ask, then: Answers, why: str) -> None:
    with a_server(BEGUN, BUSY, then) as url:
        told = ask("--gateway", url, "compact", "orders", code=1)
    assert told.err.startswith("error[UnknownOutcome]: ")
    assert why in told.err


@contextmanager
def a_full_port() -> Iterator[str]:
    """The URL of a program that takes no connection, and refuses none."""
    with ExitStack() as kept, socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(3):
            waits = kept.enter_context(socket.socket())
            waits.setblocking(False)
            waits.connect_ex(listener.getsockname())
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def test_after_ctrl_c_no_connection_is_waited_for_longer_than_an_answer() -> None:
    with a_full_port() as url, closing(Connection(address_of(url))) as connection:
        begun = time.monotonic()
        with pytest.raises(LithifyError) as unreached:
            connection.ask(Request("DELETE", "/jobs/j1"), within_s=0.2)
        assert time.monotonic() - begun < CONNECT_S / 2
        assert isinstance(unreached.value, GatewayError)
