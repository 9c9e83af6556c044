"""Requests that are not for the gateway, come from another web site, or are not what they seem."""

from __future__ import annotations

import pytest

from gateway.served import an_access, served
from lithify.gateway.access.heads import Headers
from lithify.gateway.access.hosts import AllowedHosts


@pytest.fixture(scope="module")
def gateway():
    hosts = AllowedHosts(frozenset(("gateway.example.org",)))
    with served(an_access(needs_token=False, hosts=hosts)) as gateway:
        yield gateway


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LOCALHOST:7660",
        "127.0.0.1:1",
        "[::1]:7660",
        "[0:0:0:0:0:0:0:1]",
        "gateway.example.org",
        "gateway.example.org.:443",
    ],
)
def test_a_host_of_its_own_is_answered(gateway, host):
    assert gateway.head("GET /x HTTP/1.1", host=host) == (200, {"caller": "local", "bytes": 0, "method": "GET"})


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("rebound.example.com", 421),
        ("rebound.example.com:7660", 421),
        ("localhost.example.com", 421),
        ("127.0.0.2", 421),
        ("[::2]", 421),
        ("0.0.0.0", 421),
        ("2130706433", 421),
        ("localhost@rebound.example.com", 400),
        ("rebound.example.com#localhost", 400),
        ("rebound.example.com/localhost", 400),
        ("localhost, rebound.example.com", 400),
        ("localhost:", 400),
        ("localhost:0", 400),
        ("localhost:99999", 400),
        ("localhost:7660:80", 400),
        ("localhost:\xb2", 400),
        ("l\xf6calhost", 400),
        ("localhost..", 400),
        ("[::1", 400),
        ("[::1%25lo]", 400),
        ("::1", 400),
        ("", 400),
    ],
)
def test_a_host_of_others_is_refused(gateway, host, status):
    found, problem = gateway.head("POST /x HTTP/1.1", f"Host: {host}", host="")
    assert (found, problem["status"], problem["type"]) == (status, status, "about:blank")
    assert problem["code"] == {421: "AccessDenied", 400: "InvalidInput"}[status]
    assert gateway.seen.asked == []


@pytest.fixture(autouse=True)
def nothing_asked(gateway):
    gateway.seen.asked.clear()


@pytest.mark.parametrize("hosts", [(), ("Host: localhost", "Host: rebound.example.com")])
def test_no_host_and_two_hosts_are_refused(gateway, hosts):
    status, _ = gateway.head("GET /x HTTP/1.1", *hosts, host="")
    assert (status, gateway.seen.asked) == (400, [])


def test_the_address_that_a_connection_has_come_to_is_a_name_of_it():
    """As the system has it, where a gateway listens on all addresses."""
    asked = Headers({"headers": [(b"host", b"10.0.0.7:7660")]})
    assert AllowedHosts().refusal(asked, "10.0.0.7") is None
    assert AllowedHosts().refusal(asked, "::ffff:10.0.0.7") is None
    assert AllowedHosts().refusal(asked, "10.0.0.8") is not None


FROM = "https://evil.example.com"


@pytest.mark.parametrize(
    "headers",
    [
        (f"Origin: {FROM}",),
        ("Origin: null",),
        ("Origin: ",),
        ("Origin: http://localhost:7661",),
        ("Origin: http://localhost:7660@evil.example.com",),
        ("Origin: file://localhost:7660",),
        ("Origin: http://localhost:7660/",),
        ("Sec-Fetch-Site: cross-site",),
        ("Sec-Fetch-Site: same-site",),
        ("Sec-Fetch-Site: same-origin, cross-site",),
        ("Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate"),
        ("Sec-Fetch-Site: same-origin", f"Origin: {FROM}"),
        ("Origin: http://localhost:7660", "Sec-Fetch-Site: cross-site"),
    ],
)
@pytest.mark.parametrize("method", ["POST", "DELETE", "PUT", "OPTIONS"])
def test_another_site_cannot_have_a_browser_send_it(gateway, method, headers):
    status, problem = gateway.head(f"{method} /x HTTP/1.1", *headers, host="localhost:7660")
    assert (status, problem["code"], gateway.seen.asked) == (403, "AccessDenied", [])
    assert "another web site" in problem["detail"]


@pytest.mark.parametrize(
    ("method", "headers"),
    [
        ("POST", ()),
        ("POST", ("Origin: http://localhost:7660", "Sec-Fetch-Site: same-origin")),
        ("POST", ("Sec-Fetch-Site: none",)),
    ],
)
def test_its_own_page_and_programs_are_answered(gateway, method, headers):
    assert gateway.head(f"{method} /x HTTP/1.1", *headers, host="localhost:7660")[0] == 200


def test_a_link_leads_to_the_page_and_to_nothing_else(gateway):
    link = ("Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate")
    assert gateway.head("GET /healthz HTTP/1.1", *link)[0] == 200
    assert gateway.head("GET /x HTTP/1.1", *link)[0] == 403
    assert gateway.head("POST /healthz HTTP/1.1", *link)[0] == 403
    assert gateway.head("GET /healthz HTTP/1.1", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors")[0] == 403


def test_a_page_of_another_site_cannot_read(gateway):
    assert gateway.head("GET /x HTTP/1.1", f"Origin: {FROM}")[0] == 403
    assert gateway.head("GET /x HTTP/1.1", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors")[0] == 403


@pytest.mark.parametrize(
    "target",
    [
        "//x",
        "/a//b",
        "/a/../b",
        "/..",
        "/a/.",
        "/a/%2e%2e/b",
        "/a/%2E./b",
        "/a/..%2fb",
        "/a/b%2f..%2F..%2fc",
        "/a/%5c..%5cb",
        "/a\\b",
        "/a/%00",
        "/a/%0d%0aX-A:%20b",
        "/a/%zz",
        "/a/%",
        "/a/%c0%ae%c0%ae/b",
        "/a/%ff",
        "/a/%e2%80%8b",
        "http://localhost/x",
        "*",
    ],
)
def test_a_path_that_two_programs_may_read_differently_is_refused(gateway, target):
    status, problem = gateway.head(f"POST {target} HTTP/1.1")
    assert (status, gateway.seen.asked) == (400, []), problem


@pytest.mark.parametrize(
    "target", ["/", "/a/", "/topic/shop%2Forders", "/a/%2Fpath%2Fstream%3Atopic", "/a/p%C3%A4", "/a/%252e"]
)
def test_a_plain_path_is_answered(gateway, target):
    assert gateway.head(f"GET {target} HTTP/1.1")[0] == 200


def test_targets_are_bounded(gateway):
    assert gateway.head(f"GET /{'a' * 5_000} HTTP/1.1")[0] == 414
    assert gateway.head(f"GET /x?limit={'9' * 9_000} HTTP/1.1")[0] == 414
    assert gateway.head(f"GET /x?limit={'9' * 5_000} HTTP/1.1")[0] == 200  # for the application to judge
    assert gateway.head(f"GET /{'a' * 40_000} HTTP/1.1")[0] in (400, 414)  # in one piece, h11 has no bound
    assert len(gateway.seen.asked) == 1


def test_headers_are_bounded(gateway):
    assert gateway.head("GET /x HTTP/1.1", *(f"X-{n}: 1" for n in range(99)))[0] == 431
    assert gateway.head("GET /x HTTP/1.1", *(f"X-{n}: 1" for n in range(90)))[0] == 200
    assert gateway.head("GET /x HTTP/1.1", f"X: {'a' * 40_000}")[0] in (400, 431)


@pytest.mark.parametrize(
    "headers",
    [
        ("Authorization: Bearer a", "Authorization: Bearer b"),
        ("Origin: http://localhost", "origin: https://evil.example.com"),
        ("Idempotency-Key: a", "Idempotency-Key: b"),
        ("Sec-Fetch-Site: none", "Sec-Fetch-Site: cross-site"),
        ("Content-Type: text/plain", "Content-Type: application/json"),
        ("Content-Length: 1", "Content-Length: 2"),
        ("Content-Length: 1", "Transfer-Encoding: chunked, identity"),
        ("Content-Length: -1",),
        ("Content-Length: 1e3",),
        ("X : a",),
        ("X: a\r\n b",),
        ("X: a\x00b",),
        ("X\tY: a",),
    ],
)
def test_headers_that_may_be_read_in_two_ways_are_refused(gateway, headers):
    status, _ = gateway.head("POST /x HTTP/1.1", *headers, body=b"a")
    assert (status, gateway.seen.asked) in ((400, []), (501, [])) or (headers[-1], status) == ("X: a\r\n b", 200)


@pytest.mark.parametrize("name", ["X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"])
def test_the_method_cannot_be_overridden(gateway, name):
    assert gateway.head("GET /x?_method=DELETE HTTP/1.1", f"{name}: DELETE")[1]["method"] == "GET"


def test_a_header_cannot_be_put_into_an_answer(gateway):
    answer = gateway.raw(b"GET /x%0d%0aSet-Cookie:a=b HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert b"set-cookie" not in answer.lower().partition(b"\r\n\r\n")[0]


def test_every_answer_has_the_headers_of_a_page(gateway):
    for path, status in (("/x", 200), ("//", 400), ("/healthz", 200), ("/fail", 500)):
        answer = gateway.ask("GET", path)
        assert answer.status_code == status
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        assert "server" not in answer.headers
    assert "frame-ancestors 'none'" in gateway.ask("GET", "/x").headers["Content-Security-Policy"]
    assert gateway.ask("GET", "/healthz").headers["Content-Security-Policy"] == "default-src 'none'"  # its own
    assert gateway.ask("GET", "/x").headers["Cache-Control"] == "no-store"
    assert "Cache-Control" not in gateway.ask("GET", "/healthz").headers


def test_a_websocket_is_refused(gateway):
    answer = gateway.head(
        "GET /x HTTP/1.1",
        "Upgrade: websocket",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Version: 13",
    )
    assert answer[0] in (200, 400, 403)  # never 101: uvicorn answers it as a request
