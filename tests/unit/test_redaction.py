"""Secrets of the configuration in use are in no text that leaves the program, by whatever face and in whatever form."""

from __future__ import annotations

import html
import json
import logging
import pickle
import re
import traceback
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote, quote_plus

import pytest

from lithify.cli.terminal import output
from lithify.errors import DamagedError, LithifyError, RefusedError, redaction
from lithify.errors.defects import as_lithify_error
from lithify.errors.redaction import HIDDEN, KNOWN, KNOWN_SECRETS, LONGEST, error_text, keep_secret, one_line, redacted
from lithify.model.settings.secrets import keep
from lithify.reports.page.html import text_html
from lithify.store.iceberg.reaching import reaching

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
    "quoted in lower case": lambda secret: re.sub("%..", lambda found: found[0].lower(), quote(secret, safe="")),
    "quoted twice": lambda secret: quote(quote(secret, safe=""), safe=""),
    "in JSON": lambda secret: json.dumps({"a": secret}),
    "in JSON of JSON": lambda secret: json.dumps({"a": json.dumps({"b": secret})}),
    "in JSON that escapes slashes": lambda secret: json.dumps({"a": secret}).replace("/", "\\/"),
    "in HTML": lambda secret: f"<p>{html.escape(secret)}</p>",
    "in HTML by number": lambda secret: "".join(c if c.isalnum() else f"&#{ord(c)};" for c in secret),
    "in a repr of a repr": lambda secret: repr([repr(secret)]),
    "as bytes": lambda secret: f"{secret.encode()!r}",
    "on one line": lambda secret: " ".join(secret.split()),
}


def _logged(text: str) -> None:
    log = logging.getLogger("lithify.tests.redaction")
    output.say_warnings(log)
    log.warning("it says %s", text)


CONFIGURATIONS = {
    "a URL with a token as its user": {"uri": f"https://{quote(SECRET, safe='')}@host/v1"},
    "a cookie": {"header.Cookie": SECRET},
    "a header of a gateway": {"header.X-Auth": SECRET},
    "a catalog's token": {"token": SECRET},
    "a catalog's credential": {"credential": f"client:{SECRET}"},
    "a store's key": {"s3.secret-access-key": SECRET},
    "a store's account": {"adls.account-key": SECRET},
    "a database": {"uri": f"postgresql://me:{SECRET}@host/db"},
    "a database, quoted": {"uri": f"postgresql://me:{quote(SECRET, safe='')}@host/db"},
    "a bucket with a user": {"warehouse": f"s3://AKID:{SECRET}@bucket/lake"},
    "a Kafka client": {"sasl.password": SECRET},
    "a catalog's login": {"auth": {"type": "basic", "basic": {"username": "me", "password": SECRET}}},
    "a catalog's header": {"header.Authorization": f"Token {SECRET}"},
    "a list of logins": {"auth": {"of": [{"password": SECRET}]}},
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


@pytest.mark.parametrize("secret", [SECRET, "Qz7'\"\\<&>=three", "Qz7 é😀 \n\tthree", "Qz7%20%2Bthree"])
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_any_character_is_known_in_any_form(form: Callable[[str], str], secret: str) -> None:
    keep({"token": secret})
    assert not re.search("Qz7|three", redacted(form(secret)))


@pytest.mark.parametrize("settings", CONFIGURATIONS.values(), ids=CONFIGURATIONS)
def test_the_secrets_of_every_configuration_are_known(settings: dict[str, Any]) -> None:
    keep(settings)
    for form in FORMS.values():
        assert "Qz7" not in redacted(form(SECRET))


LOGINS = {
    "a catalog's login": {"auth": {"basic": {"username": "me", "password": SECRET}}},
    "a catalog's client": {"auth": {"oauth2": {"client_id": "me", "client_secret": SECRET}}},
    "a credential": {"credential": f"me:{SECRET}"},
    "a proxy": {"s3.proxy-uri": f"http://me:{quote(SECRET, safe='')}@proxy:3128"},
}


@pytest.mark.parametrize("settings", LOGINS.values(), ids=LOGINS)
def test_a_login_is_known_as_a_header_of_http_has_it(settings: dict[str, Any]) -> None:
    keep(settings)
    assert redacted(f"no {b64encode(f'me:{SECRET}'.encode()).decode()}") == "no ***"


def test_a_password_with_escaped_quotes_in_a_login_of_java_is_known() -> None:
    keep({"sasl.jaas.config": 'x.PlainLoginModule required username="me" password="Qz7\\"three";'})
    assert redacted('Qz7"three and Qz7\\"three') == "*** and ***"


def test_a_number_is_a_secret_and_a_switch_none() -> None:
    keep({"sasl.password": 12345678, "use.token": True})
    assert redacted("12345678 is True") == "*** is True"


LONG_SECRET = "Qz7oneTwoXkAB/threeFour9QQQQ'stuvwxyz0123456789QQQQ"


@pytest.mark.parametrize("dots", ["...", "…", " … ", " ... (9 characters truncated) ... "])
@pytest.mark.parametrize("secret", [LONG_SECRET, 200 * LONG_SECRET], ids=["long", "large"])
def test_what_an_ellipsis_leaves_of_a_secret_is_hidden(secret: str, dots: str) -> None:
    keep_secret(secret)
    for written in (secret, repr(secret)[1:-1]):
        for length in (8, 25):
            cut = f"input_value='{written[:length]}{dots}{written[-length:]}', type=str"
            assert redacted(cut) == f"input_value='{HIDDEN}{dots}{HIDDEN}', type=str"
    assert redacted(f"{secret[:9]}, {secret[:7]}...") == f"{secret[:9]}, {secret[:7]}..."


def test_runs_of_pieces_take_no_square_of_their_length() -> None:
    for run in ("a", "ab", "aaaaaaaa...", "..."):
        KNOWN_SECRETS.clear()
        keep_secret(run * 40 + "z")
        keep_secret("z" + run * 40)
        redacted(run * (100_000 // len(run)) + "...")


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


def test_a_part_of_a_credential_behind_a_blank_is_no_secret_of_its_own() -> None:
    keep({"credential": "client:my word"})
    assert redacted("a word of my word") == "a word of ***"


def test_a_secret_that_may_be_a_word_is_hidden_as_one_only() -> None:
    keep({"password": "postgres", "token": "correcthorsebatterystaple"})
    assert redacted("postgresql, postgresQL, Xpostgres") == "postgresql, postgresQL, Xpostgres"
    shown = "***://***:***@h/***; PGPASSWORD_***; %3A***%40; '\\n***'; ***2"
    assert redacted(shown.replace("***", "postgres")) == shown
    assert redacted("xcorrecthorsebatterystaplex") == "x***x"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('{"password": "a \\"b", "x": 1}', '{"password": ***, "x": 1}'),
        ('{"token":"abc"}', '{"token":***}'),
        ("{'s3.secret-access-key': 'abc', 'b': 'c'}", "{'s3.secret-access-key': ***, 'b': 'c'}"),
        ("uri: x\n  password: hunter2\n  warehouse: w", "uri: x\n  password: ***\n  warehouse: w"),
        ("s3.secret-access-key: abc, b", "s3.secret-access-key: ***, b"),
        ("'api-key': \"a'b\"", "'api-key': ***"),
        ("client_secret: 'a b' c", "client_secret: *** c"),
        ('"password": "cut off', '"password": ***'),
        ('"password": null', None),
        ("bad token: 7; key: value; no credential: none", None),
        ("--kafka-conf sasl.password: all users of the machine can see a secret", None),
        ("uri: x password: hunter2 warehouse: w", "uri: x password: *** warehouse: w"),
        ("password: PASSWORD", None),
    ],
)
def test_fields_of_json_and_yaml_are_hidden_and_no_sentences(text: str, shown: str | None) -> None:
    assert redacted(text) == (text if shown is None else shown)
    assert redacted(redacted(text)) == redacted(text)


def test_what_is_remembered_is_bounded_and_renewed_tokens_push_out_no_configuration() -> None:
    keep({"credential": f"client:{SECRET}"})
    for number in range(2 * KNOWN):
        keep_secret(f"secret-{number:08}")
    assert redacted(f"secret-{2 * KNOWN - 1:08}") == "***"
    assert redacted(f"secret-{KNOWN:08}") == f"secret-{KNOWN:08}"
    assert redacted(SECRET) == "***"


def test_runs_of_what_a_secret_begins_with_take_no_square_of_their_length() -> None:
    keep({"password": "/" + SECRET, "token": "\\\\ \\%+" + SECRET})
    for run in ("\\", " ", "%25", "&amp;", "+", "%20", "\\n"):
        assert redacted(run * 20_000) == run * 20_000


@pytest.mark.parametrize(
    "value", ["".join(f'{{"se cret{n}":\n' for n in range(20_000)), "".join(f"{n:x}/" for n in range(30_000))]
)
def test_a_large_secret_is_hidden_whole_however_it_is_written_or_cut(value: str) -> None:
    keep_secret(value)
    for written in (value, json.dumps(value), repr(value), quote(value), html.escape(value), " ".join(value.split())):
        said = redacted(f"before {written} after")
        assert said.startswith("before ") and said.endswith(" after"), said[:80]
        assert HIDDEN in said and len(said) < 2000
    assert redacted(f"before {value[:100_000]}") == f"before {HIDDEN}"


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


class OfAnotherError(Exception):
    """As Spark's and Py4J's are, whose text is that of a JVM."""

    def __init__(self, text: str, ask: Callable[[], str]) -> None:
        self.text, self.parts, self.more, self.ask = text, [text, (text, 5)], {"a": text}, ask

    def __str__(self) -> str:
        return f"{self.text} {self.ask()}"


def test_causes_lose_secrets_in_their_attributes_and_in_texts_that_are_made_elsewhere() -> None:
    keep({"token": SECRET})
    with pytest.raises(LithifyError) as failed, reaching("catalog prod"):
        try:
            inner = OfAnotherError(f"no {SECRET}", lambda: f"and no {SECRET}")
            inner.add_note(f"noted {SECRET}")
            outer = OfAnotherError("outer", lambda: "")
            outer.reason = inner  # type: ignore[attr-defined]
            raise outer
        except OfAnotherError as error:
            raise LithifyError("it failed") from error
    shown = "".join(traceback.format_exception(failed.value)) + f"{inner} {vars(inner)}"
    assert "Qz7" not in shown
    assert f"{inner}" == "no *** and no ***"
    assert isinstance(inner, OfAnotherError) and type(inner).__name__ == "OfAnotherError"
    assert (inner.parts, inner.more) == (["no ***", ("no ***", 5)], {"a": "no ***"})


class SlottedError(Exception):
    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class FrozenError(Exception):
    text: str


KINDS_OF_CAUSES: tuple[Exception, ...] = (
    ImportError(f"no {SECRET}", name=SECRET, path=SECRET),
    SyntaxError(f"bad {SECRET}", ("f", 1, 1, f"x={SECRET}")),
    OSError(2, "no", SECRET, None, SECRET),
    UnicodeDecodeError("utf-8", SECRET.encode(), 0, 1, SECRET),
    KeyError(SECRET.encode()),
    ValueError({SECRET: 1}, {SECRET}, frozenset([SECRET])),
    ValueError([[[[SECRET]]]]),
    SlottedError(SECRET),
    FrozenError(SECRET),
)


@pytest.mark.parametrize("cause", KINDS_OF_CAUSES, ids=lambda cause: type(cause).__name__)
def test_causes_lose_secrets_wherever_their_class_keeps_them(cause: Exception) -> None:
    keep({"token": SECRET})
    with pytest.raises(LithifyError) as failed:
        try:
            raise cause
        except Exception as error:
            raise LithifyError("it failed") from error
    shown = "".join(traceback.format_exception(failed.value)).partition("The above exception")[0]
    assert "Qz7" not in shown + repr(failed.value.__cause__)


def test_a_cause_whose_text_cannot_be_made_stays() -> None:
    def gone() -> str:
        raise ConnectionRefusedError("no JVM")

    try:
        raise OfAnotherError("x", gone)
    except OfAnotherError as error:
        assert str(LithifyError("it failed")) == "it failed"
        assert type(error) is OfAnotherError


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


@pytest.mark.parametrize("characters", [LONGEST, LONGEST + 1, LONGEST + 51, 10 * LONGEST, 1_000_000])
def test_an_error_has_a_bound_with_its_beginning_and_its_end(characters: int) -> None:
    text = "begin" + "x" * (characters - 8) + "end"
    errors = [DamagedError(text, hint=text), as_lithify_error(DamagedError(text, hint=text), "a round")]
    errors += [pickle.loads(pickle.dumps(errors[0])), RefusedError(str(errors[0]), hint=str(errors[0]))]
    for error in errors:
        for said in (error.message, error.hint, error.args[0]):
            assert len(said) <= LONGEST
            assert said.startswith("begin") and said.endswith("end" if error is not errors[-1] else ")")
        assert len(str(error)) <= 2 * LONGEST + 3
        assert len(repr(error)) <= LONGEST + 100
        assert len(text_html(str(error))) <= 2 * LONGEST + 3
    said = errors[0].message
    assert (said == text) == (characters <= LONGEST)
    if said != text:
        (left_out,) = re.findall(r" … ([\d,]+) characters left out … ", said)
        note = f" … {left_out} characters left out … "
        assert len(said) - len(note) + int(left_out.replace(",", "")) == characters


def test_of_a_long_text_only_the_ends_are_sought(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name of a megabyte in a request held all threads of a gateway for seconds."""
    sought: list[int] = []

    def noted(text: str) -> str:
        sought.append(len(text))
        return redacted(text)

    monkeypatch.setattr(redaction, "redacted", noted)
    text = " password=Qz7" * 50_000
    try:
        raise ValueError(text)
    except ValueError:
        error = RefusedError(f"{text} end", hint=text)
    assert sum(sought) < len(text) / 2
    assert "Qz7" not in error.message + error.hint + str(error.__context__)
    assert error.message.endswith(" end")


def test_the_ends_of_a_long_text_have_no_half_of_a_secret() -> None:
    keep({"token": SECRET})
    for at in range(redaction.SOUGHT - len(SECRET) - 1, redaction.SOUGHT + 2):
        for text in (f"{'.' * at}{SECRET}{'.' * 50_000}", f"{'.' * 50_000}{SECRET}{'.' * at}"):
            assert not set(SECRET) & set(redaction.ends_redacted(text).replace(".", "").replace(" ", ""))


@pytest.mark.parametrize("most", [100, 300, pytest.param(LONGEST, marks=pytest.mark.long)])
def test_a_cut_leaves_no_half_of_a_secret(most: int) -> None:
    keep({"token": SECRET})
    for before in range(0, most, 1 + most // 300):
        text = f"{'x ' * (before // 2)}{SECRET} {'y ' * most}"
        assert "Qz7" not in error_text(text, most) + one_line(text, most)
        assert max(len(error_text(text, most)), len(one_line(text, most))) <= most
