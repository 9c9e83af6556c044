"""Settings of Kafka's clients from a file, the environment and the command line; secrets never from the last."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click
import pytest

from lithify.cli.kafka.copied_topics import check_chosen
from lithify.cli.kafka.settings import kafka_settings, settings_used
from lithify.errors import InvalidSettingError, LithifyError, RefusedError
from lithify.errors.given_files import LARGEST_FILE_BYTES
from lithify.kafka_client.dialects import for_java, for_librdkafka
from lithify.kafka_client.logins import read_login
from lithify.kafka_client.properties import MOST_RESTS, MOST_SETTINGS, read_properties
from lithify.kafka_client.stores import pem_in_lines

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


@pytest.mark.parametrize("inside", ["\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029"])
def test_a_line_ends_where_it_does_for_java(tmp_path: Path, inside: str) -> None:
    """A password would be cut, and its rest be the name of a setting."""
    assert read_properties(written(tmp_path, f"a=1{inside}2\r\nb=3\rc=4\n")) == {"a": f"1{inside}2", "b": "3", "c": "4"}


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        (r"a=\ud83d\ude00", "a", "😀"),
        ("a=\xa0b\xa0", "a", "\xa0b\xa0"),
        ("a\xa0b c", "a\xa0b", "c"),
        ("a\x85=\x0bb", "a\x85", "\x0bb"),
        ("\\\n!a=b", "!a", "b"),
    ],
    ids=[
        "beyond U+FFFF",
        "value with a space of Unicode",
        "name with one",
        "other blanks",
        "continued before its name",
    ],
)
def test_a_name_and_a_value_are_what_they_are_for_java(tmp_path: Path, text: str, name: str, value: str) -> None:
    assert read_properties(written(tmp_path, text)) == {name: value}


@pytest.mark.parametrize("path", ["\0", "a\0b", "\ud800"])
@pytest.mark.parametrize("store", ["ssl.truststore", "ssl.keystore"])
@pytest.mark.parametrize("kind", [{}, {"type": "PEM"}])
@pytest.mark.parametrize("made", [for_java, for_librdkafka])
def test_a_path_that_can_be_none_is_refused(
    made: Callable[..., object], kind: dict[str, str], store: str, path: str
) -> None:
    given = {"bootstrap.servers": "h:1", **{f"{store}.{name}": value for name, value in kind.items()}}
    with pytest.raises(LithifyError, match=store):
        made({**given, f"{store}.location": path})


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
    with pytest.raises(RefusedError, match="--kafka-conf-file FILE, or use a variable") as refused:
        kafka_settings("b:2", None, {name: value})
    assert "hunter2" not in str(refused.value)


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match=r"sasl\.password: the environment variable NOT_THERE is not set"):
        kafka_settings("b:2", None, {"sasl.password": "${env:NOT_THERE}"})
    many = b"".join(b"a%d=\n" % number for number in range(MOST_SETTINGS + 1))
    data = b"".join(b"%d,1\n" % number for number in range(MOST_RESTS + 1))
    for content in (b"a=\xff", b"#" * (LARGEST_FILE_BYTES + 1), many, data):
        with pytest.raises(RefusedError, match=r"client\.properties"):
            read_properties(written(tmp_path, content))
    with pytest.raises(click.UsageError, match="pass --bootstrap-servers"):
        kafka_settings(None, written(tmp_path, "client.id=x"), {})


A_MEGABYTE = 2**20
HOSTILE = {
    "blanks": " " * A_MEGABYTE + "!",
    "letters": "a" * A_MEGABYTE + "!",
    "semicolons": " ; " * (A_MEGABYTE // 3) + "!",
    "options": "a=b " * (A_MEGABYTE // 4) + '"',
    "quotes": 'a="' + "\\" * A_MEGABYTE,
    "begins": "-----BEGIN X-----" * (A_MEGABYTE // 17),
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_no_value_is_read_for_longer_than_its_length_takes(text: str) -> None:
    """A search that starts over at every character would take hours for each of these."""
    for login in (text, f"Module required {text}", f"Module required {text};"):
        with pytest.raises(InvalidSettingError, match="is not a login"):
            read_login(login)
    for pem in (text, f"-----BEGIN X-----{text}", f"-----BEGIN X-----{text}-----END Y-----"):
        assert pem_in_lines(pem) == pem


@pytest.mark.parametrize("name", ["bootstrap.servers", "metadata.broker.list"])
@pytest.mark.parametrize("servers", ["user:hunter2@host:9092", "a:1,hunter2@b:2", "SASL_SSL://u:hunter2@host:9092"])
def test_an_address_with_a_login_is_refused_and_not_shown(name: str, servers: str) -> None:
    for read in (for_java, for_librdkafka):
        with pytest.raises(InvalidSettingError, match="has an '@'") as refused:
            read({name: servers})
        assert "hunter2" not in str(refused.value)


def test_what_only_lithify_sets_is_refused_as_a_flag_and_left_out_of_a_shared_file(tmp_path, capsys):
    file = written(tmp_path, "bootstrap.servers=a:1\nisolation.level=read_uncommitted\nauto.offset.reset=earliest")
    assert kafka_settings(None, file, {}) == {"bootstrap.servers": "a:1"}
    assert "not used, as they cannot be set here: auto.offset.reset, isolation.level" in capsys.readouterr().err
    with pytest.raises(RefusedError, match=r"isolation\.level=read_uncommitted cannot be set here: only committed"):
        kafka_settings("b:2", None, {"isolation.level": "read_uncommitted"})


@pytest.mark.parametrize(
    "rest",
    ["Hunter2-Secret", "hunter_of_words", "sasl.Hunter2-Secret", "Hunter2_Secret", "hunter2SecretMIIEvQIBADANBg=="],
)
def test_what_may_be_the_rest_of_a_password_is_not_shown(tmp_path, capsys, rest):
    """Java takes a line after one without a backslash at its end for a setting of its own."""
    file = written(tmp_path, f"bootstrap.servers=a:1\nschema.registry.url=http://r\nssl.key.password=\n  {rest}\n")
    found = kafka_settings(None, file, {})
    for read in (settings_used, for_java):
        try:
            read(found)
        except InvalidSettingError as refused:
            assert "unter" not in str(refused)
    assert "unter" not in capsys.readouterr().err


def test_names_of_other_clients_are_shown(tmp_path, capsys):
    settings_used(kafka_settings("a:1", written(tmp_path, "schema.registry.url=http://r\ntopic=orders"), {}))
    assert "not used, as Kafka's clients do not support them: schema.registry.url, topic" in capsys.readouterr().err


@pytest.mark.parametrize(("topics", "pattern"), [((), None), (("orders",), ".*")])
def test_topics_are_named_in_one_way(topics, pattern):
    with pytest.raises(click.UsageError, match="pass either --topic or --topic-pattern"):
        check_chosen(topics, pattern)
    check_chosen(("orders",), None)
    check_chosen((), ".*")
