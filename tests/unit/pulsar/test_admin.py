"""The admin interface against servers that are slow, endless, wrong or elsewhere."""

from __future__ import annotations

import json
import time
from http.server import ThreadingHTTPServer
from itertools import repeat

import pytest

from lithify.errors import BrokerError, InvalidSettingError, UnknownSourceError
from lithify.pulsar.client import Admin, ClientConfig
from lithify.pulsar.client.broker_refusals import TransientBrokerError
from support.pulsar.web_server import Request, a_web_server

TOPIC = "persistent://t/n/topic"
SERVICE = "pulsar://127.0.0.1:1"
TOKEN = "secret-token"


def admin_of(*servers: ThreadingHTTPServer, answer_s: float = 5) -> Admin:
    hosts = ",".join(f"127.0.0.1:{server.server_port}" for server in servers)
    return Admin(ClientConfig(SERVICE, f"http://{hosts}", token=TOKEN, answer_s=answer_s))


def test_an_object_is_told_with_the_token_shown():
    with a_web_server(lambda request: request.send(200, b'{"ledgers": []}')) as server:
        assert admin_of(server).internal_stats(TOPIC) == {"ledgers": []}
        assert server.seen == [("/admin/v2/persistent/t/n/topic/internalStats", f"Bearer {TOKEN}")]


STATUS = {
    401: BrokerError,
    403: BrokerError,
    404: UnknownSourceError,
    409: BrokerError,
    500: TransientBrokerError,
    503: TransientBrokerError,
}


@pytest.mark.parametrize("status", STATUS)
@pytest.mark.parametrize("body", [json.dumps({"reason": "because"}).encode(), b"because", b"[" * 100_000 + b"because"])
def test_a_refusal_says_status_and_reason(status, body):
    with a_web_server(lambda request: request.send(status, body)) as server:
        with pytest.raises(STATUS[status], match=str(status)) as caught:
            admin_of(server).internal_stats(TOPIC)
        assert len(str(caught.value)) < 1000 and TOKEN not in str(caught.value)


WRONG = {
    "HTML": b"<html>",
    "a list": b"[1]",
    "nothing": b"",
    "half of an object": b'{"a": ',
    "deep": b"[" * 1_000_000,
    "not UTF-8": b'{"a": "\xff"}',
}


@pytest.mark.parametrize("case", WRONG)
def test_an_answer_that_is_no_object_is_an_error(case):
    with a_web_server(lambda request: request.send(200, WRONG[case])) as server, pytest.raises(BrokerError):
        admin_of(server).internal_stats(TOPIC)


def endless(request: Request) -> None:
    request.send(200, b"[")
    for piece in repeat(b" " * (1 << 20), 200):
        request.wfile.write(piece)


def trickling(request: Request) -> None:
    request.send(200, b"[")
    while not request.server.closed:
        request.wfile.write(b" ")
        time.sleep(0.05)


def test_an_answer_without_end_is_given_up():
    with a_web_server(endless) as server, pytest.raises(BrokerError, match="more than 64 MiB"):
        admin_of(server, answer_s=30).internal_stats(TOPIC)


def silent(_request: Request) -> None:
    time.sleep(3)


@pytest.mark.parametrize("slow", [trickling, silent])
def test_an_answer_has_a_deadline_as_a_whole(slow):
    with a_web_server(slow) as server:
        begun_s = time.monotonic()
        with pytest.raises(TransientBrokerError, match="does not answer"):
            admin_of(server, answer_s=0.5).internal_stats(TOPIC)
        assert time.monotonic() - begun_s < 2.5


def test_redirects_to_the_owner_are_followed_with_the_token():
    with a_web_server(lambda request: request.send(200, b"{}")) as owner:

        def redirect(request: Request) -> None:
            request.send(307, Location=f"http://localhost:{owner.server_port}{request.path}")

        with a_web_server(redirect) as other:
            assert admin_of(other).internal_stats(TOPIC) == {}
        assert owner.seen == [("/admin/v2/persistent/t/n/topic/internalStats", f"Bearer {TOKEN}")]


@pytest.mark.parametrize("count", [-1, 10**12, '"3"', "true", "null"])
def test_partitions_that_cannot_be_are_an_error(count):
    answer = b'{"partitions": %s}' % str(count).encode()
    told = a_web_server(lambda request: request.send(200, answer))
    with told as server, pytest.raises(BrokerError, match="partitions"):
        admin_of(server).partitions(TOPIC)


ASTRAY = {
    "in a circle": (lambda request: request.send(307, Location=request.path), "redirects"),
    "to no web server": (lambda request: request.send(307, Location="file:///etc/passwd"), "expose the token"),
    "to no host": (lambda request: request.send(307, Location="http://[::1"), "cannot be queried"),
    "to a host that can be none": (lambda request: request.send(307, Location="http://a..b/"), "cannot be queried"),
    "nowhere": (lambda request: request.send(307), "redirects"),
}


@pytest.mark.parametrize("case", ASTRAY)
def test_redirects_that_lead_astray_end(case):
    answer, said = ASTRAY[case]
    with a_web_server(answer) as server, pytest.raises(BrokerError, match=said):
        admin_of(server).internal_stats(TOPIC)


def test_another_address_is_asked_where_one_does_not_answer():
    broken = a_web_server(lambda request: request.send(503))
    with broken as first, a_web_server(lambda request: request.send(200, b"{}")) as second:
        assert admin_of(first, second).internal_stats(TOPIC) == {}


def test_an_address_where_nothing_listens_is_named():
    with pytest.raises(TransientBrokerError, match=r"http://127\.0\.0\.1:1 does not answer: Connection refused \("):
        Admin(ClientConfig(SERVICE, "http://127.0.0.1:1")).internal_configuration()
    with pytest.raises(InvalidSettingError, match="admin"):
        Admin(ClientConfig(SERVICE))


@pytest.mark.parametrize(("own", "wide", "found"), [(b"0", b"5", 0), (b"", b"5", 5), (b"", b"", None)])
def test_the_threshold_is_the_topics_or_else_the_namespaces(own, wide, found):
    def answer(request: Request) -> None:
        request.send(200, wide if "/namespaces/t/n/compactionThreshold" in request.path else own)

    with a_web_server(answer) as server:
        assert admin_of(server).compaction_threshold(TOPIC) == found


def test_policies_of_a_partition_are_those_of_its_topic():
    """Brokers answer 412 to a question for the policies of a partition."""

    def answer(request: Request) -> None:
        request.send(412 if "-partition-" in request.path else 200, b"7")

    with a_web_server(answer) as server:
        assert admin_of(server).compaction_threshold(f"{TOPIC}-partition-3") == 7
        assert admin_of(server).message_ttl_s(f"{TOPIC}-partition-3") == 7


@pytest.mark.parametrize(("told", "found"), [(b"0", 0), (b"", 0), (b"60", 60)])
def test_the_ttl_that_applies_may_be_none(told, found):
    with a_web_server(lambda request: request.send(200, told)) as server:
        assert admin_of(server).message_ttl_s(TOPIC) == found
