"""A password in the address of a catalog or of leases is shown nowhere, whatever characters it has in it."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from lithify.errors import LithifyError, WarehouseError
from lithify.errors.redaction import redacted
from lithify.waits import sql

BETWEEN = ["@", ":", "/", "?", "#", "%", "%40", "@:/", "@@", "[", "%zz"]
SENTINEL = "Qz7"
VERBS = (["topic", "list"], ["doctor"], ["status", "orders"], ["cleaner", "run", "--once"], ["doctor", "--json"])


def addresses(between: str) -> list[str]:
    password = f"{SENTINEL}one{between}{SENTINEL}two"
    closed = "127.0.0.1:1/lithify"
    return [f"postgresql+psycopg2://lithify:{given}@{closed}" for given in (password, quote(password, safe=""))]


@pytest.mark.parametrize("between", BETWEEN)
def test_no_verb_shows_the_password_of_a_catalog(between, lithify, monkeypatch):
    monkeypatch.setattr(sql, "PATIENCE_S", 0.01)
    for number, address in enumerate(addresses(between)):
        monkeypatch.setenv("PYICEBERG_CATALOG__PROD__TYPE", "sql")
        monkeypatch.setenv("PYICEBERG_CATALOG__PROD__URI", address)
        monkeypatch.setenv("PYICEBERG_CATALOG__PROD__WAREHOUSE", "s3://lake/warehouse")
        for verb in VERBS:
            outcome = lithify(*verb, "--catalog", "prod", code=3 if verb[0] == "doctor" else 1)
            assert SENTINEL not in outcome.out + outcome.err, (number, verb)
            assert "catalog" in outcome.out + outcome.err


@pytest.mark.parametrize("between", BETWEEN)
def test_nor_that_of_the_database_of_leases(between, lithify, monkeypatch):
    monkeypatch.setattr(sql, "PATIENCE_S", 0.01)
    lithify("topic", "create", "t")
    for address in addresses(between):
        outcome = lithify("cleaner", "run", "--once", "--coordination-url", address, code=1)
        assert SENTINEL not in outcome.out + outcome.err


@pytest.mark.parametrize("between", BETWEEN)
def test_what_libraries_say_of_an_address_is_passed_on_without_it(between):
    for scheme in ("https", "postgresql", "thrift"):
        for text in (
            f"cannot reach {scheme}://me:{SENTINEL}{between}{SENTINEL}@host/x: refused",
            f"({scheme}://:{SENTINEL}@h)",
        ):
            assert SENTINEL not in redacted(text)
            assert SENTINEL not in str(LithifyError(text))
            assert "refused" in str(WarehouseError(text)) or "@h" in str(WarehouseError(text))
    assert redacted("https://host:8080/path is fine") == "https://host:8080/path is fine"


@pytest.mark.parametrize(
    "name", ["password", "sslpassword", "token", "access_token", "client-secret", "X-Amz-Signature"]
)
def test_nor_a_secret_in_the_query_of_an_address(name):
    for before in ("?", "?user=u&"):
        for after in ("", "&a=b", "/v1/config", "', port=1)"):
            text = f"Max retries exceeded with url: http://h/{before}{name}={SENTINEL}{after}"
            assert SENTINEL not in redacted(text) and f"{name}=***" in redacted(text)
    assert redacted("https://h/?page=2&sort=key is fine") == "https://h/?page=2&sort=key is fine"


@pytest.mark.parametrize("verb", VERBS)
def test_credentials_in_the_address_of_a_bucket_are_refused_and_not_repeated(verb, lithify, monkeypatch):
    address = f"s3://AKID:{SENTINEL}/one+two@lake/warehouse"
    code = 3 if verb[0] == "doctor" else 1
    monkeypatch.setenv("PYICEBERG_CATALOG__PROD__TYPE", "sql")
    monkeypatch.setenv("PYICEBERG_CATALOG__PROD__URI", "sqlite:///:memory:")
    monkeypatch.setenv("PYICEBERG_CATALOG__PROD__WAREHOUSE", address)
    for place in (["--catalog", "prod"], ["--warehouse", address]):
        outcome = lithify(*verb, *place, code=code)
        assert SENTINEL not in outcome.out + outcome.err
        assert "credentials before its bucket" in " ".join((outcome.out + outcome.err).split())
