"""The audit log of a real gateway: who did what, in lines that nothing breaks, without secrets."""

from __future__ import annotations

import fcntl
import json
import os
import resource
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest

import lithify
from gateway.conftest import Served as Asked
from gateway.conftest import orders
from gateway.served import SECRET, WAIT_S, a_token, an_access, bearer, served
from lithify.daemons.cleaner.event_reporter import EventReporter
from lithify.errors import EngineError, RoundAbandonedError, UnusableEnvironmentError
from lithify.gateway.access import audit, failures
from lithify.gateway.access.audit import AuditEntry, AuditFile, ToldAudit
from lithify.gateway.access.failures import Failures
from lithify.gateway.listening.listen import ListenAddress
from lithify.gateway.process.audited import open_audit
from lithify.gateway.process.opened import open_gateway
from lithify.gateway.process.options import GatewayOptions
from lithify.gateway.server.jobs.jobs import Job
from lithify.model.access.tokens import token_text
from lithify.reports.events import CleanerEvent
from lithify.testing import FakeClock, memory_lake
from lithify.testing.oracle_engine import OracleRound
from support.servers.disks import small_disk
from support.servers.gateways import serving_gateway

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
    file = AuditFile(log)
    file.write(an_entry("first"))
    size = log.stat().st_size
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    import signal

    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10, before[1]))
    try:
        file.write(an_entry("second"))
        with pytest.raises(OSError, match=r"."):
            file.check()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    file.check()
    whole = [line for line in log.read_text().splitlines() if line.endswith("}")]
    assert [json.loads(line)["what"] for line in whole] == ["first", "second"]
    assert "other" not in log.read_text()
    file.close()


def test_a_nearly_full_disk_refuses_a_change_before_it_is_made(tmp_path):
    with small_disk(tmp_path / "disk", 2 * audit.FREE_BYTES) as disk:
        log, other = disk / "audit.log", disk / "other"
        with served(an_access(SHOP, audit=AuditFile(log))) as gateway:
            assert gateway.ask("POST", "/x", bearer(SHOP)).status_code == 200
            other.write_bytes(bytes(audit.FREE_BYTES + 2**16))
            refused = gateway.ask("POST", "/x", bearer(SHOP))
            assert (refused.status_code, gateway.seen.asked) == (503, ["POST /x"])
            assert refused.json()["detail"] == "the audit log of the gateway cannot be written: No space left on device"
            other.unlink()
            assert gateway.ask("POST", "/x", bearer(SHOP)).status_code == 200
        assert [line["status"] for line in lines(log)] == [200, 503, 200]


def test_refused_requests_push_out_no_line_of_what_was_done(log, monkeypatch):
    monkeypatch.setattr(audit, "REFUSALS_PENDING", 3)
    file, told = AuditFile(log), []
    file.told = told.append
    log.mkdir()
    file.write(an_entry("first"))
    for status in (401, 403, 503, 409, 503):
        file.write(replace(an_entry("refused"), status=status))
    for status in (None, 200, 500):
        file.write(replace(an_entry("later"), status=status))
    log.rmdir()
    file.check()
    assert [line["status"] for line in lines(log)] == [200, 401, 403, None, 200, 500]
    assert told.pop() is None and all(isinstance(error, IsADirectoryError) for error in told)


def reporter(told: list[CleanerEvent]) -> EventReporter:
    return EventReporter(FakeClock(), "g1", told.append)


def test_a_gateway_whose_audit_log_cannot_be_written_does_not_start(tmp_path):
    for path, why in (("/dev/full", "No space left"), (tmp_path, "Is a directory"), (tmp_path / "a/b", "No such file")):
        with pytest.raises(UnusableEnvironmentError, match=f"the audit log {path} cannot be written: {why}"):
            options = GatewayOptions("g1", ListenAddress("127.0.0.1", 0), audit=Path(path))
            open_gateway(lithify.open(str(tmp_path / "lake")), options)


def test_events_have_the_lines_that_the_log_lacks_at_the_end(log):
    told: list[CleanerEvent] = []
    audited = open_audit(log, "127.0.0.1:7660", reporter(told))
    assert [(line["what"], line["who"], line["address"]) for line in lines(log)] == [("start", None, "127.0.0.1:7660")]
    log.unlink()
    log.mkdir()
    for _ in range(2):
        audited.file.write(an_entry("done"))
    audited.close()
    outage, *lost = [event.facts["error"] for event in told]
    assert outage.startswith(f"the audit log {log} cannot be written: Is a directory")
    assert [json.loads(one.removeprefix(f"{log} lacks a line: "))["what"] for one in lost] == ["done", "done"]


@pytest.mark.parametrize(
    ("ends", "state", "code"),
    [("well", "done", None), ("badly", "failed", "RoundsFailed"), ("early", "cancelled", "RoundAbandoned")],
)
def test_the_end_of_a_job_has_a_line_of_its_own(log, monkeypatch, ends, state, code):
    def fails(*_):
        raise EngineError("a task was lost")

    def is_cancelled(job, *_):
        job.cancelled = True
        raise RoundAbandonedError("the job was cancelled")

    if ends == "badly":
        monkeypatch.setattr(OracleRound, "find_survivors", fails)
    if ends == "early":
        monkeypatch.setattr(Job, "progress", is_cancelled)
    lake = memory_lake()
    orders(lake)
    with serving_gateway(lake, audit=AuditFile(log)) as url:
        asked = Asked(lake, url)
        job = asked.ended(asked.ask("POST", "/api/v1/topics/shop%2Forders/rounds", json={}).json()["job"])
        asked.session.close()
    begun, ended = sorted(lines(log), key=lambda line: line["status"] is None)
    assert (begun["status"], begun["job"], "state" in begun) == (202, job["job"], False)
    assert (ended["who"], ended["address"], ended["what"]) == ("local", "127.0.0.1", "compact")
    assert (ended["topic"], ended["job"]) == ("shop/orders", job["job"])
    assert (ended["state"], ended["code"]) == (job["state"], code) == (state, code)
    assert ended["duration_ms"] == job["ended_ms"] - job["begun_ms"]
    assert (ended["run"], ended["version"]) == (job["report"]["run_id"], job["report"]["version"])


def test_a_job_whose_events_are_followed_has_its_line_at_its_begin(log, monkeypatch):
    go_on, find = Event(), OracleRound.find_survivors
    monkeypatch.setattr(OracleRound, "find_survivors", lambda *given: go_on.wait(WAIT_S) and find(*given))
    lake = memory_lake()
    orders(lake)
    with serving_gateway(lake, audit=AuditFile(log)) as url:
        asked, follow = Asked(lake, url), {"Accept": "text/event-stream"}
        begun = asked.ask("POST", "/api/v1/topics/shop%2Forders/rounds", json={}, headers=follow, stream=True)
        assert [(line["what"], line["status"]) for line in lines(log)] == [("compact", 200)]
        go_on.set()
        assert "event: end" in begun.text
        asked.session.close()
    assert [(line["what"], line.get("state")) for line in lines(log)] == [("compact", None), ("compact", "done")]


def test_lines_can_be_events_instead():
    told = []
    with served(an_access(SHOP, audit=ToldAudit(told.append))) as gateway:
        gateway.ask("DELETE", "/x", bearer(SHOP))
    assert [(one.who, one.facts["what"], one.status) for one in told] == [("shop", "DELETE /x", 200)]
