"""Secrets of the configuration in use are in no text that leaves the program, by whatever face and in whatever form."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from types import SimpleNamespace
from urllib.parse import quote, quote_plus

import pytest

from lithify.cli.terminal import output
from lithify.defects import as_lithify_error
from lithify.errors import DamagedError, LithifyError
from lithify.model.settings.secrets import keep
from lithify.redaction import KNOWN, KNOWN_SECRETS, keep_secret, redacted
from lithify.reports.notebook.html import text_html
from lithify.store.iceberg.error_mapping import reaching

SECRET = "Qz7 one/two+three%"


def _raised(text: str) -> LithifyError:
    try:
        with reaching("catalog prod"):
            raise OSError(text)
    except LithifyError as error:
        return error


FACES: dict[str, Callable[[str, pytest.CaptureFixture[str]], str]] = {
    "message": lambda text, _: str(LithifyError(text)),
    "hint": lambda text, _: str(LithifyError("m", hint=text)),
    "repr": lambda text, _: repr(DamagedError(text)),
    "defect": lambda text, _: str(as_lithify_error(RuntimeError(text), "a round")),
    "traceback with its causes": lambda text, _: "".join(traceback.format_exception(_raised(text))),
    "a line on the terminal": lambda text, out: (output.say(text), out.readouterr().err)[1],
    "results": lambda text, out: (output.show([text]), out.readouterr().out)[1],
    "traceback on the terminal": lambda text, out: (output.say_lines(text), out.readouterr().err)[1],
    "json on stderr": lambda text, out: (output.print_json({"message": text}, err=True), out.readouterr().err)[1],
    "events on stderr": lambda text, out: (output.say_json({"message": text}), out.readouterr().err)[1],
    "notebook": lambda text, _: text_html(text),
    "logged": lambda text, out: (_logged(text), out.readouterr().err)[1],
}

FORMS: dict[str, Callable[[str], str]] = {
    "in a URL": lambda secret: f"postgresql://me:{secret}@host/db: refused",
    "without a scheme": lambda secret: f"AKID:{secret}@bucket/lake is no bucket",
    "quoted for a URL": lambda secret: f"https://h/x?a={quote(secret, safe='')}&b=1",
    "quoted for a form": lambda secret: f"body a={quote_plus(secret)}",
    "repeated alone": lambda secret: f"401: no such token: {secret}!",
    "by repr": lambda secret: f"{secret!r} is invalid",
}


def _logged(text: str) -> None:
    log = logging.getLogger("lithify.tests.redaction")
    output.say_warnings(log)
    log.warning("it says %s", text)


CONFIGURATIONS = {
    "a catalog's token": {"token": SECRET},
    "a catalog's credential": {"credential": f"client:{SECRET}"},
    "a store's key": {"s3.secret-access-key": SECRET},
    "a store's account": {"adls.account-key": SECRET},
    "a database": {"uri": f"postgresql://me:{SECRET}@host/db"},
    "a bucket with a user": {"warehouse": f"s3://AKID:{SECRET}@bucket/lake"},
    "a Kafka client": {"sasl.password": SECRET},
    "a login": {"sasl.jaas.config": f'x.PlainLoginModule required username="me" password="{SECRET}";'},
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("face", FACES.values(), ids=FACES)
def test_no_face_shows_a_known_secret_in_any_form(
    face: Callable[..., str], form: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    keep({"token": SECRET})
    shown = face(form(SECRET), capsys)
    assert shown.strip()
    assert "Qz7" not in shown and "three" not in shown


@pytest.mark.parametrize("settings", CONFIGURATIONS.values(), ids=CONFIGURATIONS)
def test_the_secrets_of_every_configuration_are_known(settings: dict[str, str]) -> None:
    keep(settings)
    for form in FORMS.values():
        assert "Qz7" not in redacted(form(SECRET))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("GET /c?sig=ab%2Fcd&sp=r", "GET /c?sig=***&sp=r"),
        ("GET /c?pwd=abcd", "GET /c?pwd=***"),
        ("host=h password='a b' user=me", "host=h password=*** user=me"),
        ('required username="me" password="a b";', 'required username="me" password=***;'),
        ("Authorization: Bearer eyJh.bGci-9", "Authorization: Bearer ***"),
        ("basic authentication is off, tokens=5, sort=key", "basic authentication is off, tokens=5, sort=key"),
        ("write sasl.password=${file:/p:x}, postgresql://USER:PASSWORD@HOST", None),
    ],
)
def test_what_looks_like_a_secret_is_hidden_and_nothing_else(text: str, shown: str | None) -> None:
    assert redacted(text) == (text if shown is None else shown)


def test_short_secrets_hide_whole_words_only_and_tiny_ones_nothing() -> None:
    keep({"sasl.password": "a", "token": "data", "ssl.key.password": "hunter2"})
    assert redacted("a database has data; hunter2, hunter22") == "a database has ***; ***, hunter22"


def test_what_is_remembered_is_bounded() -> None:
    for number in range(KNOWN + 1):
        keep_secret(f"secret-{number:08}")
    assert redacted("secret-00000000") == "secret-00000000"
    assert redacted(f"secret-{KNOWN:08}") == "***"


def test_causes_lose_secrets_in_all_their_arguments() -> None:
    keep({"token": SECRET})
    inner = SimpleNamespace(error=OSError(5, f"no {SECRET}", f"/{SECRET}"))
    try:
        try:
            raise RuntimeError("outer", ValueError(f"nested {SECRET}"), 7) from inner.error
        except RuntimeError as error:
            raise LithifyError("it failed") from error
    except LithifyError as error:
        assert "Qz7" not in "".join(traceback.format_exception(error))
        assert error.__cause__ is not None and error.__cause__.args[2] == 7


def test_the_settings_of_a_login_are_no_secrets() -> None:
    keep({"sasl.mechanism": "PLAIN", "sasl.username": "someone", "security.protocol": "SASL_SSL"})
    assert KNOWN_SECRETS.hidden("PLAIN someone SASL_SSL") == "PLAIN someone SASL_SSL"


def test_a_long_text_of_urls_without_blanks_is_done_at_once() -> None:
    urls = "s3a://host:9000/a," * 20_000
    assert redacted(urls) == urls, "the square of its length would take a minute"
    assert redacted(f"{urls}s3a://user:secret@host") == "s3a://host:***@host"


@pytest.mark.parametrize("text", ['password="a b\\"c;d";', 'password="a b c', "password='a b\\", 'password="a\\\nb";'])
def test_a_quoted_secret_is_hidden_up_to_its_end(text: str) -> None:
    assert redacted(f"jaas {text}") == f"jaas password=***{';' if text.endswith(';') else ''}"
