"""Tokens by OAuth 2.0, from a real issuer over HTTPS: fetched once, before they expire, and shown to nobody."""

from __future__ import annotations

import base64
import logging
import pickle
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from lithify.errors import BrokerError
from lithify.pulsar.client.broker_refusals import TransientBrokerError
from lithify.pulsar.client.config import OAUTH2, ClientConfig
from lithify.pulsar.client.login.oauth2 import KEPT, REFRESH_AT
from support.pulsar.issuer import AUDIENCE, CLIENT, SECRET, Issuer, an_issuer
from support.pulsar.secured import token_of
from support.servers.tcp_proxy import free_port


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Issuer]:
    with an_issuer(tmp_path_factory.mktemp("issuer")) as issuer:
        yield issuer


@pytest.fixture
def issuer(running: Issuer) -> Issuer:
    """Nobody has asked it yet."""
    running.asked, running.answer, running.expires_in = [], None, 3600
    return running


def str_of(value: object) -> str:
    return str(value)[:8]


def config_of(parameters: str) -> ClientConfig:
    conf = {"brokerServiceUrl": "pulsar://broker", "authPlugin": OAUTH2, "authParams": parameters}
    return ClientConfig.of(conf=conf).waiting(5)


def test_a_token_is_asked_for_with_the_credentials_and_shared(issuer, tmp_path):
    """By all connections of the process, also those of tasks, which get the configuration pickled."""
    config = config_of(issuer.parameters(f"file://{issuer.credentials(tmp_path)}"))
    with ThreadPoolExecutor(8) as threads:
        logins = set(threads.map(lambda _: pickle.loads(pickle.dumps(config)).login(), range(16)))
    assert logins == {("token", token_of(CLIENT).encode())}
    form = {"grant_type": "client_credentials", "client_id": CLIENT, "client_secret": SECRET}
    assert issuer.asked == [{**form, "audience": AUDIENCE, "scope": "read"}]


def test_credentials_may_be_in_the_url_and_are_not_shown(issuer, tmp_path):
    data = issuer.credentials(tmp_path).read_bytes()
    encoded = base64.b64encode(data).decode()
    for url in (f"data:application/json;base64,{encoded}", f"data:application/json,{data.decode()}"):
        config = config_of(issuer.parameters(url))
        assert SECRET not in repr(config) and encoded not in repr(config)
        assert config.login() == ("token", token_of(CLIENT).encode())


def test_a_token_is_fetched_again_before_it_expires(issuer, tmp_path, monkeypatch):
    now_s = 0.0
    monkeypatch.setattr("lithify.waits.deadline.monotonic", lambda: now_s)
    issuer.expires_in = 100
    config = config_of(issuer.parameters(f"file:{issuer.credentials(tmp_path)}"))
    for at_s, asked in ((0, 1), (100 * REFRESH_AT - 1, 1), (100 * REFRESH_AT, 2), (185, 3)):
        now_s = at_s
        config.login()
        assert len(issuer.asked) == asked


@pytest.mark.parametrize("expires_in", [None, 0, -1, "soon", [], {}, float("nan"), 10**400, -(10**400)], ids=str_of)
def test_a_token_of_which_nothing_is_said_is_used_once(issuer, tmp_path, expires_in):
    issuer.expires_in = expires_in
    config = config_of(issuer.parameters(f"file:{issuer.credentials(tmp_path)}"))
    assert config.login() == config.login()
    assert len(issuer.asked) == 2


@pytest.mark.parametrize("expires_in", ["9" * 5000, float("inf"), 1e300], ids=str_of)
def test_a_token_that_is_valid_for_ever_is_kept_for_a_while(issuer, tmp_path, expires_in):
    issuer.expires_in = expires_in
    config = config_of(issuer.parameters(f"file:{issuer.credentials(tmp_path)}"))
    assert config.login() == config.login()
    assert len(issuer.asked) == 1


@pytest.mark.long
def test_only_so_many_tokens_are_kept(issuer, tmp_path):
    key = f"file:{issuer.credentials(tmp_path)}"
    first = config_of(issuer.parameters(key))
    first.login()
    for number in range(KEPT):
        config_of(issuer.parameters(key).replace('"read"', f'"scope{number}"')).login()
    first.login()
    assert len(issuer.asked) == KEPT + 2


REFUSED = {
    "a wrong answer": ((400, {"error": "invalid_scope"}), "answers 400: invalid_scope", BrokerError),
    "one with the secret": ((401, {"error": SECRET, "error_description": SECRET}), r"answers 401 \(", BrokerError),
    "no JSON": ((200, b"<html>"), "answers 200", BrokerError),
    "a list": ((200, []), "answers 200", BrokerError),
    "no token": ((200, {"expires_in": 5}), "without an access_token", BrokerError),
    "a token of two lines": (
        (200, {"access_token": f"{SECRET}\n", "expires_in": 5}),
        "is not one line",
        BrokerError,
    ),
    "a redirect": ((302, {}), "answers 302", BrokerError),
    "overload": ((503, {"error": "temporarily_unavailable"}), "answers 503", TransientBrokerError),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_an_issuer_refuses_is_told_without_secrets(issuer, tmp_path, case, caplog):
    """C50: and only what passes is tried again."""
    issuer.answer, said, kind = REFUSED[case]
    config = config_of(issuer.parameters(f"file:{issuer.credentials(tmp_path)}"))
    with caplog.at_level(logging.DEBUG), pytest.raises(BrokerError, match=said) as caught:
        config.login()
    assert type(caught.value) is kind
    assert SECRET not in f"{caught.value!r} {caught.value} {caught.value.hint} {caplog.text}"


def test_wrong_credentials_are_refused_and_named(issuer, tmp_path):
    config = config_of(issuer.parameters(f"file:{issuer.credentials(tmp_path, 'another secret')}"))
    with pytest.raises(BrokerError, match="answers 401: access_denied") as caught:
        config.login()
    assert "another secret" not in str(caught.value)


def test_an_issuer_that_is_away_or_not_trusted_is_an_error(issuer, tmp_path):
    key = f"file:{issuer.credentials(tmp_path)}"
    nobody = issuer.parameters(key).replace(issuer.url, f"https://127.0.0.1:{free_port()}")
    with pytest.raises(TransientBrokerError, match="does not answer: Connection refused"):
        config_of(nobody).login()
    with pytest.raises(BrokerError, match="no TLS connection") as caught:
        config_of(issuer.parameters(key).replace(issuer.trust_certs_file, "")).login()
    assert not isinstance(caught.value, TransientBrokerError)
    assert issuer.asked == []


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"client_id": "a"}', '{"client_id": 1, "client_secret": 2}', "[" * 10**5]
)
def test_credentials_that_are_none_are_not_sent(issuer, tmp_path, text):
    (file := tmp_path / "key.json").write_text(text)
    for url in (f"file:{file}", f"data:,{text}", "data:;base64,%%%", f"file:{tmp_path / 'none'}"):
        with pytest.raises(BrokerError, match=r"does not have both client_id|cannot be read"):
            config_of(issuer.parameters(url)).login()
    assert issuer.asked == []
