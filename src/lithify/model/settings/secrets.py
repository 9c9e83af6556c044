"""Which settings are secrets, and how they are removed from a text.

A secret comes from a file or the environment, never from the command line, which all users of the machine
can read; and it is in no error, report or log. The names are Kafka's, as its Java client and librdkafka have them.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from lithify.errors.redaction import HIDDEN, keep_secret

SECRET_NAMES = (
    "(?i)secret|passw(or)?d|passphrase|token$|jaas|oauthbearer[.]config$|keystore[.]key$|(private|ssl)[.]key([.]pem)?$"
)
"""A regular expression for Python and for Java; a setting whose name has a match is a secret."""

_OF_SERVICES = re.compile(
    r"(?i)credential$|account[-_.]?key(?![a-z])|(api|access|storage)[-_.]?key$|\bsas\b|connection[-_]string"
    r"|authorization|signature|cookie$|[.]x-auth"
)
"""Further names of secrets, of catalogs and stores: no client of Kafka has such a setting."""
_PASSWORD = re.compile(r"\w[\w+.-]*://([^:/@]*):(.*)@", re.DOTALL)
"""Of a value that is a URL."""
_TOKEN = re.compile(r"(?i)https?://([^:/@]+)@")
"""The same where a token is the user, and there is no password."""
_PARAMETER = re.compile(r"[?&;]([\w.-]+)=([^&;#]+)")

_SECRET = re.compile(SECRET_NAMES)
_LOGIN_OPTION = re.compile(r"""([\w.]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s;]+))""", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


def is_secret(name: str) -> bool:
    return _SECRET.search(name) is not None


def is_secret_of_service(name: str) -> bool:
    """The same of a setting of a catalog or a store."""
    return _OF_SERVICES.search(name) is not None


def hidden(text: str, settings: Mapping[str, Any]) -> str:
    """`text` without the secrets among `settings`."""
    for secret in sorted(set(_secrets(settings)), key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return text


def keep(settings: Mapping[str, Any]) -> None:
    """Lets no text of this process show the secrets of a configuration: of a client, a catalog, a URL by any name."""
    settings = dict(_flat(settings))
    for secret in _secrets(settings):
        keep_secret(secret)
    for name, value in settings.items():
        if is_secret_of_service(name):
            keep_secret(value)
            user, colon, password = value.partition(":")  # a credential may be ID:SECRET
            keep_login(user if colon else "", password)
        if name.lower().endswith("authorization"):
            keep_secret(value.partition(" ")[2])  # a header has a scheme before it
        if match := _PASSWORD.match(value):
            keep_login(match[1], match[2])
            keep_login(match[1], match[2].partition("@")[0])
        if match := _TOKEN.match(value):
            keep_secret(match[1])
        for user in _users(name):
            keep_login(settings.get(user, ""), value)
        has_parameters = "://" in value or is_secret_of_service(name)
        for parameter, secret in _PARAMETER.findall(f";{value}") if has_parameters else ():
            if is_secret(parameter) or is_secret_of_service(parameter) or parameter.lower() in ("sig", "pwd"):
                keep_secret(secret)


def keep_login(user: str, password: str) -> None:
    """The same for one login, also as HTTP's Basic authentication writes it."""
    keep_secret(password)
    if user and password:
        keep_secret(b64encode(f"{unquote(user)}:{unquote(password)}".encode()).decode())
        keep_secret(b64encode(f"{user}:{password}".encode()).decode())


def _users(name: str) -> Iterator[str]:
    """The settings that may have the user of this one, if it is a password; named alike, as a catalog's `auth` does."""
    for password, users in (("password", ("username", "user", "login")), ("client_secret", ("client_id",))):
        if name.endswith(password):
            yield from (name.removesuffix(password) + user for user in users)


def _flat(settings: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The texts and numbers among settings, including nested ones, such as a catalog's `auth`, and lists."""
    for name, value in settings.items():
        match value:
            case Mapping():
                yield from ((f"{name}.{inner}", text) for inner, text in _flat(value))
            case list() | tuple():
                yield from (
                    (f"{name}.{inner}", text) for inner, text in _flat({str(i): v for i, v in enumerate(value)})
                )
            case str() | int() if not isinstance(value, bool):
                yield name, str(value)


def _secrets(settings: Mapping[str, Any]) -> Iterator[str]:
    for name, value in settings.items():
        if isinstance(value, str) and value and is_secret(name):
            yield value
            yield " ".join(value.split())  # as in a `LithifyError`, on one line
            for option, *quoted in _LOGIN_OPTION.findall(value):  # of `sasl.jaas.config`
                if is_secret(option):
                    yield from filter(None, quoted)
                    yield from filter(None, (_ESCAPED.sub(r"\1", one) for one in quoted))
