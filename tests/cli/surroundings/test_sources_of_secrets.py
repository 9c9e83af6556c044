"""Wherever a secret of the configuration in use comes from, it is known before anything can repeat it."""

from __future__ import annotations

import base64
import json
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import pytest

import lithify as package
from lithify.api.wiring.spark_choice import SparkChoice
from lithify.cli.kafka.settings import kafka_settings
from lithify.cli.pulsar.pulsar_settings import cluster_config
from lithify.errors import LithifyError
from lithify.errors.redaction import HIDDEN, redacted
from lithify.pulsar.client.config import OAUTH2, TOKEN
from lithify.waits import sql
from support.store.catalogs import describe_catalog

SECRET = "Qz7one/two+three%four"
IN_URL = f"postgresql://me:{quote(SECRET, safe='')}@127.0.0.1:1/db"
JAAS = f'x.PlainLoginModule required username="me" password="{SECRET}";'

VARIABLES = {
    "AWS_SECRET_ACCESS_KEY": SECRET,
    "AWS_SESSION_TOKEN": SECRET,
    "AZURE_STORAGE_ACCOUNT_KEY": SECRET,
    "AZURE_STORAGE_KEY": SECRET,
    "AZURE_STORAGE_CONNECTION_STRING": f"DefaultEndpointsProtocol=https;AccountKey={SECRET};EndpointSuffix=x",
    "AZURE_CLIENT_SECRET": SECRET,
    "PGPASSWORD": SECRET,
    "HTTPS_PROXY": f"http://me:{quote(SECRET, safe='')}@proxy:3128",
    "HTTP_PROXY": f"me:{quote(SECRET, safe='')}@proxy:3128",
    "https_proxy": f"http://me:{quote(SECRET, safe='')}@proxy:3128",
    "LITHIFY_COORDINATION_URL": IN_URL,
}
FILES = {
    "AWS_SHARED_CREDENTIALS_FILE": f"[default]\naws_access_key_id = AKID\naws_secret_access_key = {SECRET}\n",
    "AWS_CONFIG_FILE": f"[profile other]\nregion = x\naws_session_token={SECRET}\n",
    "PGPASSFILE": f"# host:port:db:user:password\n*:*:*:of\\\\me\\::{SECRET}\n",
    "PGSERVICEFILE": f"[lake]\nhost=h\npassword={SECRET}\n",
    "NETRC": f"machine h\n  login me\n  password {SECRET}\n",
}
PROPERTIES = {
    "token": SECRET,
    "credential": f"client:{SECRET}",
    "s3.secret-access-key": SECRET,
    "s3.session-token": SECRET,
    "s3.proxy-uri": f"http://me:{SECRET}@proxy:3128",
    "gcs.oauth2.token": SECRET,
    "adls.account-key": SECRET,
    "adls.sas-token": SECRET,
    "adls.connection-string": f"AccountName=x;AccountKey={SECRET}",
    "uri": IN_URL,
}


def check_hidden() -> None:
    for text in (SECRET, quote(SECRET, safe=""), f"no such key: {SECRET}!"):
        assert redacted(text) == text.replace(SECRET, HIDDEN).replace(quote(SECRET, safe=""), HIDDEN)


@pytest.mark.parametrize("variable", VARIABLES)
def test_a_variable(variable, lithify, monkeypatch):
    monkeypatch.setattr(sql, "PATIENCE_S", 0.01)
    monkeypatch.setenv(variable, VARIABLES[variable])
    shown = lithify("topic", "create", "orders").err + lithify("status", "orders").out
    assert "Qz7" not in shown
    check_hidden()


@pytest.mark.parametrize("variable", FILES)
def test_a_file_of_another_program(variable, lithify, monkeypatch, tmp_path):
    file = tmp_path / "its"
    file.write_text(FILES[variable])
    monkeypatch.setenv(variable, str(file))
    lithify("topic", "create", "orders")
    check_hidden()


def test_a_login_of_netrc_as_a_header_of_http_has_it(lithify, monkeypatch, tmp_path):
    (tmp_path / "its").write_text(FILES["NETRC"])
    monkeypatch.setenv("NETRC", str(tmp_path / "its"))
    lithify("topic", "create", "orders")
    assert redacted(base64.b64encode(f"me:{SECRET}".encode()).decode()) == HIDDEN


@pytest.mark.parametrize("before", ["\ufeff", "# é\n", "no setting\n"], ids=["mark", "comment", "line"])
@pytest.mark.parametrize("variable", FILES)
def test_a_file_with_what_its_client_may_pass_over(variable, before, lithify, monkeypatch, tmp_path):
    file = tmp_path / "its"
    file.write_bytes(before.encode("latin-1" if before.startswith("#") else "utf-8") + FILES[variable].encode())
    monkeypatch.setenv(variable, str(file))
    lithify("topic", "create", "orders")
    check_hidden()


PLACES = {
    "~/.aws/credentials": "AWS_SHARED_CREDENTIALS_FILE",
    "~/.aws/config": "AWS_CONFIG_FILE",
    "~/.pgpass": "PGPASSFILE",
    "~/.pg_service.conf": "PGSERVICEFILE",
    "~/.netrc": "NETRC",
}


@pytest.mark.parametrize("place", PLACES)
def test_a_file_in_the_home_folder(place, lithify, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    file = Path(place).expanduser()
    file.parent.mkdir(exist_ok=True)
    file.write_text(FILES[PLACES[place]])
    lithify("topic", "create", "orders")
    check_hidden()


@pytest.mark.parametrize("content", [b"\xff\xfe", b"no ini", b"[a]\n[a]\nx\n%(y)s=1", b"a:b:c\n::::\n", b"\x00" * 10])
def test_a_file_that_is_not_understood_stops_nothing(content, lithify, monkeypatch, tmp_path):
    for variable in FILES:
        (tmp_path / "its").write_bytes(content)
        monkeypatch.setenv(variable, str(tmp_path / "its"))
    lithify("topic", "create", "orders")
    for variable in FILES:
        monkeypatch.setenv(variable, str(tmp_path))
    lithify("status", "orders")


@pytest.mark.parametrize("name", PROPERTIES)
def test_a_property_of_a_catalog(name, monkeypatch):
    monkeypatch.setattr(sql, "PATIENCE_S", 0.01)
    variable = name.replace("-", "_").replace(".", "__")
    describe_catalog(
        monkeypatch, **{"type": "sql", "uri": IN_URL, "warehouse": "s3://lake/w", variable: PROPERTIES[name]}
    )
    with pytest.raises(LithifyError) as refused:
        package.open(catalog="prod").topics()
    assert "Qz7" not in f"{refused.value!r} {refused.value}"
    check_hidden()


@pytest.mark.parametrize(
    "text", [f"sasl.password={SECRET}", f"sasl.jaas.config={JAAS}", "ssl.key.password=${env:MINE}"]
)
def test_a_file_of_kafkas_clients(text, tmp_path, monkeypatch):
    monkeypatch.setenv("MINE", SECRET)
    file = tmp_path / "client.properties"
    file.write_text(f"bootstrap.servers=127.0.0.1:1\n{text}\n")
    kafka_settings(None, file, {})
    check_hidden()


CREDENTIALS = json.dumps({"client_id": "c", "client_secret": SECRET})
DATA = f"data:application/json;base64,{base64.b64encode(CREDENTIALS.encode()).decode()}"
OAUTH2_CONF = f"authPlugin={OAUTH2}\nauthParams=" + '{{"issuerUrl":"https://127.0.0.1:1","privateKey":"{}"}}'
PULSAR = {
    "a token": f"authPlugin={TOKEN}\nauthParams=token:{SECRET}",
    "a file with a token": f"authPlugin={TOKEN}\nauthParams=file://FOLDER/token",
    "an OAuth 2.0 client": OAUTH2_CONF.format(DATA),
    "a file with one": OAUTH2_CONF.format("file://FOLDER/credentials"),
    "a login that is not known": f"authPlugin=Basic\nauthParams={SECRET}",
    "a store that is not used": f"tlsTrustStorePassword={SECRET}",
}


@pytest.mark.parametrize("text", PULSAR.values(), ids=PULSAR)
def test_a_file_of_pulsars_clients(text, tmp_path):
    (tmp_path / "token").write_text(f"{SECRET}\n")
    (tmp_path / "credentials").write_text(CREDENTIALS)
    file = tmp_path / "client.conf"
    file.write_text(text.replace("FOLDER", str(tmp_path)))
    with suppress(LithifyError):
        cluster_config("pulsar://127.0.0.1:1", "", file).login()
    check_hidden()
    assert redacted(DATA) == HIDDEN or "data:" not in text


def test_a_setting_of_spark():
    SparkChoice(conf={"spark.hadoop.fs.s3a.secret.key": SECRET}).factory()
    check_hidden()
