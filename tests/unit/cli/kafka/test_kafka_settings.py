"""Settings of Kafka's clients from a file, the environment and the command line; secrets never from the last."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from lithify.cli.kafka.settings import kafka_settings
from lithify.errors import RefusedError
from lithify.kafka_client.properties import LARGEST_FILE_BYTES, read_properties

PROPERTIES = r"""
# as every user of Kafka has one
bootstrap.servers = broker:9093
security.protocol:SASL_SSL
sasl.mechanism PLAIN
sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \
    username="alice" \
    password="pa=ss\\word";
! PEM in one line
ssl.truststore.certificates=-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----
client.id=caf\u00e9
empty=
"""


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "client.properties"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_a_file_as_kafka_s_own_clients_read_it(tmp_path: Path) -> None:
    assert read_properties(written(tmp_path, PROPERTIES)) == {
        "bootstrap.servers": "broker:9093",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule required "
        'username="alice" password="pa=ss\\word";',
        "ssl.truststore.certificates": "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----",
        "client.id": "café",
        "empty": "",
    }


def test_what_is_given_later_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD", "from the environment")
    file = written(tmp_path, "bootstrap.servers=a:1\nclient.id=x\nsasl.password=${env:KAFKA_PASSWORD}\n")
    flags = ("b:2", file, {"client.id": "y", "ssl.key.password": "${env:KAFKA_PASSWORD}"})
    assert kafka_settings(*flags) == {
        "bootstrap.servers": "b:2",
        "client.id": "y",
        "sasl.password": "from the environment",
        "ssl.key.password": "from the environment",
    }
    assert kafka_settings(None, file, {})["bootstrap.servers"] == "a:1"


@pytest.mark.parametrize(
    "name", ["sasl.password", "ssl.key.password", "sasl.jaas.config", "ssl.keystore.key", "ssl.key.pem"]
)
@pytest.mark.parametrize("value", ["hunter2", "hunter2${env:HOME}", ""])
def test_a_secret_on_the_command_line_is_refused_and_not_shown(name: str, value: str) -> None:
    with pytest.raises(RefusedError, match="--kafka-conf-file FILE, or name a variable") as refused:
        kafka_settings("b:2", None, {name: value})
    assert "hunter2" not in str(refused.value)


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match=r"sasl\.password: there is no environment variable NOT_THERE"):
        kafka_settings("b:2", None, {"sasl.password": "${env:NOT_THERE}"})
    for content in (b"a=\xff", b"#" * (LARGEST_FILE_BYTES + 1)):
        with pytest.raises(RefusedError, match=r"client\.properties"):
            read_properties(written(tmp_path, content))
    with pytest.raises(click.UsageError, match="no --bootstrap-servers"):
        kafka_settings(None, written(tmp_path, "client.id=x"), {})
