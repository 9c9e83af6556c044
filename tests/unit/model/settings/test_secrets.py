"""Which settings are secrets, and that no text keeps one."""

from __future__ import annotations

import pytest

from lithify.model.settings.secrets import hidden, is_secret

LOGIN = 'x.PlainLoginModule required\n  username="bob" password="pa ss" clientSecret=\'s3cr3t\' other=word;'


@pytest.mark.parametrize(
    "name",
    [
        "sasl.password",
        "sasl.jaas.config",
        "ssl.key.password",
        "ssl.keystore.password",
        "ssl.truststore.password",
        "ssl.keystore.key",
        "ssl.key.pem",
        "sasl.oauthbearer.config",
        "sasl.oauthbearer.client.secret",
        "sasl.oauthbearer.client.credentials.client.secret",
        "sasl.oauthbearer.assertion.private.key.passphrase",
        "sasl.oauthbearer.assertion.private.key.pem",
        "listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config",
    ],
)
def test_secrets(name: str) -> None:
    assert is_secret(name)


@pytest.mark.parametrize(
    "name",
    [
        "bootstrap.servers",
        "sasl.username",
        "sasl.mechanism",
        "ssl.key.location",
        "ssl.keystore.location",
        "ssl.keystore.certificate.chain",
        "ssl.truststore.certificates",
        "sasl.oauthbearer.token.endpoint.url",
        "sasl.oauthbearer.assertion.private.key.file",
        "key.serializer",
    ],
)
def test_no_secrets(name: str) -> None:
    assert not is_secret(name)


def test_a_text_keeps_no_secret() -> None:
    settings = {"sasl.jaas.config": LOGIN, "sasl.password": "hunter2", "ssl.key.password": "hunter", "client.id": "me"}
    text = f"bob said hunter2, hunter and 'pa ss' to me, s3cr3t; of {LOGIN} and {' '.join(LOGIN.split())}: word"
    assert hidden(text, settings) == "bob said ***, *** and '***' to me, ***; of *** and ***: word"
    assert hidden("nothing", {"sasl.password": ""}) == "nothing"
