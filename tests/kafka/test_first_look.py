"""Every door of a real broker, and every way not to get in: each is named, before Spark starts."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

import lithify
from lithify.errors import BrokerError, UnknownSourceError
from lithify.kafka_client.first_look import look_first
from lithify.reports.ingest import IngestNote
from support.kafka.broker import read_all
from support.kafka.ingest import ingest_command
from support.kafka.secured import SecuredBroker
from support.processes.programs import PROGRAM

Conf = Mapping[str, str]
NOW = 1_700_000_000_000
PLAIN_TO_TLS = "it speaks TLS, and security.protocol is"
TLS_TO_PLAIN = "it speaks plain text, and security.protocol is"


def at(address: str, **conf: str) -> Conf:
    return {"bootstrap.servers": address, **{name.replace("_", "."): value for name, value in conf.items()}}


WRONG: Mapping[str, tuple[str, Callable[[SecuredBroker], Conf]]] = {
    "no server": ("Connection refused", lambda _: at("127.0.0.1:1")),
    "no host": ("no such host", lambda _: at("no-such-host.invalid:9092")),
    "plain to TLS": (f"{PLAIN_TO_TLS} PLAINTEXT .set security.protocol to SSL,", lambda b: at(b.tls)),
    "TLS to plain": (
        f"{TLS_TO_PLAIN} SSL .set security.protocol to PLAINTEXT,",
        lambda b: at(b.broker.address, security_protocol="SSL") | b.trust,
    ),
    "password to TLS": (
        f"{PLAIN_TO_TLS} SASL_PLAINTEXT .set security.protocol to SASL_SSL,",
        lambda b: b.of_user("alice") | at(b.both),
    ),
    "TLS to a password": (f"{TLS_TO_PLAIN} SASL_SSL", lambda b: b.of_user_on_tls("alice") | at(b.password)),
    "no trust": ("its certificate is not trusted", lambda b: at(b.tls, security_protocol="SSL")),
    "no login": ("it closes connections without a login", lambda b: at(b.password)),
    "a login for none": ("it has no login by PLAIN", lambda b: b.of_user("alice") | at(b.broker.address)),
    "another mechanism": (
        "no login by SCRAM-SHA-256",
        lambda b: b.of_user("alice") | {"sasl.mechanism": "SCRAM-SHA-256"},
    ),
    "a wrong password": ("refuses this client its login", lambda b: b.of_user("alice", "wrong")),
    "no rights": (r"refuses this client access to topic .* \(give alice the right", lambda b: b.of_user("alice")),
    "rights to describe only": (r"refuses this client access to topic .* \(give bob", lambda b: b.of_user("bob")),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_named(secured: SecuredBroker, what: str) -> None:
    expected, conf = WRONG[what]
    topic = secured.broker.make_topic(1)
    secured.allow("bob", "DESCRIBE", "TOPIC", topic)
    with pytest.raises(BrokerError, match=expected) as refused:
        look(conf(secured), topic)
    assert "wrong" not in str(refused.value)


def look(conf: Conf, *topics: str) -> list[str]:
    notes: list[IngestNote] = []
    look_first(conf, topics, notes.append, lambda: False)
    return [note.event for note in notes]


def test_a_topic_that_is_not_there_is_left_to_the_ingest_if_another_is(secured: SecuredBroker) -> None:
    topic = secured.broker.make_topic(1)
    plain = at(secured.broker.address)
    with pytest.raises(UnknownSourceError, match="has no topic nowhere"):
        look(plain, "nowhere")
    assert look(plain, "nowhere", topic) == look(plain, topic) == look(plain) == ["asking"]
    for right in ("DESCRIBE", "READ"):
        secured.allow("alice", right, "TOPIC", topic)
    assert look(secured.of_user("alice"), topic) == ["asking"]
    assert look(secured.of_user_on_tls("alice"), topic) == ["asking"]


def test_what_only_java_s_client_can_do_is_left_to_spark(secured: SecuredBroker) -> None:
    jks = at(secured.tls, security_protocol="SSL", ssl_truststore_location=str(secured.folder / "trust.jks"))
    assert look(jks, "nowhere") == ["not_asked"]


def test_a_program_says_it_before_spark_starts(tmp_path: Path, secured: SecuredBroker) -> None:
    topic = secured.broker.make_topic(1)
    ended = ingest(tmp_path, secured.of_user("alice", "hunter2"), topic)
    assert ended.returncode == BrokerError.exit_code
    assert "refuses this client its login" in ended.stderr
    assert "starting Spark" not in ended.stderr and "hunter2" not in ended.stderr
    assert len(ended.stderr.strip().splitlines()) == 2, "that it asks, and the error"


@pytest.mark.parametrize("store", ["PEM in the file", "PEM", "JKS"])
def test_one_file_of_settings_for_ingest_and_publish(tmp_path: Path, secured: SecuredBroker, store: str) -> None:
    """As Java's clients take it: a login, and the trust store in continued lines or in files."""
    topic = secured.broker.make_topic(1, cleanup_policy="compact")
    producer = secured.broker.producer()
    producer.produce(topic, key=b"k", value=b"v", timestamp=NOW)
    producer.flush()
    pem = (secured.folder / "cert.pem").read_text().strip().replace("\n", " \\\n    ")
    trust = {
        "PEM in the file": {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": pem},
        "PEM": secured.trust,
        "JKS": {
            "ssl.truststore.location": str(secured.folder / "trust.jks"),
            "ssl.truststore.password": "secret",
        },
    }[store]
    login = {name: value for name, value in secured.of_user_on_tls("admin").items() if "truststore" not in name}
    conf = login | trust | {"schema.registry.url": "http://registry"}
    ended = ingest(tmp_path, conf, topic)
    assert ended.returncode == 0, ended.stderr
    copy = lithify.open(str(tmp_path / "lake")).topic(topic)
    assert [record.value for record in copy.reader(0)] == [b"v"]
    command = ["kafka", "publish", topic, "--to", f"{topic}.latest"]
    published = run(tmp_path, conf, *command)
    if store == "JKS":
        assert published.returncode == 2
        assert "keytool -list -rfc -keystore" in published.stderr
    else:
        assert published.returncode == 0, published.stderr
        assert "not used, as no Kafka client has them: schema.registry.url" in published.stderr
        assert [m.value() for m in read_all(secured.broker, f"{topic}.latest")] == [b"v"]


def ingest(folder: Path, conf: Conf, topic: str) -> subprocess.CompletedProcess[str]:
    return run(folder, conf, *ingest_command(None, "--topic", topic))


def run(folder: Path, conf: Conf, *command: str) -> subprocess.CompletedProcess[str]:
    """The program, with the settings in a file of Java's."""
    file = folder / "client.properties"
    escaped = {name: value if "\n" in value else value.replace("\\", "\\\\") for name, value in conf.items()}
    file.write_text("".join(f"{name}={value}\n" for name, value in escaped.items()))
    words = [*PROGRAM, "--warehouse", str(folder / "lake"), *command, "--kafka-conf-file", str(file)]
    return subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
