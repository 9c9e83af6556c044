"""Jobs whose gateway breaks off, restarts, is busy or goes away: what is told, and that it is true."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler
from typing import Any

from gateway.client.odd_servers import BEGUN, REPORT, ROUND, a_server, events, hangs_up, problem, says
from lithify.gateway.client.remote_lake import remote_lake

PROGRESS = ("progress", {"event": "progress", "phase": "rewrite", "done": 1, "total": 2})
Seen = list[tuple[str, int, int]]


def compacted(url: str) -> tuple[Any, Seen]:
    """The report of a round there, and its progress."""
    lake, seen = remote_lake(url), Seen()
    try:
        return lake.topic("t").compact(progress=lambda *told: seen.append(told)), seen
    finally:
        lake.close()


def test_a_job_is_followed_over_connections_that_break(ask):
    asked: list[str | None] = []

    def resumed(request: BaseHTTPRequestHandler) -> None:
        asked.append(request.headers["Last-Event-ID"])
        events(("end", {**ROUND, "report": REPORT}), first=3)(request)

    with a_server(BEGUN, events(PROGRESS, PROGRESS), hangs_up, resumed) as url:
        report, seen = compacted(url)
    assert (report.version, report.changed) == (7, True)
    assert seen == [("rewrite", 1, 2)] * 2
    assert asked == ["2"]


def test_a_job_whose_events_are_not_sent_now_is_looked_at(ask):
    reached = {"phase": "rewrite", "done": 1, "total": 2}
    busy, running = problem("Busy", "64 streams", 503), says({**ROUND, "ended_ms": None, "progress": reached})
    ended = says({**ROUND, "report": REPORT, "progress": reached})
    with a_server(BEGUN, busy, running, busy, running, busy, running, busy, ended) as url:
        report, seen = compacted(url)
    assert report.version == 7
    assert seen == [("rewrite", 1, 2)] * 4


def test_a_job_of_a_gateway_that_has_restarted_is_said_to_be_unknown(ask):
    gone = says({"title": "no such job"}, "application/problem+json", 404)
    with a_server(BEGUN, events(), gone) as url:
        told = ask("--gateway", url, "compact", "orders", code=1)
    assert told.err == (
        f"error[UnknownOutcome]: the gateway at {url} has no job j1 any more: it has restarted, which ended the job, "
        "or another gateway answers (`lithify history orders` and `lithify status orders` show what was done)\n"
    )


def test_a_gateway_that_stays_away_is_given_up(ask):
    with a_server(BEGUN, events(), hangs_up) as url:
        told = ask("--gateway", url, "compact", "orders", "--json", code=1)
    (line,) = told.err.splitlines()
    assert f"the gateway at {url} does not answer any more; if it still runs, job j1 goes on" in line
    assert '"code":"UnknownOutcome"' in line.replace('": "', '":"')


def test_a_token_that_is_revoked_meanwhile_does_not_end_the_job(ask):
    with a_server(BEGUN, events(), problem("AccessDenied", "no such token", 401, 2)) as url:
        told = ask("--gateway", url, "compact", "orders", code=1)
    assert "tells no more of job j1, which goes on: no such token (`lithify history orders`" in told.err


def test_a_job_that_is_cancelled_elsewhere_is_an_error(ask):
    error = {"code": "RoundAbandoned", "message": "the job was cancelled", "hint": None, "exit_code": 1}
    ended = events(("end", {**ROUND, "state": "cancelled", "report": None, "error": error}))
    with a_server(BEGUN, ended) as url:
        told = ask("--gateway", url, "compact", "orders", code=1)
    assert told.err == "error[RoundAbandoned]: the job was cancelled\n"


def test_events_and_ends_of_a_later_version(ask):
    later = ("progress", {"event": "progress", "part": "rewrite"}), ("unheard", {"event": "unheard"})
    with a_server(BEGUN, events(*later, ("end", {**ROUND, "ended_ms": "now"}))) as url:
        told = ask("--gateway", url, "compact", "orders", code=1)
    assert "answered with another ToldJob than this version knows" in told.err
