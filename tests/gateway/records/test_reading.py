"""Reads over HTTP: what a reader returns, in both forms, in pages or whole, and never less without a sign of it."""

import json
import random
import socket
import time
from dataclasses import replace
from urllib.parse import urlsplit

import pyarrow as pa
import pytest
import requests

import lithify
from gateway.conftest import ENOUGH_S, Served
from gateway.records.exchanges import ARROW, LINES, ORDERS, RECORDS, TABLE, row_of, rows_in, sent
from gateway.served import read_all
from lithify.api.lake import Lake
from lithify.model.cursor import AtTime
from lithify.model.record import Record
from lithify.testing import memory_lake
from support.faults.ports import FaultyPort
from support.servers.gateways import serving_gateway

FORMS = pytest.mark.parametrize("media", [LINES, ARROW])


def read(served, path=RECORDS, media=LINES, **params):
    answer = served.ask("GET", path, params={"encoding": "base64"} | params, headers={"Accept": media})
    assert answer.status_code == 200, answer.text
    assert answer.headers["Content-Type"] == media
    return answer


def rows(served, path=RECORDS, media=LINES, **params):
    return rows_in(read(served, path, media, **params).content, media)


def paged(served, media=LINES, **params):
    """All rows of all pages, and how many pages there were."""
    answer = read(served, RECORDS, media, **params)
    found, pages = rows_in(answer.content, media), 1
    while "next" in answer.links:
        answer = served.ask("GET", answer.links["next"]["url"], headers={"Accept": media})
        assert answer.status_code == 200, answer.text
        part, pages = rows_in(answer.content, media), pages + 1
        assert len(part) <= int(params["max"])
        found += part
    return found, pages


def some_records(chance, count):
    """With null keys and values, any bytes, headers with and without values."""

    def data(most):
        return None if chance.random() < 0.15 else chance.randbytes(chance.randrange(most))

    return [
        Record(
            key=chance.choice([b"a", b"b", b"c", None, data(9)]),
            value=data(40),
            partition=chance.randrange(3),
            timestamp=chance.randrange(1, 2**40),
            headers=tuple((chance.choice(["h", "ü", ""]), data(5)) for _ in range(chance.randrange(3))),
        )
        for _ in range(count)
    ]


@FORMS
@pytest.mark.parametrize("seed", range(2))
def test_what_is_read_is_what_was_written(served: Served, media, seed):
    """Against the records themselves, the reader and the table of the Python API, before and after a round."""
    chance = random.Random(seed)
    topic = served.lake.create_topic("shop/orders", 3, config={"null.key": "retain"})
    written = []
    for _ in range(4):
        batch = some_records(chance, chance.randrange(1, 40))
        answer = served.ask(
            "POST", RECORDS, params={"encoding": "base64"}, data=sent(batch, media), headers={"Content-Type": media}
        )
        assert answer.json().get("records") == len(batch), answer.text
        written += batch
    by_log = sorted(topic.reader(), key=lambda r: (r.partition, r.offset))
    assert len(by_log) == len(written)
    wanted = sorted(((r.partition, n, r) for n, r in enumerate(written)), key=lambda one: one[:2])
    assert [row_of(r)[2:] for r in by_log] == [row_of(r)[2:] for _, _, r in wanted]
    for _ in range(2):
        assert rows(served, RECORDS, media) == [row_of(r) for r in topic.reader()]
        assert rows(served, RECORDS, media, partition=1) == [row_of(r) for r in topic.reader(1)]
        table = [row_of(r) for batch in topic.table_batches() for r in batch.records()]
        assert rows(served, TABLE, media) == table
        for most in (13, 10_000):
            assert paged(served, media, max=most)[0] == rows(served, RECORDS, media)
        topic.compact()


@FORMS
def test_from_to_version_and_key_are_those_of_the_reader(served: Served, media):
    topic = served.lake.create_topic("shop/orders", 2)
    for n in range(9):
        topic.append([Record(key=b"k%d" % (n % 2), value=b"%d" % n, partition=0, timestamp=1000 * n)])
    before = topic.state().version
    topic.append([Record(key=b"k0", value=b"last", partition=1)])
    assert rows(served, RECORDS, media, partition=0, **{"from": 5}) == [row_of(r) for r in topic.reader(0, 5)]
    assert rows(served, RECORDS, media, **{"from": "@4000"}) == [row_of(r) for r in topic.reader(start=AtTime(4000))]
    assert rows(served, RECORDS, media, **{"from": "latest"}) == []
    assert len(rows(served, RECORDS, media, version=before - 2)) == 7 if before - 2 in topic.versions() else True
    assert [row[1] for row in rows(served, RECORDS, media, partition=0, to=4)] == [0, 1, 2, 3]
    assert [row[1] for row in rows(served, RECORDS, media, partition=0, to="1970-01-01T00:00:03Z")] == [0, 1, 2]
    assert paged(served, media, partition=0, to=7, max=2) == ([row_of(r) for r in topic.reader(0)][:7], 4)
    assert [row[4] for row in rows(served, TABLE, media, key="azA=")] == [b"8", b"last"]
    assert [row[4] for row in rows(served, TABLE, media, key="azA=", partition=0)] == [b"8"]
    assert [row[4] for row in rows(served, TABLE, media, partition=0, at=3)] == [b"1", b"2"]
    assert rows(served, TABLE, media, key="bm9uZQ==") == []


@FORMS
def test_the_records_of_a_key_are_those_of_all_logs(served: Served, media):
    topic = served.lake.create_topic("shop/orders", 2)
    for n in range(12):
        topic.append([Record(key=b"k%d" % (n % 3), value=b"%d" % n, partition=n % 2)])
    wanted = [row_of(r) for r in topic.reader() if r.key == b"k1"]
    assert rows(served, RECORDS, media, key="azE=") == wanted
    assert paged(served, media, key="azE=", max=1) == (wanted, 5)
    assert [row[1] for row in rows(served, RECORDS, media, key="azE=", partition=1, to=3)] == [0]
    assert rows(served, RECORDS, media, key="bm9uZQ==") == []


@FORMS
def test_an_empty_topic_is_empty(served: Served, media):
    served.lake.create_topic("shop/orders", 2)
    for path in (RECORDS, TABLE):
        assert rows(served, path, media) == []
    assert rows(served, RECORDS, media, max=3) == []


def test_a_reader_comes_back_for_what_is_new_and_is_told_of_what_it_missed(served: Served):
    topic = served.lake.create_topic("shop/orders")
    topic.append([Record(key=b"a", value=b"1")])
    first = read(served, partition=0, max=10)
    assert "next" not in first.links
    place = first.headers["Lithify-Cursor"]
    assert rows(served, partition=0, max=10, cursor=place) == []
    topic.append([Record(key=b"a", value=b"2")])
    assert [row[4] for row in rows(served, partition=0, cursor=place)] == [b"2"]
    topic.truncate(partition=0, to=0)
    gone = served.ask("GET", RECORDS, params={"partition": 0, "cursor": place})
    assert (gone.status_code, gone.json()["code"]) == (410, "LogTruncated")


def recreate(lake, _topic):
    lake.delete_topic("shop/orders")
    return lake.create_topic("shop/orders")


def cut(_lake, topic):
    topic.truncate(partition=0, to=1, below_compacted=True)
    return topic


@pytest.mark.parametrize("point", ["6", "@2000"])
@pytest.mark.parametrize(
    ("happens", "why"), [(recreate, "deleted and recreated"), (cut, "was truncated below offset 2")]
)
def test_pages_up_to_a_point_are_of_one_log(served: Served, happens, why, point):
    topic = served.lake.create_topic("shop/orders")
    topic.append([Record(key=b"k%d" % n, value=b"old", timestamp=1000) for n in range(6)])
    topic.append([Record(key=b"later", value=b"old", timestamp=3000)])
    first = read(served, partition=0, to=point, max=2)
    topic.compact()
    second = served.ask("GET", first.links["next"]["url"])
    assert [row[1] for row in rows_in(second.content, LINES)] == [2, 3]
    topic = happens(served.lake, topic)
    topic.append([Record(key=b"k%d" % n, value=b"new", timestamp=1000) for n in range(6)])
    topic.append([Record(key=b"later", value=b"new", timestamp=3000)])
    told = served.ask("GET", first.links["next"]["url"])
    assert (told.status_code, told.json()["code"]) == (410, "LogTruncated")
    assert why in told.json()["detail"]


def test_a_place_of_an_earlier_version_up_to_a_point_is_an_offset(served: Served):
    topic = served.lake.create_topic("shop/orders")
    topic.append([Record(key=b"k%d" % n, value=b"v") for n in range(6)])
    assert [row[1] for row in rows(served, partition=0, to=5, cursor="WzAsM10")] == [3, 4]


def test_a_page_ends_by_its_bytes_too(served: Served):
    topic = served.lake.create_topic("shop/orders", config={"max.message.bytes": str(20 * 2**20)})
    topic.append([Record(key=b"k%d" % n, value=bytes(2**20)) for n in range(20)])
    topic.append([Record(key=b"large", value=bytes(18 * 2**20))])
    found, pages = paged(served, ARROW, max=1000)
    assert [len(row[4]) for row in found] == [2**20] * 20 + [18 * 2**20]
    assert 4 <= pages <= 7


@pytest.mark.parametrize(
    ("path", "params", "status", "code"),
    [
        (RECORDS.replace("orders", "none"), {}, 404, "UnknownTopic"),
        (RECORDS, {"partition": 9}, 404, "UnknownTopic"),
        (RECORDS, {"partition": 0, "from": 99}, 400, "OffsetOutOfRange"),
        (RECORDS, {"partition": 0, "from": -1}, 400, "OffsetOutOfRange"),
        (RECORDS, {"from": 1}, 400, "Refused"),
        (RECORDS, {"to": 1}, 400, "Refused"),
        (RECORDS, {"from": "tomorrow"}, 400, "InvalidInput"),
        (RECORDS, {"from": "9" * 5000}, 400, "InvalidInput"),
        (RECORDS, {"max": 0}, 400, "InvalidInput"),
        (RECORDS, {"max": 10_001}, 400, "InvalidInput"),
        (RECORDS, {"encoding": "utf-16"}, 400, "InvalidInput"),
        (RECORDS, {"follow": "true"}, 400, "InvalidInput"),
        (RECORDS, {"cursor": "none"}, 400, "InvalidInput"),
        (RECORDS, {"cursor": "WzAsMV0", "partition": 1}, 400, "Refused"),
        (RECORDS, {"key": "zz", "encoding": "hex"}, 400, "InvalidInput"),
        (RECORDS, {"version": 9999}, 404, "UnknownVersion"),
        (RECORDS, {"version": 1, "to": "@1"}, 400, "Refused"),
        (TABLE, {"key": "zz", "encoding": "hex"}, 400, "InvalidInput"),
        (TABLE, {"at": "@1", "version": 1}, 400, "Refused"),
        (TABLE, {"at": 99, "partition": 0}, 400, "OffsetOutOfRange"),
    ],
)
def test_what_cannot_be_read_is_a_problem(served: Served, path, params, status, code):
    served.lake.create_topic("shop/orders", 2).append([Record(key=b"a", value=b"1")])
    told = served.ask("GET", path, params=params)
    assert (told.status_code, told.json()["code"]) == (status, code)
    assert told.headers["Content-Type"] == "application/problem+json"


def test_head_reads_nothing(served: Served):
    served.lake.create_topic("shop/orders")
    assert served.ask("HEAD", RECORDS).status_code == 405


def test_what_is_not_text_is_told_at_its_place(served: Served):
    served.lake.create_topic("shop/orders").append([Record(key=b"a", value=b"1"), Record(key=b"b", value=b"\xff")])
    with pytest.raises(requests.exceptions.ChunkedEncodingError):
        served.ask("GET", RECORDS)
    with served.ask("GET", RECORDS, stream=True) as answer:
        lines = received(answer).splitlines()
    assert json.loads(lines[0])["value"] == "1"
    assert "offset 1 is not UTF-8 text" in json.loads(lines[1])["error"]["message"]


class Files:
    """Counts the segments that are read, and fails at one of them."""

    def __init__(self, fails_at=None):
        self.read, self.fails_at = 0, fails_at

    def call(self, name, action):
        if name == "read":
            self.read += 1
            if self.read == self.fails_at:
                raise OSError("the disk is away")
        return action()


def many_segments(files, count, size):
    lake = memory_lake()
    topic = lake.create_topic("shop/orders", config={"max.message.bytes": str(2 * size)})
    for n in range(count):
        topic.append([Record(key=b"k%d" % n, value=b"x" * size)])
    return Lake(replace(lake.warehouse, files=FaultyPort(lake.warehouse.files, files)))


def received(answer):
    """All that came, without a sign of how it ended."""
    found = b""
    try:
        for part in answer.raw.stream():
            found += part
    except Exception:
        return found
    raise AssertionError("the body has ended as if it were whole")


@FORMS
def test_an_error_within_a_stream_is_seen(media):
    with serving_gateway(many_segments(Files(fails_at=3), 5, 1000)) as url:
        where = {"url": url + RECORDS, "headers": {"Accept": media}, "timeout": ENOUGH_S}
        with pytest.raises(requests.exceptions.ChunkedEncodingError):
            requests.get(**where)
    with serving_gateway(many_segments(Files(fails_at=3), 5, 1000)) as url:
        where = {"url": url + RECORDS, "headers": {"Accept": media}, "timeout": ENOUGH_S}
        with requests.get(**where, stream=True) as answer:
            body = received(answer)
    if media == LINES:
        *lines, last = map(json.loads, body.splitlines())
        assert [line["offset"] for line in lines] == [0, 1]
        assert last["error"]["code"] == "UnusableEnvironment"
    else:
        stream = pa.ipc.open_stream(body)
        assert [stream.read_next_batch().num_rows for _ in range(2)] == [1, 1]
        with pytest.raises(pa.ArrowInvalid):
            stream.read_next_batch()


@pytest.mark.parametrize(("path", "code"), [(RECORDS, "Refused"), (TABLE, "Refused"), (f"{RECORDS}?max=9", None)])
def test_by_http_1_0_nothing_is_streamed_as_nobody_sees_that_it_was_cut(served: Served, path, code):
    served.lake.create_topic("shop/orders").append([Record(key=b"a", value=b"1")])
    place = urlsplit(served.url)
    with socket.create_connection((place.hostname, place.port), ENOUGH_S) as old:
        old.sendall(f"GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n".encode())
        told = read_all(old)
    head, _, body = told.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200" if code is None else b"HTTP/1.1 400")
    assert b"content-length: %d\r\n" % len(body) in head.lower()
    assert json.loads(body).get("code") == code


@FORMS
def test_a_reader_that_hangs_up_ends_the_read(media):
    files = Files()
    with serving_gateway(many_segments(files, 80, 2**20)) as url:
        with requests.get(url + RECORDS, headers={"Accept": media}, timeout=ENOUGH_S, stream=True) as answer:
            assert len(answer.raw.read(1000)) == 1000
        settled, deadline = -1, time.monotonic() + ENOUGH_S
        while files.read != settled:
            assert time.monotonic() < deadline
            settled = files.read
            time.sleep(0.3)
        assert 0 < files.read < 60


@FORMS
def test_many_small_segments_are_one_stream(tmp_path, media):
    """On files, with a round between: a real warehouse."""
    lake = lithify.open(str(tmp_path))
    topic = lake.create_topic("shop/orders", 2)
    for n in range(6):
        topic.append([Record(key=b"k%d" % (n + m), value=b"%d" % m) for m in range(50)])
    with serving_gateway(lake) as url:
        for path, wanted in ((RECORDS, list(topic.reader())), (TABLE, topic.table().to_pylist())):
            answer = requests.get(
                url + path, params={"encoding": "base64"}, headers={"Accept": media}, timeout=ENOUGH_S
            )
            assert len(rows_in(answer.content, media)) == len(wanted)
        assert requests.get(url + ORDERS, timeout=ENOUGH_S).json()["records"] == 300
