"""Names of topics and of `client.conf`: what is understood, what is refused, and that no secret is shown."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import pytest

import lithify
from lithify.api.pulsar import client_config
from lithify.errors import BrokerError, InvalidNameError, InvalidSettingError
from lithify.pulsar.client import Admin, Cluster
from lithify.pulsar.client.broker_refusals import TransientBrokerError
from lithify.pulsar.client.config import CERTIFICATE, OAUTH2, PLUGINS, TOKEN, ClientConfig, conf_of
from lithify.pulsar.client.login.oauth2 import OAuth2
from lithify.pulsar.client.login.tls import Tls
from lithify.pulsar.client.names import TopicName
from lithify.pulsar_consumer import PulsarSnapshotConsumer
from support.servers.tcp_proxy import free_port

URL = "pulsar://broker:6650"
KEY_STORE = f"{PLUGINS}AuthenticationKeyStoreTls"
OAUTH2_PARAMS = '{"issuerUrl": "%s", "privateKey": "%s"}'


@pytest.mark.parametrize(
    ("name", "path", "partition"),
    [
        ("persistent://t/n/topic", "persistent/t/n/topic", -1),
        ("persistent://public/default/orders-partition-12", "persistent/public/default/orders-partition-12", 12),
        ("persistent://t/n/with%2Fslash and?more", "persistent/t/n/with%252Fslash%20and%3Fmore", -1),
        ("persistent://t-1/n.2/a:b=c", "persistent/t-1/n.2/a%3Ab%3Dc", -1),
        ("persistent://t/n/x-partition-007", "persistent/t/n/x-partition-007", -1),
    ],
)
def test_a_whole_name_is_taken(name, path, partition):
    topic = TopicName.parsed(name)
    assert (str(topic), topic.path, topic.partition) == (name, path, partition)


@pytest.mark.parametrize(
    "name",
    [
        "topic",
        "public/default/topic",
        "persistent://topic",
        "persistent://t/n",
        "persistent://t/n/",
        "persistent://t/cluster/n/topic",
        "non-persistent://t/n/topic",
        "kafka://t/n/topic",
        "persistent://t/n/ topic",
        "persistent://t/n/a\nb",
        "persistent://t/n/\x00",
        "persistent://t/n/\udcff",
        "persistent://t/n/..",
        "persistent://../n/a",
        "persistent://t/./a",
        "",
    ],
)
def test_other_names_are_refused(name):
    with pytest.raises(InvalidNameError):
        TopicName.parsed(name)


def test_a_partition_is_a_topic_of_its_own():
    assert str(TopicName.parsed("persistent://t/n/a").of_partition(3)) == "persistent://t/n/a-partition-3"


@pytest.mark.parametrize(
    ("url", "addresses"),
    [
        ("pulsar://a", [("a", 6650)]),
        ("pulsar+ssl://a", [("a", 6651)]),
        ("pulsar://a:1,b:2,c", [("a", 1), ("b", 2), ("c", 6650)]),
        ("pulsar://[::1]:7000/", [("::1", 7000)]),
    ],
)
def test_a_service_url_names_one_or_more_brokers(url, addresses):
    assert list(ClientConfig(url).addresses()) == addresses


@pytest.mark.parametrize(
    "url", ["", "broker:6650", "http://broker:8080", "pulsar://", "pulsar://a:b", "pulsar://a:99999"]
)
def test_other_service_urls_are_refused(url):
    with pytest.raises(InvalidSettingError):
        ClientConfig(url)


CONFS = {
    "nothing but the address": ({"brokerServiceUrl": URL}, ClientConfig(URL)),
    "all of TLS": (
        {
            "brokerServiceUrl": "pulsar+ssl://broker:6651",
            "webServiceUrl": "https://broker:8443",
            "tlsTrustCertsFilePath": "/ca.pem",
            "tlsCertificateFilePath": "/me.pem",
            "tlsKeyFilePath": "/me.key",
            "tlsAllowInsecureConnection": "true",
            "tlsEnableHostnameVerification": "TRUE",
        },
        ClientConfig(
            "pulsar+ssl://broker:6651", "https://broker:8443", Tls("/ca.pem", "/me.pem", "/me.key", True, True)
        ),
    ),
    "a certificate by the name that 0.2.0 read": (
        {"brokerServiceUrl": URL, "tlsCertFilePath": "/me.pem", "tlsKeyFilePath": "/me.key"},
        ClientConfig(URL, tls=Tls(certificate_file="/me.pem", key_file="/me.key")),
    ),
    "useTls": ({"brokerServiceUrl": URL, "useTls": "true"}, ClientConfig("pulsar+ssl://broker:6650")),
    "a token": (
        {"brokerServiceUrl": URL, "authPlugin": TOKEN, "authParams": "token:abc"},
        ClientConfig(URL, token="abc"),
    ),
    "a token alone": (
        {"brokerServiceUrl": URL, "authPlugin": TOKEN, "authParams": "abc"},
        ClientConfig(URL, token="abc"),
    ),
    "a token in JSON": (
        {"brokerServiceUrl": URL, "authPlugin": TOKEN, "authParams": '{"token": "abc"}'},
        ClientConfig(URL, token="abc"),
    ),
    "a token file": (
        {"brokerServiceUrl": URL, "authPlugin": TOKEN, "authParams": "file:///etc/a%20token"},
        ClientConfig(URL, token_file="/etc/a token"),
    ),
    "a token file without a scheme's slashes": (
        {"brokerServiceUrl": URL, "authPlugin": TOKEN, "authParams": "file:/etc/token?1#2"},
        ClientConfig(URL, token_file="/etc/token?1#2"),
    ),
    "OAuth 2.0": (
        {
            "brokerServiceUrl": URL,
            "authPlugin": OAUTH2,
            "authParams": '{"type": "client_credentials", "issuerUrl": "https://auth.example/", "audience": "urn:a:b", '
            '"privateKey": "file:///run/key.json", "scope": "x y", "connectTimeout": "PT10S"}',
        },
        ClientConfig(URL, oauth2=OAuth2("https://auth.example/", "file:///run/key.json", "urn:a:b", "x y")),
    ),
    "a certificate": (
        {"brokerServiceUrl": URL, "authPlugin": CERTIFICATE, "authParams": "tlsCertFile:/me.pem,tlsKeyFile:/me.key"},
        ClientConfig(URL, tls=Tls(certificate_file="/me.pem", key_file="/me.key")),
    ),
    "a certificate in JSON": (
        {
            "brokerServiceUrl": URL,
            "authPlugin": CERTIFICATE,
            "authParams": '{"tlsCertFile": "/me.pem", "tlsKeyFile": "/me.key"}',
        },
        ClientConfig(URL, tls=Tls(certificate_file="/me.pem", key_file="/me.key")),
    ),
}


@pytest.mark.parametrize("case", CONFS)
def test_pulsars_own_names_are_read(case):
    conf, config = CONFS[case]
    assert ClientConfig.of(conf=conf) == config


@pytest.mark.parametrize("urls", [("pulsar://me:geheim@h:6650",), ("pulsar://h:6650", "http://me:geheim@h:8080")])
def test_urls_with_a_password_are_refused_without_showing_it(urls):
    with pytest.raises(InvalidSettingError, match="contains a user or password") as refused:
        ClientConfig(*urls)
    assert "geheim" not in str(refused.value)


def test_urls_that_are_given_go_over_the_file():
    conf = {"brokerServiceUrl": URL, "webServiceUrl": "http://broker:8080"}
    given = ClientConfig.of("pulsar://other:1", "http://other:2", conf)
    assert (given.service_url, given.admin_url) == ("pulsar://other:1", "http://other:2")


@pytest.mark.parametrize(
    "conf",
    [
        {},
        {"brokerServiceUrl": URL, "authPlugin": "org.example.Mine", "authParams": "secret"},
        {"brokerServiceUrl": URL, "authPlugin": TOKEN},
        {"brokerServiceUrl": URL, "authPlugin": TOKEN, "authParams": "token:"},
        {"brokerServiceUrl": URL, "authPlugin": TOKEN, "authParams": "{secret"},
        {"brokerServiceUrl": URL, "authPlugin": TOKEN, "authParams": '{"secret":' * 100_000},
        {"brokerServiceUrl": URL, "authPlugin": TOKEN, "authParams": '{"token": null}'},
        {"brokerServiceUrl": URL, "authPlugin": TOKEN, "authParams": "file:"},
        {"brokerServiceUrl": URL, "authPlugin": TOKEN, "authParams": "file://[secret"},
        {"brokerServiceUrl": URL, "authPlugin": CERTIFICATE, "authParams": "secret"},
        {"brokerServiceUrl": URL, "authPlugin": OAUTH2, "authParams": "secret"},
        {"brokerServiceUrl": URL, "authPlugin": OAUTH2, "authParams": '{"issuerUrl": "https://a"}'},
        {"brokerServiceUrl": URL, "authPlugin": OAUTH2, "authParams": '{"privateKey": "data:,secret"}'},
        {"brokerServiceUrl": URL, "authPlugin": OAUTH2, "authParams": OAUTH2_PARAMS % ("http://a", "file:/a")},
        {
            "brokerServiceUrl": URL,
            "authPlugin": OAUTH2,
            "authParams": OAUTH2_PARAMS % ("https://me:secret@a", "file:/"),
        },
        {"brokerServiceUrl": URL, "authPlugin": OAUTH2, "authParams": OAUTH2_PARAMS % ("https://a", "secret")},
        {"brokerServiceUrl": URL, "authPlugin": OAUTH2, "authParams": '{"type": "secret"}'},
        {"brokerServiceUrl": URL, "authPlugin": OAUTH2, "authParams": '{"secret-1": "a", "se cret": "secret"}'},
        {"brokerServiceUrl": URL, "useKeyStoreTls": "true", "tlsTrustStorePassword": "secret"},
        {"brokerServiceUrl": URL, "useKeyStoreTls": "maybe"},
        {"brokerServiceUrl": URL, "proxyServiceUrl": "pulsar+ssl://me:secret@proxy:4443", "proxyProtocol": "SNI"},
        {"brokerServiceUrl": URL, "tlsAllowInsecureConnection": "secret maybe"[7:]},
        {"brokerServiceUrl": URL, "webServiceUrl": "broker:8080"},
        {"brokerServiceUrl": URL, "webServiceUrl": "http://"},
        {"brokerServiceUrl": URL, "webServiceUrl": "http://[::1"},
        {"brokerServiceUrl": URL, "webServiceUrl": "http://a:1,b:c"},
    ],
)
def test_what_cannot_be_meant_is_refused_without_its_secrets(conf):
    with pytest.raises(InvalidSettingError) as caught:
        ClientConfig.of(conf=conf)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("conf", "said"),
    [
        (
            {"tlsTrustStorePath": "/etc/t.jks"},
            "keytool -list -rfc -keystore /etc/t.jks > ca.pem; then set tlsTrustCerts",
        ),
        ({"tlsKeyStorePath": "/k.p12"}, "openssl pkcs12 -in client.p12 -nokeys -out client.pem"),
        (
            {"authPlugin": KEY_STORE, "authParams": "keyStoreType:JKS,keyStorePath:/k.jks,keyStorePassword:secret"},
            "keytool -importkeystore -srckeystore /k.jks -destkeystore client.p12",
        ),
        ({"authPlugin": KEY_STORE, "authParams": '{"keyStorePath": "/k.jks"}'}, "-srckeystore /k.jks -dest"),
        ({"authPlugin": KEY_STORE, "authParams": "env:STORES"}, "-srckeystore STORE -dest"),
        ({"useKeyStoreTls": "true"}, "keytool -list -rfc -keystore STORE > ca.pem"),
        ({"proxyServiceUrl": "pulsar+ssl://p:1"}, "give its address as brokerServiceUrl"),
    ],
)
def test_what_would_be_ignored_is_refused_with_what_to_do(conf, said):
    """A connection without the stores or the proxy of the file is another one."""
    with pytest.raises(InvalidSettingError) as caught:
        ClientConfig.of(URL, conf=conf)
    assert said in str(caught.value.hint)
    assert "secret" not in str(caught.value.hint)
    unused = {"useKeyStoreTls": "false", "tlsTrustStoreType": "JKS", "tlsTrustStorePath": ""}  # as Pulsar ships it
    assert ClientConfig.of(URL, conf=unused) == ClientConfig(URL)


def test_a_client_conf_has_comments_blanks_and_values_with_equal_signs(tmp_path):
    file = tmp_path / "client.conf"
    file.write_text(
        "# a comment\n\n  ! another\nbrokerServiceUrl = pulsar://a:1\nauthParams=token:a=b==\nauthPlugin=\n"
    )
    assert conf_of(file) == {"brokerServiceUrl": "pulsar://a:1", "authParams": "token:a=b==", "authPlugin": ""}


def test_a_client_conf_that_cannot_be_read_is_named(tmp_path):
    (tmp_path / "latin").write_bytes(b"a=\xff")
    for file in (tmp_path / "none", tmp_path / "latin"):
        with pytest.raises(InvalidSettingError, match=str(file)):
            conf_of(file)


@pytest.mark.parametrize("line", ["authParams: secret", "authParams secret", "authParams", "=secret", "a=secret\\"])
def test_a_line_that_only_java_understands_is_named_by_its_number(tmp_path, line):
    """Left out, it would be a client without authentication."""
    (file := tmp_path / "client.conf").write_text(f"\ufeffbrokerServiceUrl={URL}\n#\n{line}\n")
    with pytest.raises(InvalidSettingError, match=r"client\.conf: line 3") as caught:
        conf_of(file)
    assert "secret" not in str(caught.value)
    file.write_text(f"\ufeffbrokerServiceUrl={URL}\n")
    assert conf_of(file) == {"brokerServiceUrl": URL}


def test_a_token_is_not_shown_and_crosses_process_borders():
    config = ClientConfig(URL, token="secret")
    assert "secret" not in repr(config)
    assert pickle.loads(pickle.dumps(config)).login() == ("token", b"secret")


def test_a_token_file_that_is_missing_is_an_error_that_names_it():
    with pytest.raises(Exception, match="/nowhere/token"):
        ClientConfig(URL, token_file="/nowhere/token").login()


@pytest.mark.parametrize("text", ["secret\nsecret", "secr\u00e9t", "se\x00cret", "secret\udcff", "", "\n"])
def test_a_token_that_is_none_is_shown_to_nobody(tmp_path, text):
    """Libraries for HTTP put one that no header can have into their errors."""
    (file := tmp_path / "token").write_text(text, "utf-8", "surrogateescape")
    from_file = ClientConfig(URL, "http://127.0.0.1:1", token_file=str(file))
    for config in (from_file, replace(from_file, token=text or "\t", token_file="")):
        for ask in (config.login, Admin(config).internal_configuration):
            with pytest.raises(BrokerError, match="token") as caught:
                ask()
            assert not isinstance(caught.value, TransientBrokerError) and "secr" not in str(caught.value)


@pytest.mark.parametrize("host", ["a..b", "a" * 64, "\udcff", "\u2028"], ids=ascii)
def test_a_host_that_can_be_none_is_an_error_at_once(host):
    config = ClientConfig(f"pulsar://{host}:1", f"http://{host}:1")
    topic = "persistent://t/n/topic"
    for ask in (lambda: Cluster(config).partitions(topic), lambda: Admin(config).partitions(topic)):
        with pytest.raises(BrokerError) as caught:
            ask()
        assert not isinstance(caught.value, TransientBrokerError)


def test_tls_files_that_cannot_be_used_are_named(tmp_path):
    (tmp_path / "empty.pem").touch()
    for tls in (Tls(str(tmp_path / "none.pem")), Tls(certificate_file=str(tmp_path / "empty.pem"))):
        with pytest.raises(InvalidSettingError, match=str(Path(tls.trust_certs_file or tls.certificate_file).name)):
            tls.context()


def test_waits_are_as_long_as_they_are_asked_to_be(tmp_path):
    """One answer is waited for no longer than an outage; a file of `client.conf` is read."""
    file = tmp_path / "client.conf"
    file.write_text(f"brokerServiceUrl={URL}\nwebServiceUrl=http://broker:8080\n")
    usual, short = client_config(URL), client_config(conf=file, outage_s=5)
    assert (usual.answer_s, usual.outage_s, short.answer_s, short.outage_s) == (30, 120, 5, 5)
    assert (client_config(conf=str(file)).service_url, short.admin_url) == (URL, "http://broker:8080")
    for wrong in (0, -1, float("inf"), float("nan")):
        with pytest.raises(InvalidSettingError, match="is not a time to wait"):
            client_config(URL, outage_s=wrong)


def test_a_consumer_of_a_cluster_that_is_away_waits_so_long(tmp_path):
    topic = lithify.open(str(tmp_path)).create_topic("persistent://t/n/a", config={"message.ids": "pulsar"})
    nobody = free_port()
    cluster = client_config(f"pulsar://127.0.0.1:{nobody}", f"http://127.0.0.1:{nobody}", outage_s=0.3)
    with pytest.raises(BrokerError, match=r"for 0\.3 s"):
        PulsarSnapshotConsumer(topic, cluster, pulsar_topic="persistent://t/n/a")


def test_no_file_of_settings_is_read_without_end(tmp_path: Path) -> None:
    """C51: a device has no end, and a file of gigabytes is none of settings."""
    with pytest.raises(InvalidSettingError, match="/dev/zero cannot be read: it is a device"):
        conf_of(Path("/dev/zero"))
    with pytest.raises(BrokerError, match="the token cannot be read from /dev/zero"):
        ClientConfig.of(URL, conf={"authPlugin": TOKEN, "authParams": "file:///dev/zero"}).login()
    given = '{"issuerUrl": "https://127.0.0.1:1", "privateKey": "file:///dev/zero"}'
    with pytest.raises(BrokerError, match="credentials cannot be read from /dev/zero"):
        ClientConfig.of(URL, conf={"authPlugin": OAUTH2, "authParams": given}).login()


@pytest.mark.parametrize("inside", ["\x0b", "\x0c", "\x85", "\u2028"])
def test_a_line_ends_where_it_does_for_java(tmp_path: Path, inside: str) -> None:
    file = tmp_path / "client.conf"
    file.write_text(f"a=1{inside}2\r\nb=3\n", newline="")
    assert conf_of(file) == {"a": f"1{inside}2", "b": "3"}


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("tlsEnableHostnameVerificaton", "tlsEnableHostnameVerification"),
        ("tlsHostnameVerificationEnabled", "tlsEnableHostnameVerification"),
        ("tlsHostnameVerificationEnable", "tlsEnableHostnameVerification"),
        ("enableTlsHostnameVerification", "tlsEnableHostnameVerification"),
        ("authPlugn", "authPlugin"),
        ("webServiceURL", "webServiceUrl"),
        ("tlsTrustCertFilePath", "tlsTrustCertsFilePath"),
    ],
)
def test_a_mistyped_name_is_refused_with_the_one_that_is_meant(name, meant):
    with pytest.raises(InvalidSettingError, match=f"{name} of client.conf is not a setting") as refused:
        ClientConfig.of(conf={"brokerServiceUrl": URL, name: "true"})
    assert refused.value.hint == f"did you mean {meant}?"


def test_other_names_of_pulsars_tools_are_left_alone():
    others = ("webserviceTlsProvider", "proxyProtocol", "memoryLimit", "tlsProvider")
    conf = {"brokerServiceUrl": URL, "brokerServiceUrlTls": "pulsar+ssl://b:6651"} | dict.fromkeys(others, "x")
    assert ClientConfig.of(conf=conf) == ClientConfig.of(URL)
