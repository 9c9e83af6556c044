"""The audit log of a real gateway: who did what, in lines that nothing breaks, without secrets."""

from __future__ import annotations

import fcntl
import json
import os
import resource
from pathlib import Path

import pytest

from gateway.served import SECRET, a_token, an_access, bearer, served
from lithify.gateway.access import failures
from lithify.gateway.access.audit import AuditEntry, AuditFile, ToldAudit
from lithify.gateway.access.failures import Failures
from lithify.model.access.tokens import token_text

SHOP = a_token("shop", "produce:shop")


@pytest.fixture
def log(tmp_path):
    return tmp_path / "audit.log"


@pytest.fixture
def gateway(log):
    with served(an_access(SHOP, audit=AuditFile(log))) as gateway:
        yield gateway


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_a_line_says_who_did_what(gateway, log):
    assert gateway.ask("POST", "/topics/shop%2Forders", bearer(SHOP), b"abc").status_code == 200
    assert lines(log) == [
        {
            "time": "2023-11-14T22:13:20.000Z",
            "who": "shop",
            "token": SHOP.id,
            "address": "127.0.0.1",
            "what": "append",
            "topic": "shop/orders",
            "status": 200,
            "code": None,
            "run": "run-1",
            "version": 7,
        }
    ]
    assert log.stat().st_mode & 0o777 == 0o600


def test_what_is_refused_and_what_fails_has_a_line_and_reading_has_none(gateway, log):
    gateway.ask("GET", "/x", bearer(SHOP))
    gateway.ask("POST", "/topics/other%2Forders", bearer(SHOP))
    gateway.ask("POST", "/fail", bearer(SHOP))
    gateway.ask("POST", "/x")
    gateway.ask("GET", "/x")
    gateway.ask("POST", "/x", {**bearer(SHOP), "Origin": "null"})
    told = [(line["who"], line["what"], line["status"], line["code"]) for line in lines(log)]
    assert told == [
        ("shop", "append", 403, "AccessDenied"),
        ("shop", "POST /fail", 500, None),
        (None, "POST /x", 401, "AccessDenied"),
        (None, "GET /x", 401, "AccessDenied"),
        (None, "POST /x", 403, "AccessDenied"),
    ]


def test_a_replay_has_a_line_of_its_own(gateway, log):
    headers = {**bearer(SHOP), "Idempotency-Key": "one"}
    for _ in range(2):
        gateway.ask("POST", "/topics/shop%2Forders", headers, b"abc")
    assert [line["run"] for line in lines(log)] == ["run-1", "run-1"]


def test_no_text_of_a_client_begins_a_line_or_makes_one_long(gateway, log):
    topic = "shop%2F" + "%E2%80%A8" + 'a"' * 1_500
    gateway.head(f"POST /topics/{topic} HTTP/1.1", f"Authorization: {bearer(SHOP)['Authorization']}")
    gateway.head("POST /topics/shop%2Fa%0A%7B%7D HTTP/1.1", f"Authorization: {bearer(SHOP)['Authorization']}")
    gateway.head(f"POST /{'a' * 4_000} HTTP/1.1")
    text = log.read_text("ascii")
    assert len(text.splitlines()) == text.count("\n") == 3
    assert max(map(len, text.splitlines())) < 4_096


def test_no_secret_is_in_a_line(gateway, log):
    text = token_text(SHOP.id, SECRET)
    gateway.ask("POST", f"/{text}", {"Authorization": f"Bearer {text[:-1]}", "Cookie": text})
    gateway.ask("POST", f"/topics/shop%2F{text}?token={text}", bearer(SHOP), text.encode())
    assert len(lines(log)) == 2 and SECRET[:20] not in log.read_text()


def test_a_flood_of_strangers_writes_a_bounded_number_of_lines(log, monkeypatch):
    monkeypatch.setattr(failures, "AT_ONCE", 5)
    access = an_access(SHOP, audit=AuditFile(log), failures=Failures(lambda: 0.0))
    with served(access) as gateway:
        for n in range(8):
            gateway.ask("POST", "/x", {"Origin": "null"} if n % 2 else None)
            gateway.ask("POST", "/healthz")
            gateway.ask("GET", "/healthz", {"Origin": "null"})
    assert 1 < len(lines(log)) <= 5


def test_a_log_that_was_moved_away_is_opened_again(gateway, log, tmp_path):
    append = ("POST", "/topics/shop%2Forders", bearer(SHOP), b"")
    gateway.ask(*append)
    log.rename(tmp_path / "audit.log.1")
    gateway.ask(*append)
    assert (len(lines(log)), len(lines(tmp_path / "audit.log.1"))) == (1, 1)


def test_nothing_is_changed_while_no_line_can_be_written(gateway, log):
    log.mkdir()
    refused = gateway.ask("POST", "/x", bearer(SHOP))
    assert (refused.status_code, refused.json()["code"]) == (503, "Busy")
    assert "audit log" in refused.json()["detail"]
    assert gateway.ask("GET", "/x", bearer(SHOP)).status_code == 200
    assert gateway.seen.asked == ["GET /x"]
    log.rmdir()
    assert gateway.ask("POST", "/x", bearer(SHOP)).status_code == 200
    assert [line["status"] for line in lines(log)] == [503, 200]


def test_a_pipe_without_a_reader_or_with_a_slow_one_keeps_nobody_waiting(gateway, log):
    os.mkfifo(log)
    assert gateway.ask("POST", "/x", bearer(SHOP)).status_code == 503
    reader = os.open(log, os.O_RDONLY | os.O_NONBLOCK)
    fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, 4_096)
    statuses = [gateway.ask("POST", "/x", bearer(SHOP)).status_code for _ in range(40)]
    assert (statuses[0], statuses[-1]) == (200, 503)
    assert gateway.ask("GET", "/x", bearer(SHOP)).status_code == 200
    os.close(reader)


def an_entry(what: str) -> AuditEntry:
    return AuditEntry(0, "alice", None, "::1", 200, {"what": what, "other": "is not a fact"})


def test_a_line_that_a_full_disk_cut_is_written_once_more_when_there_is_space(log):
    audit = AuditFile(log)
    audit.write(an_entry("first"))
    size = log.stat().st_size
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    import signal

    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10, before[1]))
    try:
        audit.write(an_entry("second"))
        with pytest.raises(OSError, match=r"."):
            audit.check()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    audit.check()
    whole = [line for line in log.read_text().splitlines() if line.endswith("}")]
    assert [json.loads(line)["what"] for line in whole] == ["first", "second"]
    assert "other" not in log.read_text()
    audit.close()


def test_lines_can_be_events_instead():
    told = []
    with served(an_access(SHOP, audit=ToldAudit(told.append))) as gateway:
        gateway.ask("DELETE", "/x", bearer(SHOP))
    assert [(one.who, one.facts["what"], one.status) for one in told] == [("shop", "DELETE /x", 200)]
