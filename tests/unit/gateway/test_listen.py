"""Whether a gateway may start where it is to listen, and with which certificate."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta

import pytest

from lithify.errors import InvalidInputError, RefusedError
from lithify.gateway.access.hosts import checked_host
from lithify.gateway.listening.connections import uvicorn_settings
from lithify.gateway.listening.listen import ListenAddress, Protection, may_listen
from lithify.gateway.listening.tls import TlsFiles, checked_tls
from support.servers.certificates import a_certificate

LOCAL, EVERYWHERE = ListenAddress("127.0.0.1", 7660), ListenAddress("0.0.0.0", 7660)
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("address", "is_loopback"),
    [
        (LOCAL, True),
        (ListenAddress("127.8.9.1", 7660), True),
        (ListenAddress("localhost", 80), True),
        (ListenAddress("::1", 0), True),
        (EVERYWHERE, False),
        (ListenAddress("::", 7660), False),
        (ListenAddress("10.0.0.7", 7660), False),
        (ListenAddress("gateway.example.org", 443), False),
        (ListenAddress("localhost.example.org", 7660), False),
    ],
    ids=str,
)
def test_who_reaches_an_address(address, is_loopback):
    assert address.is_loopback == is_loopback


def test_localhost_is_the_address_whatever_it_may_be_resolved_to():
    assert ListenAddress("LocalHost", 80) == ListenAddress("127.0.0.1", 80)


@pytest.mark.parametrize(
    ("address", "given", "needs_token", "warnings"),
    [
        (LOCAL, Protection(None, False), False, 0),
        (LOCAL, Protection(0, True), False, 0),
        (LOCAL, Protection(3, False), False, 0),
        (LOCAL, Protection(1, False, requires_tokens=True), True, 0),
        (EVERYWHERE, Protection(1, True), True, 0),
        (EVERYWHERE, Protection(1, False, insecure_no_tls=True), True, 1),
        (EVERYWHERE, Protection(0, True, insecure_no_tokens=True), False, 1),
        (EVERYWHERE, Protection(None, False, insecure_no_tokens=True, insecure_no_tls=True), False, 2),
    ],
)
def test_where_it_starts(address, given, needs_token, warnings):
    listening = may_listen(address, given)
    assert (listening.needs_token, len(listening.warnings)) == (needs_token, warnings)


@pytest.mark.parametrize(
    ("address", "given", "message", "hint"),
    [
        (
            EVERYWHERE,
            Protection(0, False),
            "a gateway does not start on 0.0.0.0:7660: other machines reach it, and there is no valid token and there "
            "is no certificate",
            "run `lithify token create NAME --grant admin` and pass --tls-certificate and --tls-key, or listen on "
            "127.0.0.1; to accept the risk: --insecure-no-tokens --insecure-no-tls",
        ),
        (
            EVERYWHERE,
            Protection(None, True),
            "a gateway does not start on 0.0.0.0:7660: other machines reach it, and there is no database for tokens",
            "pass --coordination-url, or listen on 127.0.0.1; to accept the risk: --insecure-no-tokens",
        ),
        (
            EVERYWHERE,
            Protection(4, False, insecure_no_tokens=True),
            "a gateway does not start on 0.0.0.0:7660: other machines reach it, and there is no certificate",
            "pass --tls-certificate and --tls-key, or listen on 127.0.0.1; to accept the risk: --insecure-no-tls",
        ),
        (
            LOCAL,
            Protection(0, False, requires_tokens=True),
            "a gateway does not start on 127.0.0.1:7660: requires tokens, and there is no valid token",
            "run `lithify token create NAME --grant admin`",
        ),
        (
            LOCAL,
            Protection(1, False, requires_tokens=True, insecure_no_tokens=True),
            "--require-tokens and --insecure-no-tokens contradict each other",
            "use only one of them",
        ),
    ],
)
def test_where_it_does_not_start(address, given, message, hint):
    from lithify.errors.words import of_the_command_line

    with of_the_command_line(), pytest.raises(RefusedError) as caught:
        may_listen(address, given)
    with of_the_command_line():
        assert (caught.value.message, caught.value.hint) == (message, hint)


def test_every_way_to_reach_it_needs_tokens_and_tls_or_the_flag_of_that_risk():
    """Over all that can be given: who is on another machine is never let in by anything but these."""
    for tokens in (None, 0, 1):
        for flags in range(16):
            tls, required, no_tokens, no_tls = (bool(flags & bit) for bit in (1, 2, 4, 8))
            given = Protection(tokens, tls, required, no_tokens, no_tls)
            try:
                listening = may_listen(EVERYWHERE, given)
            except RefusedError:
                continue
            assert (listening.needs_token and tokens) or no_tokens
            assert tls or no_tls


@pytest.mark.parametrize("name", ["", "a b", "http://a", "a:80", "[::1]:80", "*", "a/"])
def test_what_cannot_be_an_allowed_host(name):
    with pytest.raises(InvalidInputError, match="is not the name of a host"):
        checked_host(name)
    assert [checked_host("Gateway.Example.org."), checked_host("::0:1")] == ["gateway.example.org", "::1"]


def test_uvicorn_does_not_believe_a_client_which_address_it_has():
    settings = uvicorn_settings(LOCAL, None)
    assert (settings["proxy_headers"], settings["access_log"], settings["server_header"]) == (False, False, False)
    assert (settings["host"], settings["port"], "ssl_certfile" in settings) == ("127.0.0.1", 7660, False)


def test_a_certificate_is_checked_with_its_key_before_the_start(tmp_path):
    one, other = a_certificate(tmp_path, "one", NOW), a_certificate(tmp_path, "other", NOW)
    assert checked_tls(one, NOW) == one

    def refused(files: TlsFiles, now: datetime = NOW) -> str:
        with pytest.raises(RefusedError) as caught:
            checked_tls(files, now)
        return str(caught.value)

    assert "the key belongs to another certificate" in refused(TlsFiles(one.certificate, other.key))
    assert "cannot be read: No such file" in refused(TlsFiles(one.certificate, tmp_path / "none"))
    assert "cannot be read: Is a directory" in refused(TlsFiles(tmp_path, one.key))
    assert "cannot be used for TLS" in refused(TlsFiles(one.key, one.certificate))
    assert "without a password" in refused(TlsFiles(one.certificate, tmp_path / "one.encrypted"))
    (tmp_path / "empty").touch()
    assert "cannot be used for TLS: they are not PEM" in refused(TlsFiles(tmp_path / "empty", one.key))
    trusted = one.certificate.read_text().replace(" CERTIFICATE-", " TRUSTED CERTIFICATE-")
    (tmp_path / "trusted").write_text(trusted)
    assert "has no certificate that clients accept" in refused(TlsFiles(tmp_path / "trusted", one.key))
    os.mkfifo(tmp_path / "pipe")
    assert "is a pipe" in refused(TlsFiles(one.certificate, tmp_path / "pipe"))
    for now in (NOW + timedelta(days=31), NOW - timedelta(days=10)):
        assert "not now" in refused(one, now)
