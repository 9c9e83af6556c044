"""One language for the settings of Kafka's clients: Java's names, translated for librdkafka, and back."""

from __future__ import annotations

import subprocess
from pathlib import Path

import confluent_kafka
import pytest

from lithify.errors import InvalidSettingError
from lithify.kafka_client.dialects import for_java, for_librdkafka
from lithify.kafka_client.names import ALIASES, JAVA, LIBRDKAFKA, RENAMED, check_names, without_unknown
from support.kafka.secured import keytool

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
PASSWORD = 'pa"ss\\word;='
JAAS = f'{PLAIN} required\n username="alice" password="pa\\"ss\\\\word;=";'
SASL = {"bootstrap.servers": "a:1", "security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}
USER = {"sasl.username": "alice", "sasl.password": PASSWORD}
BODY = "A" * 100


def test_a_login_of_java_is_user_and_password_of_librdkafka_and_back() -> None:
    assert for_librdkafka({**SASL, "sasl.jaas.config": JAAS}) == {**SASL, **USER}
    java = for_java({**SASL, **USER})
    assert set(java) == {*SASL, "sasl.jaas.config"}
    assert for_librdkafka(java) == {**SASL, **USER}
    scram = for_java({**SASL, "sasl.mechanisms": "SCRAM-SHA-512", "sasl.mechanism": "SCRAM-SHA-512", **USER})
    assert "scram.ScramLoginModule required" in scram["sasl.jaas.config"]


def test_a_login_with_tokens() -> None:
    login = 'x.OAuthBearerLoginModule required clientId="c" clientSecret=\'s\' scope=all extension_cluster="lkc-1";'
    url = {"sasl.oauthbearer.token.endpoint.url": "https://idp/token"}
    found = for_librdkafka({**SASL, "sasl.mechanism": "OAUTHBEARER", "sasl.jaas.config": login, **url})
    assert (
        found.items()
        >= {
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.client.id": "c",
            "sasl.oauthbearer.client.secret": "s",
            "sasl.oauthbearer.scope": "all",
            "sasl.oauthbearer.extensions": "cluster=lkc-1",
            **url,
        }.items()
    )
    with pytest.raises(InvalidSettingError, match="does not support the login module IAMLoginModule"):
        for_librdkafka({**SASL, "sasl.jaas.config": "software.amazon.msk.auth.iam.IAMLoginModule required;"})


@pytest.mark.parametrize(
    "login", ["alice:hunter2", f'{PLAIN} required password="hunter2', f"{PLAIN} required hunter2;"]
)
def test_a_login_that_is_none_is_refused_and_not_shown(login: str) -> None:
    with pytest.raises(InvalidSettingError, match=r"sasl\.jaas\.config is not a login") as refused:
        for_librdkafka({**SASL, "sasl.jaas.config": login})
    assert "hunter2" not in str(refused.value)


def test_pem_in_the_settings_and_in_files(tmp_path: Path) -> None:
    pem = f"-----BEGIN CERTIFICATE----- {BODY} -----END CERTIFICATE-----"
    in_lines = f"-----BEGIN CERTIFICATE-----\n{BODY[:64]}\n{BODY[64:]}\n-----END CERTIFICATE-----\n"
    (tmp_path / "ca.pem").write_text(in_lines)
    (tmp_path / "client.pem").write_text(in_lines)
    trust, keys = str(tmp_path / "ca.pem"), str(tmp_path / "client.pem")
    inline = {
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": pem,
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": pem,
        "ssl.keystore.key": pem.replace("CERTIFICATE", "PRIVATE KEY"),
    }
    assert for_librdkafka(inline) == {
        "ssl.ca.pem": in_lines,
        "ssl.certificate.pem": in_lines,
        "ssl.key.pem": in_lines.replace("CERTIFICATE", "PRIVATE KEY"),
    }
    assert for_java(inline) == inline
    assert for_java(for_librdkafka(inline)).keys() == inline.keys()
    files = {"ssl.truststore.type": "PEM", "ssl.truststore.location": trust}
    both = {**files, "ssl.keystore.type": "pem", "ssl.keystore.location": keys, "ssl.key.password": "p"}
    assert for_librdkafka(both) == {
        "ssl.ca.location": trust,
        "ssl.certificate.location": keys,
        "ssl.key.location": keys,
        "ssl.key.password": "p",
    }
    assert for_java({"ssl.ca.location": trust}) == files
    with pytest.raises(InvalidSettingError, match=r"ca\.pem is a PEM file \(add ssl\.truststore\.type=PEM\)"):
        for_java({"ssl.truststore.location": trust})


@pytest.mark.long
def test_stores_that_librdkafka_cannot_read_are_named_with_the_command_that_converts_them(tmp_path: Path) -> None:
    key = f"{keytool()} -genkeypair -keyalg RSA -alias a -dname CN=a -storepass secret -keypass secret"
    for kind in ("JKS", "PKCS12"):
        subprocess.run(
            [*key.split(), "-keystore", kind, "-storetype", kind], cwd=tmp_path, check=True, capture_output=True
        )
    jks, p12 = str(tmp_path / "JKS"), str(tmp_path / "PKCS12")
    of_keys = {"ssl.keystore.location": p12, "ssl.keystore.password": "secret"}
    assert for_librdkafka(of_keys) == of_keys, "PKCS#12 it can read"
    for store in (jks, p12):
        with pytest.raises(InvalidSettingError, match=rf"keytool -list -rfc -keystore {store} > ca[.]pem"):
            for_librdkafka({"ssl.truststore.location": store})
        assert for_java({"ssl.truststore.location": store}) == {"ssl.truststore.location": store}
    with pytest.raises(InvalidSettingError, match=r"keytool -importkeystore .* -deststoretype PKCS12"):
        for_librdkafka({"ssl.keystore.location": jks})
    for translate in (for_java, for_librdkafka):
        with pytest.raises(InvalidSettingError, match=r"ssl\.truststore\.location: \S+ cannot be read"):
            translate({"ssl.truststore.location": str(tmp_path / "gone")})


def test_settings_of_other_names_and_of_one_client_alone() -> None:
    java = {"request.timeout.ms": "1", "fetch.max.wait.ms": "2", "max.poll.records": "3", "acks": "all"}
    assert for_java(java) == java
    assert for_librdkafka({**java, "default.api.timeout.ms": "3"}) == {
        "socket.timeout.ms": "1", "fetch.wait.max.ms": "2", "max.poll.records": "3", "acks": "all",
    }  # fmt: skip
    assert for_java({"metadata.broker.list": "a:1", "socket.timeout.ms": 1, "isolation.level": "read_committed"}) == {
        "bootstrap.servers": "a:1",
        "request.timeout.ms": "1",
    }
    assert for_librdkafka({"ssl.endpoint.identification.algorithm": ""}) == {
        "ssl.endpoint.identification.algorithm": "none"
    }
    for name, hint in (("ssl.key.location", "ssl.keystore.type=PEM"), ("queued.min.messages", "")):
        assert for_librdkafka({name: "1"}) == {name: "1"}
        with pytest.raises(InvalidSettingError, match=rf"{name} is a setting of librdkafka, but .*{hint}"):
            for_java({name: "1"})


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("sasl.mechanizm", "sasl.mechanism"),
        ("bootstrap.server", "bootstrap.servers"),
        ("security.protcol", "security.protocol"),
        ("ssl.truststore.file", "ssl.truststore"),
        ("fetch.max.wait", "fetch.max.wait.ms"),
    ],
)
def test_a_name_that_is_mistyped_is_named_with_the_nearest(name: str, meant: str) -> None:
    for translate in (for_java, for_librdkafka):
        with pytest.raises(
            InvalidSettingError, match=f"{name} is not a setting of a Kafka client .did you mean {meant}"
        ):
            translate({"bootstrap.servers": "a:1", name: "x"})


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (
            {"security.protocol": "SASL_TLS"},
            r"security\.protocol=SASL_TLS is not a protocol of Kafka's clients .did you mean SASL_SSL",
        ),
        ({"security.protocol": "42"}, "use one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
        ({"sasl.jaas.config": 'a.PlainLoginModule required username="u" password="p"'}, "does not end in a semicolon"),
    ],
)
def test_a_value_that_no_client_takes_is_refused_before_one_starts(wrong: dict[str, str], said: str) -> None:
    for translate in (for_java, for_librdkafka):
        with pytest.raises(InvalidSettingError, match=said) as refused:
            translate({"bootstrap.servers": "a:1", **wrong})
        assert "password=" not in str(refused.value).partition("(")[0]
    assert for_java({"security.protocol": "sasl_ssl"}) == {"security.protocol": "sasl_ssl"}


def test_a_file_that_other_clients_share_is_taken_and_a_flag_is_not() -> None:
    shared = {"schema.registry.url": "http://r", "basic.auth.credentials.source": "USER_INFO"}
    assert check_names(shared) == tuple(shared)
    assert without_unknown({"acks": "1", **shared}) == {"acks": "1"}
    assert for_java(shared) == shared, "plug-ins have settings of their own"
    with pytest.raises(InvalidSettingError, match=r"schema\.registry\.url is not a setting"):
        check_names(shared, strict=True)


def test_the_names_are_those_of_the_client_that_is_installed() -> None:
    """Each name that is passed on is one that it knows: it refuses other names before it looks at values."""
    for name in LIBRDKAFKA | {*RENAMED.values()}:
        try:
            confluent_kafka.Producer({name: "\0"})
        except (confluent_kafka.KafkaException, ValueError, TypeError) as error:
            assert "No such configuration property" not in str(error), name
    assert {*ALIASES.values()} <= JAVA


@pytest.mark.parametrize("translate", [for_java, for_librdkafka])
@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("isolation.level", "read_uncommitted", "only committed records are read"),
        ("auto.offset.reset", "earliest", "a copy continues at its end"),
        ("enable.auto.commit", True, "positions are stored together with"),
        ("value.deserializer", "org.example.Avro", "keys and values are used unchanged"),
    ],
)
def test_a_setting_that_only_lithify_sets_is_refused_by_name(translate, name, value, why) -> None:
    with pytest.raises(InvalidSettingError, match=rf"^{name}={value} cannot be set here: {why}"):
        translate({"bootstrap.servers": "a:1", name: value})


def test_the_value_that_lithify_sets_may_be_given() -> None:
    same = {"isolation.level": "read_committed", "enable.auto.commit": False, "auto.offset.reset": "none"}
    assert for_java(same) == for_librdkafka(same) == {}


@pytest.mark.parametrize("translate", [for_java, for_librdkafka])
@pytest.mark.parametrize("text", ["\udcff", "a\0b", "\ud800:9092"])
def test_what_is_no_text_is_no_setting(translate, text):
    """librdkafka's binding raised a SystemError."""
    for conf in ({"bootstrap.servers": text}, {"bootstrap.servers": "a:1", text: "1"}, {"client.id": text}):
        with pytest.raises(
            InvalidSettingError, match=r"has a NUL or half a character|not a protocol of Kafka's clients"
        ):
            translate({"bootstrap.servers": "a:1", **conf})
