"""Clients that nobody here wrote log in at a gateway, over TLS: by PLAIN and by SCRAM."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

import lithify
from lithify import Record
from lithify.api.lake import Lake
from lithify.reports.gateway.tokens import NewToken
from support.kafka.listening import listening
from support.kafka.readers import Row, by_aiokafka, by_confluent, by_java, by_kafka_python
from support.servers.certificates import a_certificate

NAME, ROW = "shop.orders", (0, 0, b"k", b"v", (), 5)
Reads = Callable[[str, str, str], list[Row]]
"""By a mechanism, as a user with a password."""


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    lake = lithify.open(str(tmp_path_factory.mktemp("logins") / "lake"))
    lake.create_topic("shop/orders", 1).append([Record(b"k", b"v", timestamp=5)])
    return lake


@pytest.fixture(scope="module")
def token(lake: Lake) -> NewToken:
    return lake.tokens().create("alice", ["consume:shop"])


@pytest.fixture(scope="module")
def gateway(lake: Lake, token: NewToken, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """Its address, and its certificate."""
    files = a_certificate(tmp_path_factory.mktemp("tls"), "gateway", datetime.now(UTC))
    with listening(lake, [], files, needs_token=True) as listener:
        yield listener.address, files.certificate


@pytest.fixture(params=["librdkafka", "aiokafka", "kafka-python", "Java"])
def reads(gateway: tuple[str, Path], request: pytest.FixtureRequest) -> Reads:
    (address, certificate), ends = gateway, {0: 1}

    def by(mechanism: str, user: str, password: str) -> list[Row]:
        login = {"sasl.mechanism": mechanism, "security.protocol": "SASL_SSL"}
        python = {
            "sasl_mechanism": mechanism,
            "security_protocol": "SASL_SSL",
            "sasl_plain_username": user,
            "sasl_plain_password": password,
        }
        match request.param:
            case "librdkafka":
                of_user = {"sasl.username": user, "sasl.password": password, "ssl.ca.location": str(certificate)}
                return by_confluent(address, NAME, **login, **of_user)
            case "aiokafka":
                context = ssl.create_default_context(cafile=str(certificate))
                return by_aiokafka(address, NAME, ends, ssl_context=context, **python)
            case "kafka-python":
                return by_kafka_python(address, NAME, ends, ssl_cafile=str(certificate), **python)
            case _:
                module = "scram.Scram" if mechanism.startswith("SCRAM") else "plain.Plain"
                trust = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(certificate)}
                jaas = f"org.apache.kafka.common.security.{module}LoginModule required"
                jaas += f' username="{user}" password="{password}";'
                jvm = request.getfixturevalue("kafka_jvm").jvm
                return by_java(jvm, address, NAME, ends, **login, **trust, **{"sasl.jaas.config": jaas})

    return by


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_client_with_a_token_reads(mechanism: str, reads: Reads, token: NewToken) -> None:
    assert reads(mechanism, token.id, token.token) == [ROW]


@pytest.mark.parametrize("reads", ["Java"], indirect=True)
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_a_wrong_password_is_refused(mechanism: str, reads: Reads, token: NewToken) -> None:
    refused = r"(?i)authentication|not a valid token|not the id of a token|unable to bootstrap"
    with pytest.raises(Exception, match=refused):
        reads(mechanism, token.id, f"{token.token[:-1]}{'01'[token.token.endswith('0')]}")
