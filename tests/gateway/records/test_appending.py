"""Appends over HTTP: each lands once or not at all, whatever its client does (C1, C75)."""

import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from urllib.parse import urlsplit

import pytest
import requests

import lithify
from gateway.conftest import ENOUGH_S, Served
from gateway.records.exchanges import ARROW, LINES, ORDERS, RECORDS
from lithify.api.lake import Lake
from lithify.testing import memory_lake
from support.faults.ports import FaultyPort
from support.servers.gateways import serving_gateway

BODY = b'{"key":"a","value":"1"}\n{"key":"b","value":"2"}\n'
HEX = b'{"key":"aa","value":"11"}\n'


@pytest.fixture
def stored(tmp_path):
    """A gateway of a warehouse with a database, in which there is a topic of two partitions."""
    lake = lithify.open(str(tmp_path))
    lake.create_topic("shop/orders", 2)
    with serving_gateway(lake) as url:
        asked = Served(lake, url)
        yield asked
        asked.session.close()


def append(served, data=BODY, key=None, media=LINES, **more):
    headers = {"Content-Type": media} | ({} if key is None else {"Idempotency-Key": key})
    return served.ask("POST", RECORDS, data=data, headers=headers, **more)


def values(served):
    return sorted(record.value for record in served.lake.topic("shop/orders").reader())


def connection(served):
    place = urlsplit(served.url)
    return socket.create_connection((place.hostname, place.port), ENOUGH_S)


def head(*lines, path=RECORDS):
    return "\r\n".join((f"POST {path} HTTP/1.1", "Host: localhost", f"Content-Type: {LINES}", *lines, "", "")).encode()


def test_an_answer_is_what_produce_prints(served: Served):
    topic = served.lake.create_topic("shop/orders")
    told = append(served).json()
    ranges = [{"partition": 0, "start_offset": 0, "end_offset": 2, "records": 2}]
    assert told == {"topic": "shop/orders", "version": topic.state().version, "ranges": ranges, "records": 2}
    assert append(served, b"").json()["records"] == 0


def test_a_retry_after_a_lost_answer_gets_it_and_appends_nothing(stored):
    with connection(stored) as lost:
        lost.sendall(head(f"Content-Length: {len(BODY)}", "Idempotency-Key: 4711") + BODY)
    answers = [append(stored, key="4711") for _ in range(3)]
    assert [one.status_code for one in answers] == [200] * 3
    assert answers[0].json() == answers[1].json() == answers[2].json()
    assert values(stored) == [b"1", b"2"]
    assert append(stored, key="4712").json() != answers[0].json()


@pytest.mark.parametrize(
    ("data", "params"), [(HEX + HEX, {}), (HEX, {"encoding": "hex"}), (HEX, {"expected_end": "0:0"})]
)
def test_a_key_is_of_one_request(stored, data, params):
    append(stored, HEX, key="4711")
    again = append(stored, data, key="4711", params=params)
    assert (again.status_code, again.json()["code"]) == (400, "Refused")
    assert "was used for another request" in again.json()["detail"]


def test_two_gateways_with_one_key_at_once_append_once(stored, tmp_path):
    with ExitStack() as stack:
        other = stack.enter_context(serving_gateway(lithify.open(str(tmp_path))))
        pool, begin = stack.enter_context(ThreadPoolExecutor(8)), threading.Barrier(8)

        def send(number):
            begin.wait(ENOUGH_S)
            url = (stored.url, other)[number % 2]
            headers = {"Content-Type": LINES, "Idempotency-Key": "4711"}
            return requests.post(url + RECORDS, data=BODY, headers=headers, timeout=ENOUGH_S).json()

        answers = list(pool.map(send, range(8)))
    assert all(one == answers[0] and "ranges" in one for one in answers)
    assert values(stored) == [b"1", b"2"]


@pytest.mark.parametrize(
    "begun",
    [
        head(f"Content-Length: {len(BODY)}") + BODY[:-1],
        head("Transfer-Encoding: chunked") + b"%x\r\n" % len(BODY) + BODY + b"\r\n",
        head("Transfer-Encoding: chunked") + b"%x\r\n" % len(BODY) + BODY[:20],
    ],
)
def test_a_body_that_ends_too_early_appends_nothing(stored, begun):
    with connection(stored) as hung_up:
        hung_up.sendall(begun)
        time.sleep(0.1)
    assert append(stored, b'{"key":"c","value":"3"}\n').status_code == 200
    assert values(stored) == [b"3"]


@pytest.mark.parametrize(
    ("data", "place", "code"),
    [
        (BODY + b"\n\n{]\n", "line 5 of the body", "InvalidInput"),
        (b'{"key":1,"value":""}\n', "line 1 of the body", "InvalidInput"),
        (b'{"key":"k"}', "line 1 of the body", "InvalidInput"),
        (b"[" * 200_000, "line 1 of the body", "InvalidInput"),
        (b'\xff{"key":"k","value":""}', "line 1 of the body", "InvalidInput"),
        (BODY + b'{"key":"k","value":"%s"}' % (b"x" * 2**21), "line 3 of the body", "InvalidRecord"),
        (BODY + b'{"key":"k","value":"","partition":7}', "line 3 of the body", "InvalidRecord"),
    ],
)
def test_a_refused_line_refuses_the_batch_and_is_named(served: Served, data, place, code):
    topic = served.lake.create_topic("shop/orders")
    told = append(served, data)
    assert (told.status_code, told.json()["code"]) == (400, code)
    assert told.json()["detail"].startswith(place)
    assert topic.info().records == 0


def test_blank_lines_and_a_byte_order_mark_are_passed_over(served: Served):
    served.lake.create_topic("shop/orders")
    assert append(served, b"\xef\xbb\xbf\r\n" + BODY.replace(b"\n", b"\r\n\n")).json()["records"] == 2


def test_a_body_is_bounded(served: Served):
    topic = served.lake.create_topic("shop/orders")
    line = b'{"key":"k","value":"%s"}\n' % (b"x" * 1000)
    assert append(served, line * 31_000).status_code == 200
    assert append(served, line * 34_000).status_code == 413
    chunked = append(served, (line * 1000 for _ in range(34)))
    assert (chunked.status_code, chunked.json()["code"]) == (413, "InvalidInput")
    assert topic.info().records == 31_000


def test_a_refused_record_is_named_for_programs_as_well(served: Served):
    served.lake.create_topic("shop/orders")
    told = append(served, b"\n" + BODY + b'{"key":null,"value":"3"}\n').json()
    assert told["detail"] == f"line 4 of the body: the record is refused: {told['reason']}"
    assert (told["record"], told["reason"]) == (2, "it has no key, and null.key=reject")


def test_offsets_are_kept_if_they_are_to_be(stored):
    line = b'{"key":"a","value":"%d","partition":0,"offset":%d}\n'
    kept = {"params": {"keep_offsets": "true"}}
    told = append(stored, line % (1, 5) + line % (2, 9), **kept).json()
    assert told["ranges"] == [{"partition": 0, "start_offset": 5, "end_offset": 10, "records": 2}]
    for data, said in ((line % (1, 9), "offset 9 is below the log end 10"), (BODY, "it has no partition")):
        again = append(stored, data, **kept)
        assert (again.status_code, again.json()["code"]) == (400, "InvalidRecord")
        assert said in again.json()["detail"]
    keyed = append(stored, line % (3, 20), key="4711", **kept)
    assert (keyed.status_code, keyed.json()["code"]) == (400, "Refused")
    fenced = append(stored, line % (3, 20), params={"keep_offsets": "true", "expected_end": "0:9"})
    assert (fenced.status_code, fenced.json()["code"]) == (409, "Fenced")
    assert values(stored) == [b"1", b"2"]


@pytest.mark.parametrize("media", ["", "text/plain", "application/x-www-form-urlencoded"])
def test_another_type_is_refused(served: Served, media):
    served.lake.create_topic("shop/orders")
    assert append(served, media=media).status_code == 415
    headers = {"Content-Type": LINES, "Content-Encoding": "gzip"}
    assert served.ask("POST", RECORDS, data=BODY, headers=headers).status_code == 415


def test_logs_that_end_elsewhere_fence_the_append(served: Served):
    served.lake.create_topic("shop/orders")
    assert append(served, params={"expected_end": "0:0"}).status_code == 200
    late = append(served, params={"expected_end": "0:0"})
    assert (late.status_code, late.json()["code"]) == (409, "Fenced")
    for wrong in ("0", "0:-1", "x:1", f"0:{10**30}", ["0:2", "0:2"]):
        assert append(served, params={"expected_end": wrong}).json()["code"] == "InvalidInput"


def test_keys_need_a_database_and_are_short(served: Served, stored):
    served.lake.create_topic("shop/orders")
    assert append(served, key="4711").json()["code"] == "Refused"
    assert append(stored, key="k" * 256).json()["code"] == "InvalidInput"
    assert values(stored) == []


def test_a_role_for_the_stream_is_needed(tmp_path):
    lake = lithify.open(str(tmp_path))
    for name in ("shop/orders", "secret/orders"):
        lake.create_topic(name).append([lithify.Record(key=b"k", value=b"v")])
    roles = ("produce:shop", "consume:shop", "topic", "admin")
    tokens = [lake.tokens().create(role.replace(":", "-"), [role]).token for role in roles]
    expected = {
        ("POST", RECORDS): (401, 200, 403, 403, 200),
        ("POST", RECORDS.replace("shop", "secret")): (401, 403, 403, 403, 200),
        ("GET", RECORDS): (401, 403, 200, 403, 200),
        ("GET", f"{ORDERS}/table"): (401, 403, 200, 403, 200),
        ("GET", f"{ORDERS}/table".replace("shop", "secret")): (401, 403, 403, 403, 200),
    }
    with serving_gateway(lake, needs_token=True) as url:
        for (method, path), statuses in expected.items():
            for token, status in zip((None, *tokens), statuses, strict=True):
                headers = {"Content-Type": LINES} | ({} if token is None else {"Authorization": f"Bearer {token}"})
                answer = requests.request(method, url + path, data=BODY, headers=headers, timeout=ENOUGH_S)
                assert (method, path, answer.status_code) == (method, path, status)


class Gate:
    """A store whose commits wait until it is opened."""

    def __init__(self):
        self.opened, self.reached = threading.Event(), threading.Event()

    def call(self, name, action):
        if name == "commit":
            self.reached.set()
        assert name != "commit" or self.opened.wait(ENOUGH_S)
        return action()


def test_short_requests_do_not_wait_behind_appends():
    lake, gate = memory_lake(), Gate()
    lake.create_topic("shop/orders")
    warehouse = replace(lake.warehouse, store=FaultyPort(lake.warehouse.store, gate))
    with serving_gateway(Lake(warehouse)) as url, ThreadPoolExecutor(60) as pool:
        headers = {"Content-Type": LINES}
        waiting = [
            pool.submit(requests.post, url + RECORDS, data=BODY, headers=headers, timeout=ENOUGH_S) for _ in range(60)
        ]
        try:
            for _ in range(5):
                assert requests.get(url + ORDERS, timeout=ENOUGH_S).json()["records"] == 0
        finally:
            gate.opened.set()
        assert [one.result().status_code for one in waiting] == [200] * 60
        assert requests.get(url + ORDERS, timeout=ENOUGH_S).json()["records"] == 120


def test_an_append_that_a_gateway_leaves_behind_when_it_ends_may_have_landed():
    lake, gate = memory_lake(), Gate()
    topic = lake.create_topic("shop/orders")
    warehouse = replace(lake.warehouse, store=FaultyPort(lake.warehouse.store, gate))
    headers = {"Content-Type": LINES}
    with ThreadPoolExecutor(1) as pool:
        try:
            with serving_gateway(Lake(warehouse)) as url:
                sent = pool.submit(requests.post, url + RECORDS, data=BODY, headers=headers, timeout=ENOUGH_S)
                assert gate.reached.wait(ENOUGH_S)
            answer = sent.result(ENOUGH_S)
        finally:
            gate.opened.set()
    assert (answer.status_code, answer.json()["code"]) == (500, "UnknownOutcome")
    deadline = time.monotonic() + ENOUGH_S
    while topic.info().records < 2:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_records_arrive_in_arrow_under_another_name_too(served: Served):
    served.lake.create_topic("shop/orders")
    told = append(served, media="application/json; charset=utf-8")
    assert told.json()["records"] == 2
    read = served.ask("GET", RECORDS, headers={"Accept": f"text/html, {ARROW}"})
    assert read.headers["Content-Type"] == ARROW
    lines = [json.loads(line) for line in served.ask("GET", RECORDS).text.splitlines()]
    assert [line["value"] for line in lines] == ["1", "2"]
