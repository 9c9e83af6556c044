"""The endpoint of metrics, over real connections: it serves one path, and no client keeps it busy."""

from __future__ import annotations

import socket
import time
import urllib.error
import urllib.request

import pytest

from lithify.errors import UnusableEnvironmentError
from lithify.metrics import endpoint
from lithify.metrics.endpoint import MOST_AT_ONCE, served


def got(port, path="/metrics", accept=None):
    """Status, content type and body."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}{path}", headers={} if accept is None else {"Accept": accept}
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.headers["Content-Type"], answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers["Content-Type"], error.read()


def _answers(port):
    try:
        return got(port)[0] == 200
    except OSError:
        return False


def _was_hung_up(connection):
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True


def metrics(accept):
    return f"for {accept}\n".encode(), "text/plain"


def test_it_serves_one_path_and_no_other():
    with served("127.0.0.1", 0, metrics) as port:
        assert got(port, accept="text/plain") == (200, "text/plain", b"for text/plain\n")
        assert got(port, "/metrics?x=1", "a")[0] == 200
        for path in ("/", "/metrics/", "/../etc/passwd", "/%2e%2e/metrics"):
            assert got(port, path)[0] == 404, path


def test_it_answers_only_to_get():
    with served("127.0.0.1", 0, metrics) as port:
        request = urllib.request.Request(f"http://127.0.0.1:{port}/metrics", data=b"x", method="POST")
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request, timeout=30)
        assert refused.value.code == 501
        refused.value.close()


def test_a_port_in_use_is_refused():
    with (
        served("127.0.0.1", 0, metrics) as port,
        pytest.raises(
            UnusableEnvironmentError, match=rf"cannot be served at 127.0.0.1:{port}: Address already in use"
        ) as refused,
        served("127.0.0.1", port, metrics, option="--metrics-port"),
    ):
        pass
    assert "--metrics-port" in refused.value.hint


@pytest.mark.parametrize("host", ["no-such-host.invalid", "203.0.113.1"])
def test_an_address_of_another_machine_is_refused(host):
    with (
        pytest.raises(UnusableEnvironmentError, match=f"cannot be served at {host}:9464: "),
        served(host, 9464, metrics),
    ):
        pass


def test_the_port_is_free_afterwards():
    with served("127.0.0.1", 0, metrics) as port:
        got(port)
    with served("127.0.0.1", port, metrics) as again:
        assert got(again)[0] == 200


def test_what_fails_is_an_answer_and_the_next_one_is_asked():
    answers = [ValueError("a defect"), (b"well\n", "text/plain")]

    def render(_accept):
        if isinstance(answer := answers.pop(0), Exception):
            raise answer
        return answer

    with served("127.0.0.1", 0, render) as port:
        status, _, body = got(port)
        assert status == 500 and b"a defect" in body
        assert got(port)[0] == 200


def test_clients_that_never_end_their_requests_are_hung_up_on(monkeypatch, capfd):
    monkeypatch.setattr(endpoint, "DEADLINE_S", 0.5)
    with served("127.0.0.1", 0, metrics) as port:
        slow = [socket.create_connection(("127.0.0.1", port), timeout=30) for _ in range(2 * MOST_AT_ONCE)]
        try:
            for connection in slow:
                connection.sendall(b"GET /metrics HTTP/1.1\r\nX-Slow: ")
            ends = time.monotonic() + 30
            while not _answers(port):
                assert time.monotonic() < ends, "it is still busy"
            assert [_was_hung_up(connection) for connection in slow] == [True] * len(slow)
        finally:
            for connection in slow:
                connection.close()
    assert capfd.readouterr() == ("", "")
