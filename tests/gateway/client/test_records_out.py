"""`consume` and `table` through a gateway: whole lines as they come, up to the end or a sign of why it is none."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler

import pytest

import lithify
from gateway.client.odd_servers import a_server, problem, says
from lithify.api.lake import Lake
from lithify.gateway.client import reading
from lithify.testing import memory_lake
from support.servers.gateways import serving_gateway
from support.servers.tcp_proxy import wait_until

LINES = "application/x-ndjson"
ENOUGH_S = 30


def a_line(offset, partition=0):
    return b'{"partition":%d,"offset":%d,"timestamp":1,"key":"k","value":"v","headers":[]}\n' % (partition, offset)


def chunks(*parts: bytes, whole: bool = False):
    """A body in chunks, without its end unless it is `whole`."""

    def answer(request: BaseHTTPRequestHandler) -> None:
        request.protocol_version = "HTTP/1.1"
        request.send_response(200)
        request.send_header("Content-Type", LINES)
        request.send_header("Transfer-Encoding", "chunked")
        request.end_headers()
        for part in (*parts, b"") if whole else parts:
            request.wfile.write(b"%x\r\n%b\r\n" % (len(part), part))
        request.close_connection = True

    return answer


def test_a_read_that_breaks_is_told_with_the_place_to_go_on_from(ask):
    lines = a_line(7) + a_line(9)
    with a_server(chunks(lines, a_line(12, 3)[:20])) as url:
        broken = ask("--gateway", url, "consume", "orders", code=1)
        of_one = ask("--gateway", url, "consume", "orders", "--partition", 0, code=1)
        table = ask("--gateway", url, "table", "orders", code=1)
    assert broken.out.encode() == lines
    said = f"error[Gateway]: the gateway at {url} did not send all records: "
    assert broken.err.startswith(said)
    assert "(go on with --partition 0 --from 10, then with the partitions above it)\n" in broken.err
    assert of_one.err.endswith("(go on with --partition 0 --from 10)\n")
    assert table.err.startswith(said) and table.err.endswith("(repeat it)\n")


@pytest.mark.parametrize("split", [1, 9, 10, 11, 40, 200])
def test_an_error_in_the_middle_is_raised_after_the_records_before_it(ask, split):
    error = {"code": "Damaged", "message": "segment x is damaged", "hint": "repair it", "exit_code": 1}
    body = a_line(7) + json.dumps({"error": error}).encode() + b"\n"
    with a_server(chunks(body[:split], body[split:])) as url:
        failed = ask("--gateway", url, "consume", "orders", code=1)
    assert failed.out.encode() == a_line(7)
    assert failed.err == "error[Damaged]: segment x is damaged (repair it)\n"


def without_length(request: BaseHTTPRequestHandler) -> None:
    request.send_response(200)
    request.send_header("Content-Type", LINES)
    request.end_headers()
    request.wfile.write(a_line(0))


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (without_length, "removes the sign of where records end"),
        (says(b"<html>", "text/html"), "is not a gateway of Lithify: it answered 200 with text/html"),
        (says({"topic": "x"}), "answered with other than records"),
        (problem("Busy", "16 reads run already", 503), "16 reads run already"),
        (says(a_line(0) + b"x", LINES), "did not send all records: "),
    ],
)
def test_what_is_no_whole_answer_is_not_taken_for_one(ask, answer, said):
    with a_server(answer) as url:
        assert said in ask("--gateway", url, "consume", "orders", code=1).err


def test_so_many_are_printed_and_no_more_is_read(ask):
    with a_server(chunks(a_line(0) + a_line(1) + a_line(2), a_line(3))) as url:
        assert ask("--gateway", url, "consume", "orders", "--max", 2).out.encode() == a_line(0) + a_line(1)
        assert ask("--gateway", url, "consume", "orders", "--max", 4, code=0).out.count("\n") == 4
        assert ask("--gateway", url, "consume", "orders", "--max", 0).out == ""


@pytest.fixture
def topic():
    lake = memory_lake()
    topic = lake.create_topic("orders", 2)
    topic.append([lithify.Record(key=b"a", value=b"%d" % n, partition=n % 2, timestamp=1) for n in range(4)])
    return topic


def following(url, *flags):
    command = [sys.executable, "-m", "lithify", "--gateway", url, "consume", "orders", "--follow", *flags]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


class Read:
    """What a process prints, as it comes."""

    def __init__(self, process):
        self.process, self.lines = process, []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        with self.process.stdout as lines:
            self.lines.extend(map(json.loads, lines))

    def ended(self):
        """Its exit code, and what it said."""
        with self.process.stderr as said:
            return self.process.wait(ENOUGH_S), said.read()

    def wait_for(self, count):
        wait_until(lambda: len(self.lines) >= count, f"{count} records did not come", ENOUGH_S)
        return [int(line["value"]) for line in self.lines]


def test_followed_records_come_as_they_are_appended_until_ctrl_c(topic):
    with serving_gateway(Lake(topic.warehouse)) as url:
        read = Read(following(url))
        assert read.wait_for(4) == [0, 2, 1, 3]
        topic.append([lithify.Record(key=b"b", value=b"4", partition=1)])
        assert read.wait_for(5)[4:] == [4]
        topic.alter(partitions=3)
        topic.append([lithify.Record(key=b"c", value=b"%d" % n, partition=2) for n in (5, 6)])
        assert read.wait_for(7)[5:] == [5, 6]
        read.process.send_signal(signal.SIGINT)
        assert read.ended() == (130, b"")


def test_a_follower_waits_for_a_gateway_that_restarts(topic):
    lake = Lake(topic.warehouse)
    with serving_gateway(lake, frees_port=True) as url:
        read = Read(following(url, "--from", "latest", "--partition", "1"))
        topic.append([lithify.Record(key=b"b", value=b"0", partition=1)])
        wait_until(lambda: bool(read.lines) or append_more(topic), "nothing came", ENOUGH_S)
    topic.append([lithify.Record(key=b"b", value=b"77", partition=1)])
    with serving_gateway(lake, port=int(url.rpartition(":")[2])) as again:
        assert again == url
        wait_until(lambda: read.lines[-1]["value"] == "77", "the last one did not come", ENOUGH_S)
        read.process.send_signal(signal.SIGINT)
        assert read.ended() == (130, b"")
    offsets = [line["offset"] for line in read.lines]
    assert offsets == list(range(offsets[0], offsets[-1] + 1))


def test_a_follower_that_gets_no_answer_any_more_says_where_to_go_on(ask, topic, monkeypatch):
    monkeypatch.setattr(reading, "PAUSES_S", (0.01, 0.01))
    page = says(a_line(4, 0) + a_line(6, 0), LINES, Lithify_Cursor="x")
    other = says(a_line(2, 1), LINES, Lithify_Cursor="y")
    with a_server(says(topic.info().to_json()), page, other, problem("Busy", "so many", 503)) as url:
        failed = ask("--gateway", url, "consume", "orders", "--follow", code=1)
    assert failed.out.encode() == a_line(4, 0) + a_line(6, 0) + a_line(2, 1)
    assert failed.err == "error[Busy]: so many (go on with --partition and --from: 0: 7, 1: 3)\n"


@pytest.mark.parametrize("came", [b"", a_line(0), a_line(0) + a_line(1)[:20]])
def test_a_page_that_is_cut_is_asked_for_again(ask, topic, came, monkeypatch):
    monkeypatch.setattr(reading, "PAUSES_S", (0.01,))
    info, lines = says(topic.info().to_json()), a_line(0) + a_line(1)
    cut = says(came, LINES, Content_Length=str(len(lines)), Lithify_Cursor="x")
    with a_server(info, cut, says(lines, LINES, Lithify_Cursor="x")) as url:
        read = ask("--gateway", url, "consume", "orders", "--follow", "--partition", 0, "--max", 2)
    assert read.out.encode() == lines


def test_a_page_whose_end_nobody_sees_is_not_taken(ask, topic, monkeypatch):
    monkeypatch.setattr(reading, "PAUSES_S", (0.01,))

    def page(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Type", LINES)
        request.send_header("Lithify-Cursor", "x")
        request.end_headers()
        request.wfile.write(a_line(0))

    with a_server(says(topic.info().to_json()), page) as url:
        failed = ask("--gateway", url, "consume", "orders", "--follow", "--max", 1, code=1)
    assert (failed.out, "removes the sign of where records end" in failed.err) == ("", True)


def test_no_record_is_not_waited_for(ask):
    with a_server(says(b"", LINES)) as url:
        assert ask("--gateway", url, "consume", "orders", "--follow", "--max", 0).out == ""


def append_more(topic):
    """Until the follower has begun at the end of the log."""
    topic.append([lithify.Record(key=b"b", value=b"1", partition=1)])


def test_followed_records_that_are_not_text_fail_after_those_before(ask, topic):
    topic.append([lithify.Record(key=b"a", value=value, partition=0) for value in (b"4", b"\xff", b"5")])
    with serving_gateway(Lake(topic.warehouse)) as url:
        failed = ask("--gateway", url, "consume", "orders", "--follow", "--partition", 0, code=1)
        some = ask("--gateway", url, "consume", "orders", "--follow", "--partition", 0, "--max", 3)
    assert [line["value"] for line in failed.lines] == ["0", "2", "4"]
    assert failed.err == "error[Lithify]: orders-0: the record at offset 3 is not UTF-8 text (use --encoding base64)\n"
    assert [line["value"] for line in some.lines] == ["0", "2", "4"]


def test_pages_of_a_followed_log_join_without_gaps(ask, topic, monkeypatch):
    monkeypatch.setattr(reading, "PAGE_RECORDS", 3)
    topic.append([lithify.Record(key=b"k%d" % (n % 2), value=b"%d" % n, partition=0) for n in range(20)])
    with serving_gateway(Lake(topic.warehouse)) as url:
        direct = list(topic.reader())
        found = ask("--gateway", url, "consume", "orders", "--follow", "--max", len(direct)).lines
        some = ask("--gateway", url, "consume", "orders", "--follow", "--key", "k1", "--max", 10).lines
        offset = ask("--gateway", url, "consume", "orders", "--follow", "--from", 5, "--partition", 0, "--max", 2).lines
    assert [(line["partition"], line["offset"]) for line in found] == [(r.partition, r.offset) for r in direct]
    assert [line["value"] for line in some] == [str(n) for n in range(1, 20, 2)]
    assert [line["offset"] for line in offset] == [5, 6]


def test_a_group_needs_the_warehouse(ask, monkeypatch):
    monkeypatch.setenv("LITHIFY_GATEWAY", "http://127.0.0.1:1")
    told = ask("consume", "orders", "--group", "billing", code=2)
    assert "consume --group is not available through a gateway, such as http://127.0.0.1:1" in told.err
