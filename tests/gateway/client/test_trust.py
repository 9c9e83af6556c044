"""The token goes to its gateway only, and the gateway has to prove who it is."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler

import pytest

import lithify
from gateway.client.odd_servers import a_server, says
from gateway.served import Seen, application, kind_of, serving
from lithify.errors import RefusedError
from lithify.gateway.access.hosts import AllowedHosts
from lithify.gateway.client.address import Trust, address_of
from lithify.gateway.client.remote_lake import remote_lake
from lithify.gateway.listening.guarded import gateway_tokens, guarded
from lithify.gateway.listening.listen import ListenAddress, Listening
from lithify.gateway.listening.tls import checked_tls
from support.servers.certificates import a_certificate
from support.servers.gateways import serving_gateway


def test_the_token_is_sent_and_in_no_text(ask, monkeypatch, tmp_path):
    heard: list[str | None] = []

    def refuses(request: BaseHTTPRequestHandler) -> None:
        heard.append(request.headers["Authorization"])
        detail = f"no such token: {heard[-1]}"
        problem = {"code": "Refused", "detail": detail, "hint": None, "exit_code": 2, "status": 401}
        says(problem, "application/problem+json", 401)(request)

    (tmp_path / "token").write_text("file-token-0123456789\n")
    with a_server(refuses) as url:
        monkeypatch.setenv("LITHIFY_GATEWAY_TOKEN_FILE", str(tmp_path / "token"))
        first = ask("--gateway", url, "topic", "list", code=2)
        monkeypatch.setenv("LITHIFY_GATEWAY_TOKEN", "own-token-0123456789")
        second = ask("--gateway", url, "topic", "list", code=2)
        third = ask("topic", "list", "--gateway", url, "--gateway-token-file", tmp_path / "token", code=2)
    assert heard == [f"Bearer {which}-token-0123456789" for which in ("file", "own", "file")]
    assert "0123456789" not in first.err + second.err + third.err


def test_a_token_cannot_add_a_header(ask, monkeypatch):
    monkeypatch.setenv("LITHIFY_GATEWAY_TOKEN", "x\r\nX-Evil: 1")
    told = ask("--gateway", "http://127.0.0.1:1", "topic", "list", code=2)
    assert "$LITHIFY_GATEWAY_TOKEN has no token of a gateway" in told.err
    assert "Evil" not in told.err
    for file in ("/nothing/there", "/dev/null"):
        told = ask("--gateway", "http://127.0.0.1:1", "--gateway-token-file", file, "topic", "list", code=2)
        assert told.err.startswith(f"error[Refused]: {file}")


def test_a_password_in_the_url_is_refused_and_not_repeated(ask):
    told = ask("--gateway", "http://me:hunter2222@localhost:1", "topic", "list", code=2)
    assert "$LITHIFY_GATEWAY_TOKEN" in told.err
    assert "hunter2222" not in told.err


def test_a_token_is_not_sent_to_another_machine_as_plain_text(ask, monkeypatch):
    url = "http://gateway.example:7660"
    assert address_of(url).token is None
    monkeypatch.setenv("LITHIFY_GATEWAY_TOKEN", "own-token-0123456789")
    told = ask("--gateway", url, "topic", "list", code=2)
    assert told.err == (
        f"error[Refused]: {url}: over http:// the token would be sent to another machine as plain text "
        "(write https://; to accept that others may read the token: --gateway-insecure-no-tls)\n"
    )
    for host in ("127.0.0.2", "[::1]", "localhost"):
        assert address_of(f"http://{host}:7660").token
    for host in ("localhost.example", "127.0.0.1.example", "10.0.0.1", "0x7f000001"):
        with pytest.raises(RefusedError, match="plain text"):
            address_of(f"http://{host}:7660")
    assert address_of("https://gateway.example:7660").token
    assert address_of(url, Trust(allows_plain=True)).token
    monkeypatch.setenv("LITHIFY_GATEWAY_INSECURE_NO_TLS", "1")
    assert address_of(url).token


def test_a_redirect_gets_neither_the_token_nor_a_request(ask, monkeypatch):
    heard: list[str] = []

    def elsewhere(request: BaseHTTPRequestHandler) -> None:
        heard.append(request.path)
        says({"items": [], "next": None})(request)

    monkeypatch.setenv("LITHIFY_GATEWAY_TOKEN", "own-token-0123456789")
    with a_server(elsewhere) as other:
        for status in (301, 302, 303, 307, 308):
            with a_server(says({}, "application/json", status, Location=f"{other}/api/v1/topics")) as url:
                told = ask("--gateway", url, "topic", "list", code=1)
                assert f"{url} redirects to {other}/api/v1/topics, which is not followed" in told.err
    assert heard == []


def test_a_certificate_is_checked_against_the_named_authority(ask, tmp_path, monkeypatch):
    now = datetime.now(UTC)
    tls = checked_tls(a_certificate(tmp_path, "gateway", now), now)
    lake = lithify.open(str(tmp_path / "lake"))
    seen = Seen()
    guard = guarded(
        application(seen),
        Listening(ListenAddress("127.0.0.1", 0), needs_token=True),
        gateway_tokens(lake.warehouse, None),
        hosts=AllowedHosts(),
        kind_of=kind_of,
    )
    monkeypatch.setenv("LITHIFY_GATEWAY_TOKEN", lake.tokens().create("alice", ["admin"]).token)
    with serving(guard, seen, tls) as gateway:
        url = f"https://127.0.0.1:{gateway.port}"
        told = ask("--gateway", url, "topic", "list", code=1)
        assert f"error[Gateway]: {url}: its certificate is not trusted" in told.err
        assert "--gateway-ca" in told.err
        trusted = ask("--gateway", url, "--gateway-ca", tls.certificate, "topic", "list", code=1)
        assert "answered with another ToldPage than this version knows" in trusted.err
        assert "-gateway-ca" in ask("--gateway", url, "--gateway-ca", tls.key, "topic", "list", code=2).err
        name = url.replace("127.0.0.1", "127.1")  # the same address, which is not in the certificate
        other = ask("--gateway", name, "--gateway-ca", tls.certificate, "topic", "list", code=1)
        assert "(use a name or an address that is in the certificate" in other.err
        plain = ask("--gateway", url.replace("https", "http"), "topic", "list", code=1)
        assert "check whether the URL begins with http:// or https://" in plain.err
    assert seen.asked == ["GET /api/v1/topics"]


def test_a_certificate_that_is_out_of_date_is_not_cured_by_another_authority(ask, tmp_path):
    now = datetime.now(UTC)
    old = a_certificate(tmp_path, "old", now, days=-1)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(old.certificate, old.key)
    with a_server(says({}), tls=context) as url:
        told = ask("--gateway", url, "--gateway-ca", old.certificate, "topic", "list", code=1)
    assert "certificate has expired (give the gateway a certificate that is valid now" in told.err


def test_what_a_token_may_do_is_what_the_verbs_can_do(ask, tmp_path):
    lake = lithify.open(str(tmp_path / "lake"))
    for topic in ("shop/orders", "secret/orders"):
        lake.create_topic(topic)
    token = tmp_path / "token"
    shop, none = (lake.tokens().create(name, [f"topic:{name}"]).token for name in ("shop", "none"))
    token.write_text(f"{shop}\n")
    with serving_gateway(lake, needs_token=True) as url:
        denied = ask("--gateway", url, "topic", "list", code=2)
        assert denied.err.startswith("error[AccessDenied]: ")
        place = ("--gateway", url, "--gateway-token-file", token)
        listed = ask(*place, "topic", "list", "--json").lines
        assert [one["topic"] for one in listed] == ["shop/orders"]
        assert ask(*place, "sweep", "--json").lines[0]["topic"] == "shop/orders"
        assert ask(*place, "compact", "shop/orders", "--plan", "--json").json["topic"] == "shop/orders"
        other = ask(*place, "topic", "info", "secret/orders", code=2)
        assert "the token of shop lacks the role look for stream secret" in other.err
        token.write_text(none)
        assert ask(*place, "topic", "list").err.startswith(f"no topics yet in {url} ")


def test_a_topic_that_cannot_be_read_is_told_to_those_who_may_see_it(ask, tmp_path):
    lake = lithify.open(str(tmp_path / "lake"))
    for name in ("shop/orders", "secret/orders"):
        lake.create_topic(name)
    for metadata in tmp_path.glob("lake/*/orders-*/metadata/*.metadata.json"):
        metadata.write_text("{")
    token = tmp_path / "token"
    token.write_text(lake.tokens().create("shop", ["look:shop"]).token)
    with serving_gateway(lake, needs_token=True) as url:
        told = ask("--gateway", url, "--gateway-token-file", token, "topic", "list", code=1)
    assert "shop/orders" in told.err
    assert "secret" not in told.err


def test_a_command_without_a_token_is_told_how_to_pass_one(ask, tmp_path):
    with serving_gateway(lithify.open(str(tmp_path / "lake")), needs_token=True) as url:
        told = ask("--gateway", url, "topic", "list", code=2)
    assert "this gateway needs a token (pass --gateway-token-file FILE" in told.err


def test_proxies_are_not_for_this_machine(monkeypatch):
    monkeypatch.setenv("http_proxy", "http://me:secret-of-proxy@proxy:3128")
    monkeypatch.setenv("no_proxy", "inside.example")
    assert address_of("http://127.0.0.1:7660").proxy is None
    assert address_of("http://inside.example").proxy is None
    proxy = address_of("http://outside.example").proxy
    assert proxy is not None
    assert (proxy.host, proxy.port, proxy.credentials) == ("proxy", 3128, "me:secret-of-proxy")
    assert "secret-of-proxy" not in repr(proxy)


@pytest.mark.parametrize("given", ["http://me:secret-of-proxy@proxy:x", "http://proxy:99999", "http://[::1"])
def test_a_proxy_that_is_no_address_is_refused(monkeypatch, given):
    monkeypatch.setenv("http_proxy", given)
    monkeypatch.delenv("no_proxy", raising=False)
    with pytest.raises(RefusedError, match="the proxy of the environment is not http://HOST:PORT") as refused:
        address_of("http://outside.example")
    assert "secret-of-proxy" not in str(refused.value)


def test_a_proxy_gets_the_whole_address(monkeypatch):
    heard: list[tuple[str, str | None, str | None]] = []

    def answer(request: BaseHTTPRequestHandler) -> None:
        heard.append((request.path, request.headers["Host"], request.headers["Proxy-Authorization"]))
        says({"items": [], "total": 0, "next": None})(request)

    with a_server(answer) as url:
        monkeypatch.setenv("http_proxy", url.replace("://", "://u:p@"))
        monkeypatch.delenv("no_proxy", raising=False)
        lake = remote_lake("http://gateway.example:7660/below")
        assert lake.topics() == ()
        lake.close()
    path, host, authorization = heard[0]
    assert path.startswith("http://gateway.example:7660/below/api/v1/topic-names?")
    assert (host, authorization) == ("gateway.example:7660", "Basic dTpw")
