"""Every door of a real broker, and every way not to get in: each is named, before Spark starts."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import lithify
from lithify.cli.kafka.settings import kafka_settings, settings_used
from lithify.errors import BrokerError, InvalidSettingError, UnknownSourceError
from lithify.kafka import publish
from lithify.kafka_client.first_look import look_first
from lithify.reports.ingest import IngestNote
from support.kafka.broker import read_all
from support.kafka.ingest import ingest_command
from support.kafka.secured import SecuredBroker
from support.processes.in_process import Program
from support.processes.programs import PROGRAM
from support.servers.tcp_proxy import wait_until

Conf = Mapping[str, str]
NOW = 1_700_000_000_000
PLAIN_TO_TLS = "it uses TLS, but security.protocol is"
TLS_TO_PLAIN = "it uses plain text, but security.protocol is"


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
    "a login for none": ("it does not support login by PLAIN", lambda b: b.of_user("alice") | at(b.broker.address)),
    "another mechanism": (
        "not support login by SCRAM-SHA-256",
        lambda b: b.of_user("alice") | {"sasl.mechanism": "SCRAM-SHA-256"},
    ),
    "a wrong password": ("refuses this client its login", lambda b: b.of_user("alice", "wrong")),
    "no rights": (r"refuses this client access to topic .* \(give alice the right", lambda b: b.of_user("alice")),
    "rights to describe only": (r"refuses this client access to topic .* \(give bob", lambda b: b.of_user("bob")),
}


@pytest.fixture(scope="module")
def looks(secured: SecuredBroker) -> Iterator[Mapping[str, Future[list[str]]]]:
    """One of every kind, all at once: half of them wait for their full time."""
    topic = secured.broker.make_topic(1)
    secured.allow("bob", "DESCRIBE", "TOPIC", topic)
    with ThreadPoolExecutor(len(WRONG)) as pool:
        yield {what: pool.submit(look, conf(secured), topic) for what, (_, conf) in WRONG.items()}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_named(looks: Mapping[str, Future[list[str]]], what: str) -> None:
    expected, _ = WRONG[what]
    with pytest.raises(BrokerError, match=expected) as refused:
        looks[what].result()
    assert "wrong" not in str(refused.value)


def look(conf: Conf, *topics: str) -> list[str]:
    notes: list[IngestNote] = []
    look_first(conf, topics, lambda kind, text: notes.append(IngestNote(kind, text)), lambda: False)
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


def test_the_topic_that_a_mistyped_name_may_be_is_named(secured: SecuredBroker) -> None:
    topic = secured.broker.make_topic(1, "prices")
    for mistyped, hint in {"pricse": f"did you mean {topic}?", "weather": "check the name and the cluster"}.items():
        with pytest.raises(UnknownSourceError, match=f"has no topic {mistyped}") as unknown:
            look(at(secured.broker.address), mistyped)
        assert unknown.value.hint == hint


def test_what_only_java_s_client_can_do_is_left_to_spark(secured: SecuredBroker) -> None:
    jks = at(secured.tls, security_protocol="SSL", ssl_truststore_location=str(secured.folder / "trust.jks"))
    assert look(jks, "nowhere") == ["not_asked"]


def test_a_program_says_it_before_spark_starts(tmp_path: Path, secured: SecuredBroker) -> None:
    topic = secured.broker.make_topic(1)
    command = words(tmp_path, secured.of_user("alice", "hunter2"), *ingest_command(None, "--topic", topic))
    ended = subprocess.run([*PROGRAM, *command], capture_output=True, text=True, timeout=300, check=False)
    assert ended.returncode == BrokerError.exit_code
    assert "refuses this client its login" in ended.stderr
    assert "starting Spark" not in ended.stderr and "hunter2" not in ended.stderr
    assert len(ended.stderr.strip().splitlines()) == 2, "that it asks, and the error"


def test_one_file_of_settings_for_ingest_and_publish(
    tmp_path: Path, secured: SecuredBroker, session: SparkSession
) -> None:
    """As Java's clients take it: a login, and the trust store in continued lines."""
    pem = (secured.folder / "cert.pem").read_text().strip().replace("\n", " \\\n    ")
    conf = of_admin(secured, {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": pem})
    topic, program = a_topic_of_one(secured), Program(tmp_path / "lake")
    program(*words(tmp_path, conf, *ingest_command(None, "--topic", topic)))
    copy = lithify.open(str(tmp_path / "lake")).topic(topic)
    assert [record.value for record in copy.reader(0)] == [b"v"]
    published = program(*words(tmp_path, conf, "kafka", "publish", topic, "--to", f"{topic}.latest"))
    assert "not used, as Kafka's clients do not support them: schema.registry.url" in published.err
    check_published(secured, f"{topic}.latest")


@pytest.mark.parametrize("store", ["PEM", "JKS"])
def test_a_trust_store_in_a_file(tmp_path: Path, secured: SecuredBroker, session: SparkSession, store: str) -> None:
    """Java's own kind is for ingest alone."""
    jks = {"ssl.truststore.location": str(secured.folder / "trust.jks"), "ssl.truststore.password": "secret"}
    conf = of_admin(secured, {"PEM": secured.trust, "JKS": jks}[store])
    found = kafka_settings(None, settings_file(tmp_path, conf), {})
    topic, lake = a_topic_of_one(secured), lithify.open(str(tmp_path / "lake"))
    (report,) = lake.ingest(found, [topic], spark=session)
    assert (report.error, report.records) == (None, 1)
    if store == "JKS":
        with pytest.raises(InvalidSettingError) as refused:
            publish(lake.topic(topic), settings_used(found), f"{topic}.latest")
        assert "keytool -list -rfc -keystore" in str(refused.value.hint)
    else:
        publish(lake.topic(topic), settings_used(found), f"{topic}.latest")
        check_published(secured, f"{topic}.latest")


def check_published(secured: SecuredBroker, topic: str) -> None:
    """Before long: a broker writes the marker of a transaction after it has answered that it is committed."""
    wait_until(lambda: [m.value() for m in read_all(secured.broker, topic)] == [b"v"], f"{topic} has no record")


def of_admin(secured: SecuredBroker, trust: Conf) -> Conf:
    """The settings of one who may do all, with `trust`, and one that is not Kafka's."""
    login = {name: value for name, value in secured.of_user_on_tls("admin").items() if "truststore" not in name}
    return login | dict(trust) | {"schema.registry.url": "http://registry"}


def a_topic_of_one(secured: SecuredBroker) -> str:
    topic = secured.broker.make_topic(1, cleanup_policy="compact")
    producer = secured.broker.producer()
    producer.produce(topic, key=b"k", value=b"v", timestamp=NOW)
    producer.flush()
    return topic


def words(folder: Path, conf: Conf, *command: str) -> list[str]:
    """Arguments of the program, with the settings in a file of Java's."""
    return ["--warehouse", str(folder / "lake"), *command, "--kafka-conf-file", str(settings_file(folder, conf))]


def settings_file(folder: Path, conf: Conf) -> Path:
    file = folder / "client.properties"
    escaped = {name: value if "\n" in value else value.replace("\\", "\\\\") for name, value in conf.items()}
    file.write_text("".join(f"{name}={value}\n" for name, value in escaped.items()))
    return file
