"""`produce` through a gateway: each batch is there once, whatever happens to the connection (C1, C75)."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lithify
from cli.surroundings.test_interrupts import handled, press
from gateway.client.odd_servers import a_server, hangs_up, problem, says
from lithify.cli.records import sent_batches, text_lines
from lithify.gateway.client import appending
from lithify.gateway.client.answers import PROBLEM
from lithify.store.iceberg.store import IcebergStore
from lithify.testing import memory_lake
from support.servers.gateways import serving_gateway
from support.servers.tcp_proxy import TcpProxy

__all__ = ["handled"]

LINES = '{"key":"a","value":"1"}\n{"key":"b","value":"2"}\n'
APPENDED = {"topic": "orders", "version": 3, "ranges": [], "records": 0}
ORDERS = "persistent://shop/eu/orders"
"""A name that may have a partition."""
INFO = memory_lake().create_topic("orders").info().to_json()


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(appending, "PAUSES_S", (0.01, 0.01, 0.01))


@pytest.fixture
def stored(tmp_path):
    """A warehouse with a database, and the URL of a wire to its gateway that can be cut."""
    lake = lithify.open(str(tmp_path / "lake"))
    lake.create_topic("orders")
    lake.create_topic(ORDERS)
    with serving_gateway(lake) as url:
        wire = TcpProxy((urlsplit(url).hostname, urlsplit(url).port))
        yield lake, wire
        wire.close()


def values(lake):
    return [record.value for record in lake.topic("orders").reader()]


class Cuts:
    """Ends the connection at the first answers to appends with a key, which have landed then, or at their bodies."""

    def __init__(self, wire: TcpProxy, times: int, *, at: str) -> None:
        self.left, self._wire, self._keyed = times, wire, False
        wire.on_request = self.request
        if at == "answer":
            wire.on_answer = self.answer
        self._at = at

    def request(self, data: bytes) -> None:
        self._keyed = b"idempotency-key: " in data.lower() or (self._keyed and b" HTTP/1.1\r\n" not in data)
        if self._at == "request":
            self.cut()

    def answer(self, _data: bytes) -> None:
        self.cut()

    def cut(self) -> None:
        if self._keyed and self.left:
            self.left -= 1
            self._wire.drop()


@pytest.mark.parametrize("at", ["request", "answer"])
def test_a_batch_whose_answer_is_lost_is_there_once(ask, stored, at, monkeypatch):
    monkeypatch.setattr(text_lines, "BATCH_LINES", 1)
    lake, wire = stored
    cuts = Cuts(wire, 2, at=at)
    done = ask("--gateway", f"http://{wire.address}", "produce", "orders", "--json", stdin=LINES)
    assert cuts.left == 0
    assert (done.json["records"], values(lake)) == (2, [b"1", b"2"])


def test_a_batch_without_any_answer_may_have_been_written(ask, stored, monkeypatch):
    monkeypatch.setattr(text_lines, "BATCH_LINES", 1)
    lake, wire = stored
    Cuts(wire, 99, at="answer")
    failed = ask("--gateway", f"http://{wire.address}", "produce", "orders", stdin=LINES, code=1)
    assert failed.err.startswith(f"error[UnknownOutcome]: the gateway at http://{wire.address} did not answer: ")
    assert "its batch may have been written; 0 records of earlier batches were)" in failed.err
    assert values(lake) == [b"1"]


def keys_and_bodies(sent: list[tuple[str | None, bytes]], *answers):
    """Answers that note what came."""
    left = list(answers)

    def answer(request: BaseHTTPRequestHandler) -> None:
        if request.command == "GET":
            return says(INFO)(request)
        body = request.rfile.read(int(request.headers["Content-Length"]))
        if not body:
            return says(APPENDED)(request)
        sent.append((request.headers["Idempotency-Key"], body))
        return (left.pop(0) if len(left) > 1 else left[0])(request)

    return answer


BAD_GATEWAY = says(b"<html>", "text/html", 502)
UNKNOWN = problem("UnknownOutcome", "it may have landed", 500)


def test_the_same_is_sent_again_with_the_same_key(ask):
    sent: list[tuple[str | None, bytes]] = []
    busy = problem("Busy", "64 appends run already", 503)
    with a_server(keys_and_bodies(sent, busy, BAD_GATEWAY, UNKNOWN, says(APPENDED))) as url:
        assert ask("--gateway", url, "produce", "orders", stdin=LINES).err.startswith("orders: 0 records written")
    assert len(sent) == 4 and len(set(sent)) == 1
    assert sent[0][0]


CUT = says(APPENDED, Content_Length="999")
"""The beginning of an answer: the batch has landed."""
NO_KEYS = problem("Refused", "idempotency keys need a database", 400, 2)
NO_SUCH_PATH = says(b"<html>", "text/html", 404)
"""What a balancer answers that has no gateway yet."""


@pytest.mark.parametrize("answer", [CUT, says(b"", "text/plain"), says({"version": 3}), says({}, PROBLEM, 504)])
def test_an_answer_that_is_cut_is_asked_for_again(ask, answer):
    sent: list[tuple[str | None, bytes]] = []
    with a_server(keys_and_bodies(sent, answer, says(APPENDED))) as url:
        assert ask("--gateway", url, "produce", "orders", stdin=LINES).err.startswith("orders: 0 records written")
    assert len(sent) == 2 and len(set(sent)) == 1


@pytest.mark.parametrize("answer", [CUT, says(b"", "text/plain"), says({"version": 3}), says({}, PROBLEM, 504)])
@pytest.mark.parametrize("flags", [(), ("--keep-offsets",)])
def test_without_a_key_an_answer_that_is_cut_is_no_reason_to_append_again(ask, answer, flags, monkeypatch):
    monkeypatch.setattr(text_lines, "BATCH_LINES", 1)
    sent: list[tuple[str | None, bytes]] = []
    refused = () if flags else (NO_KEYS,)
    with a_server(keys_and_bodies(sent, *refused, says(APPENDED), answer)) as url:
        failed = ask("--gateway", url, "produce", "orders", *flags, stdin=LINES, code=1)
    assert failed.err.startswith("error[UnknownOutcome]: ")
    assert "its batch may have been written; 0 records of earlier batches were" in failed.err
    assert len(sent) == len(refused) + 2


def test_the_first_batch_waits_for_a_gateway_as_later_ones_do(ask):
    """A pipe may have its first line hours after the topic was looked at."""
    sent: list[tuple[str | None, bytes]] = []
    with a_server(keys_and_bodies(sent, NO_SUCH_PATH, says(APPENDED))) as url:
        assert ask("--gateway", url, "produce", "orders", stdin=LINES).err.startswith("orders: 0 records written")
    assert len(sent) == 2 and len(set(sent)) == 1


@pytest.mark.parametrize(("answer", "code"), [(BAD_GATEWAY, "UnknownOutcome"), (UNKNOWN, "UnknownOutcome")])
def test_it_is_sent_no_more_than_so_often(ask, answer, code):
    sent: list[tuple[str | None, bytes]] = []
    with a_server(keys_and_bodies(sent, answer)) as url:
        failed = ask("--gateway", url, "produce", "orders", stdin=LINES, code=1)
    assert failed.err.startswith(f"error[{code}]: ")
    assert len(sent) == 4


@pytest.mark.parametrize(
    "code", ["AccessDenied", "Refused", "InvalidRecord", "UnknownTopic", "Coordination", "Warehouse", "Conflict"]
)
def test_once_it_may_have_landed_no_later_refusal_says_that_it_has_not(ask, code):
    """As by a gateway without a database for keys, or with another clock, or whose catalog is away."""
    sent: list[tuple[str | None, bytes]] = []
    refused = problem(code, "it is refused now", 400, 2)
    with a_server(keys_and_bodies(sent, hangs_up, refused)) as url:
        failed = ask("--gateway", url, "produce", "orders", stdin=LINES, code=1)
    assert failed.err.startswith("error[UnknownOutcome]: ")
    assert len(sent) == 2


def test_kept_offsets_are_sent_once(ask, stored):
    """Without a key: a repetition would be refused, as if nothing had been written."""
    lake, wire = stored
    sent: list[tuple[str | None, bytes]] = []
    with a_server(keys_and_bodies(sent, hangs_up)) as url:
        failed = ask("--gateway", url, "produce", "orders", "--keep-offsets", stdin=LINES, code=1)
    assert failed.err.startswith("error[UnknownOutcome]: ")
    assert [key for key, _ in sent] == [None]
    line = '{"key":"a","value":"1","partition":0,"offset":5}\n'
    ask("--gateway", f"http://{wire.address}", "produce", "orders", "--keep-offsets", stdin=line)
    assert [record.offset for record in lake.topic("orders").reader()] == [5]


def test_without_a_database_for_keys_it_goes_on_without(ask, monkeypatch):
    monkeypatch.setattr(text_lines, "BATCH_LINES", 1)
    lake = memory_lake()
    lake.create_topic("orders")
    with serving_gateway(lake) as url:
        done = ask("--gateway", url, "produce", "orders", stdin=LINES)
        assert done.err == "orders: 2 records written, version 3\n"
        refused = ask("--gateway", url, "produce", "orders", stdin='{"key":null,"value":"1"}\n', code=2)
        assert "stdin, line 1: the record is refused: it has no key" in refused.err
    assert values(lake) == [b"1", b"2"]


def test_no_gateway_is_told_at_once(ask):
    with a_server(hangs_up) as url:
        pass
    failed = ask("--gateway", url, "produce", "orders", stdin=LINES, code=1)
    assert failed.err.startswith(f"error[Gateway]: no gateway can be reached at {url}")


def test_what_is_written_is_what_is_written_beside_it(ask, tmp_path, monkeypatch):
    """The same batches, offsets and records, of every form."""
    monkeypatch.setattr(text_lines, "BATCH_LINES", 3)
    monkeypatch.setattr(sent_batches, "now_ms", lambda: 7)
    monkeypatch.setattr("lithify.api.wiring.system_clock.SystemClock.now_ms", lambda _: 7)
    lake = lithify.open(str(tmp_path / "lake"))
    file = tmp_path / "x.parquet"
    dictionary = pa.array(["k", "l", "k"]).dictionary_encode()
    pq.write_table(pa.table({"key": dictionary, "value": pa.array([b"\xff", None, b""])}), file)
    odd = [
        ' {"key":"é\\u0001","value":"\\"","headers":[["h",null]]} ',
        '{"value":"v","key":"k","timestamp":5}',
        '{"key":"k","value":null,"timestamp":null,"partition":null}',
        '{"key":"k","value":"v","partition":1}',
    ]
    forms = [
        ("json", (), "\n".join(odd)),
        ("tsv", ("--format", "tsv", "--null-marker", "-"), 'a\t"1"\nb\t-\n\nc\t\x01é\nd\t4\n'),
        ("values", ("--key", "aw==", "--encoding", "base64"), "dg==\n\n/w==\n"),
        ("parquet", (str(file),), ""),
    ]
    with serving_gateway(lake) as url:
        for name, flags, text in forms:
            found = []
            for place in (("--warehouse", tmp_path / "lake"), ("--gateway", url)):
                topic = lake.create_topic(f"{name}-{len(found)}", 2)
                done = ask(*place, "produce", topic.name, *flags, "--json", stdin=text).json
                found.append((done["ranges"], done["records"], [tuple(record) for record in topic.reader()]))
            assert found[0] == found[1], name
            assert found[0][1] >= 2


@pytest.mark.parametrize("form", [(), ("--json",)], ids=["text", "json"])
@pytest.mark.parametrize(
    "text",
    [
        '{"key":"a","value":"1"}\n{"key":"b"}\n',
        "{}\n",
        "[1]\n",
        "\ufeffx\n",
        '{"key":"a","value":"1"',
        '{"key":"a","value":"1"}{}\n',
        '{"key":"a","value":"1","timestamp":true}\n',
        '{"key":"a","value":"1","timestamp":1,"color":2}\n',
        '{"key":"a","value":"1","timestamp":9223372036854775807}\n',
        '{"key":"a","value":"1"}\n{"key":null,"value":"2"}\n',
        '{"key":"a","value":"1","partition":4}\n',
        '{"key":"a","value":"1","headers":[["x"]]}\n',
        '\x0b{"key":"a","value":"1"}\n',
        '{"key":"a","value":"1"}\n\f{"key":"a","value":"1"}\n',
    ],
)
def test_what_is_refused_is_told_in_the_same_words(ask, stored, tmp_path, text, form):
    _, wire = stored
    for name in (ORDERS, f"{ORDERS}-partition-0"):
        direct = ask("--warehouse", tmp_path / "lake", *form, "produce", name, stdin=text, code=2)
        through = ask("--gateway", f"http://{wire.address}", *form, "produce", name, stdin=text, code=2)
        assert (through.out, through.err) == (direct.out, direct.err)
        assert "stdin, line " in direct.err


def test_a_large_table_is_sent_in_parts_and_a_larger_record_is_refused(ask, stored, tmp_path, monkeypatch):
    lake, wire = stored
    monkeypatch.setattr(sent_batches, "STREAM_BYTES", 20_000)
    monkeypatch.setattr(appending, "APPENDED_BYTES", 30_000)
    file = tmp_path / "x.parquet"
    sizes = [100] * 500 + [29_900]
    table = {"key": [f"k{n}" for n in range(501)], "value": [b"x" * size for size in sizes]}
    pq.write_table(pa.table(table), file)
    place = ("--gateway", f"http://{wire.address}", "produce", "orders", file)
    failed = ask(*place, code=2)
    assert f"{file}, rows 500 to 500: it has " in failed.err
    assert "nothing of its batch was written; 500 records of earlier batches were" in failed.err
    assert len(values(lake)) == 500


def test_a_partition_in_the_name_makes_a_batch_no_larger(ask, stored, monkeypatch):
    lake, wire = stored
    line = json.dumps({"key": "a", "value": "é" * 1000}, ensure_ascii=False).encode()
    monkeypatch.setattr(appending, "APPENDED_BYTES", len(line) + 100)
    ask("--gateway", f"http://{wire.address}", "produce", f"{ORDERS}-partition-0", stdin=line)
    assert [record.value for record in lake.topic(ORDERS).reader()] == ["é".encode() * 1000]


def test_a_proxy_that_takes_no_such_batch_is_named(ask):
    sent: list[tuple[str | None, bytes]] = []
    with a_server(keys_and_bodies(sent, says(b"<html>", "text/html", 413))) as url:
        failed = ask("--gateway", url, "produce", "orders", stdin=LINES, code=2)
    assert failed.err.startswith(f"error[InvalidInput]: stdin, lines 1 to 2: a proxy before the gateway at {url} ")
    assert len(sent) == 1


def test_what_was_answered_before_all_was_sent_is_read(ask):
    """A gateway answers who is to wait, and does not read all of a batch that comes slowly."""

    def busy_at_once(request: BaseHTTPRequestHandler) -> None:
        if request.command == "GET":
            return says(INFO)(request)
        if request.headers["Content-Length"] == "0":
            return says(APPENDED)(request)
        return problem("Busy", "64 appends run already", 503)(request)

    with a_server(busy_at_once) as url:
        line = '{"key":"a","value":"%s"}\n' % ("x" * 2**20)
        failed = ask("--gateway", url, "produce", "orders", stdin=line * 12, code=1)
    assert failed.err.startswith("error[Busy]: 64 appends run already")


@pytest.mark.usefixtures("handled")
def test_ctrl_c_waits_for_the_batch_that_is_being_appended(ask, stored, monkeypatch):
    lake, wire = stored
    monkeypatch.setattr(text_lines, "BATCH_LINES", 1)
    commit = IcebergStore.commit

    def struck(store, base, edit):
        if edit.add:
            press()
        return commit(store, base, edit)

    monkeypatch.setattr(IcebergStore, "commit", struck)
    stopped = ask("--gateway", f"http://{wire.address}", "produce", "orders", stdin=LINES, code=130)
    assert stopped.err.splitlines() == [
        "interrupted: waiting until this batch is appended; Ctrl-C again ends at once",
        "interrupted: orders: 1 record written, version 3; later lines were not written",
    ]
    assert values(lake) == [b"1"]


def test_a_topic_is_created_where_its_stream_says_so(ask, stored):
    lake, wire = stored
    place = ("--gateway", f"http://{wire.address}")
    lake.create_stream("auto", config={"autocreate": "true"})
    assert "1 record written" in ask(*place, "produce", "auto/new", stdin='{"key":"a","value":"1"}\n').err
    assert json.loads(ask(*place, "--json", "produce", "nope", stdin=LINES, code=2).err)["code"] == "UnknownTopic"
    assert lake.topic("auto/new").info().records == 1
