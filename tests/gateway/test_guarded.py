"""A guard put together for a real warehouse, with TLS by a certificate of files."""

from __future__ import annotations

import asyncio
import gc
import socket
from datetime import UTC, datetime, timedelta
from weakref import ref

import pytest
import requests

import lithify
from gateway.served import Seen, application, kind_of, read_all, serving
from lithify.api.wiring import open_warehouse
from lithify.gateway.access.hosts import AllowedHosts
from lithify.gateway.listening.guarded import GatewayTokens, gateway_tokens, guarded
from lithify.gateway.listening.listen import ListenAddress, Listening, Protection, may_listen
from lithify.gateway.listening.tls import checked_tls
from lithify.testing import FakeClock
from support.servers.certificates import a_certificate

EVERYWHERE = ListenAddress("0.0.0.0", 0)


@pytest.fixture
def lake(tmp_path):
    return lithify.open(str(tmp_path / "lake"))


def test_a_gateway_counts_the_tokens_that_may_let_clients_in(lake):
    tokens = gateway_tokens(lake.warehouse, None)
    assert tokens.usable == 0
    lake.tokens().create("alice", ["admin"])
    expires = lake.tokens().create("soon", ["admin"], expires_ms=1).expires_at
    while datetime.now(UTC) <= datetime.fromisoformat(expires) + timedelta(milliseconds=5):
        pass
    assert tokens.usable == 1


def test_without_a_database_there_are_none_and_it_does_not_start(tmp_path, monkeypatch):
    monkeypatch.setattr("lithify.api.wiring.shared_place.database_of", lambda _catalog: None)
    tokens = gateway_tokens(open_warehouse(str(tmp_path / "lake")), None)
    assert (tokens.stored, tokens.usable) == (None, None)
    with pytest.raises(lithify.RefusedError, match="there is no database for tokens"):
        may_listen(EVERYWHERE, Protection(tokens.usable, tls=True))
    named = gateway_tokens(open_warehouse(str(tmp_path / "lake")), f"sqlite:///{tmp_path}/leases.db")
    assert named.stored is not None


def test_it_answers_over_tls_who_has_a_token(tmp_path, lake):
    now = datetime.now(UTC)
    tls = checked_tls(a_certificate(tmp_path, "gateway", now), now)
    alice, shop = lake.tokens().create("alice", ["admin"]), lake.tokens().create("shop", ["produce:shop"])
    tokens, seen = gateway_tokens(lake.warehouse, None), Seen()
    listening = may_listen(EVERYWHERE, Protection(tokens.usable, tls=True))
    guard = guarded(application(seen), listening, tokens, hosts=AllowedHosts(), kind_of=kind_of)
    with serving(guard, seen, tls) as gateway:
        url = f"https://127.0.0.1:{gateway.port}"

        def ask(path: str, token: str | None, **headers: str) -> requests.Response:
            sent = headers if token is None else {"Authorization": f"Bearer {token}", **headers}
            return requests.post(url + path, headers=sent, data=b"abc", verify=tls.certificate, timeout=60)

        assert ask("/x", alice.token).json() == {"caller": "alice", "bytes": 3, "method": "POST"}
        assert ask("/topics/shop%2Forders", shop.token).status_code == 200
        assert ask("/topics/other%2Forders", shop.token).status_code == 403
        assert ask("/x", None).status_code == 401
        assert ask("/x", alice.token, Origin=url).status_code == 200
        assert ask("/x", alice.token, Origin=url.replace("https", "http")).status_code == 403
        with socket.create_connection(("127.0.0.1", gateway.port), timeout=60) as plain:
            plain.sendall(b"GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert not read_all(plain).startswith(b"HTTP/")


def test_anyone_is_let_in_only_where_that_was_accepted(lake):
    seen = Seen()
    listening = may_listen(EVERYWHERE, Protection(0, tls=False, insecure_no_tokens=True, insecure_no_tls=True))
    assert listening == Listening(EVERYWHERE, needs_token=False, warnings=listening.warnings)
    tokens = gateway_tokens(lake.warehouse, None)
    guard = guarded(application(seen), listening, tokens, hosts=AllowedHosts(), kind_of=kind_of)
    with serving(guard, seen) as gateway:
        assert gateway.ask("POST", "/x").json()["caller"] == "anyone"
        assert gateway.ask("POST", "/x", {"Host": "rebound.example.com"}).status_code == 421


def test_nothing_of_a_request_that_is_over_waits_for_the_garbage_collector():
    class Held:
        """Of a scope."""

    held = []

    async def answer(scope, receive, send):
        scope["held"] = one = Held()
        held.append(ref(one))
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def nothing(*_event):
        return {"type": "http.request", "body": b"", "more_body": False}

    async def ask():
        listening = Listening(ListenAddress("127.0.0.1", 0), needs_token=False)
        tokens = GatewayTokens(None, FakeClock(1))
        guard = guarded(answer, listening, tokens, hosts=AllowedHosts(), kind_of=kind_of)
        line = {"method": "GET", "scheme": "http", "path": "/x", "raw_path": b"/x", "query_string": b""}
        sent = {"headers": [(b"host", b"localhost")], "client": ("127.0.0.1", 1)}
        await guard({"type": "http", **line, **sent}, nothing, nothing)

    gc.disable()
    try:
        asyncio.run(ask())
        assert [one() for one in held] == [None]
    finally:
        gc.enable()
