"""Logins of Kafka's clients: `sasl.jaas.config` of Java's clients, and what librdkafka has for it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from lithify.errors import InvalidSettingError

JAAS = "sasl.jaas.config"
MECHANISM = "sasl.mechanism"
LOGIN_FORM = 'write MODULE required username="NAME" password="PASSWORD"; including the semicolon'
USER, PASSWORD = "sasl.username", "sasl.password"
_MODULES = "org.apache.kafka.common.security"
_TOKEN_URL = "sasl.oauthbearer.token.endpoint.url"
_EXTENSION = "extension_"
_LOGIN = re.compile(r"([\w.$]+)\s+\w+(?:\s+(.*))?", re.DOTALL)
_OPTION = re.compile(r"""([\w.]+)\s*=\s*(?:"((?:\\.|[^"\\])*)"|'((?:\\.|[^'\\])*)'|([^\s;"']+))\s*""", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Login:
    """`module` is the name of a Java class without its package."""

    module: str
    options: Mapping[str, str] = field(repr=False)  # secrets


def read_login(text: str) -> Login:
    """A value of `sasl.jaas.config`. Raises `InvalidSettingError`, without the value, which is a secret."""
    body, semicolon, rest = text.strip().rpartition(";")
    match = _LOGIN.fullmatch(body.strip()) if semicolon and not rest else None
    options = None if match is None else _options(match[2] or "")
    if match is None or options is None:
        raise InvalidSettingError(f"{JAAS} is not a login", hint=LOGIN_FORM)
    return Login(match[1].rpartition(".")[2], options)


def _options(text: str) -> dict[str, str] | None:
    """The options of a login; None for anything else. One after the other, as a search would take hours for some."""
    options: dict[str, str] = {}
    at = 0
    while at < len(text):
        option = _OPTION.match(text, at)
        if option is None:
            return None
        name, double, single, bare = option.groups("")
        options[name] = _ESCAPED.sub(r"\1", double or single or bare)
        at = option.end()
    return options


def login_of_librdkafka(conf: Mapping[str, str]) -> dict[str, str]:
    """What stands for `sasl.jaas.config` in librdkafka's settings. Raises `InvalidSettingError`."""
    if not conf.get(JAAS):
        return {}
    login = read_login(conf[JAAS])
    options = login.options
    match login.module:
        case "PlainLoginModule" | "ScramLoginModule":
            return _present({USER: options.get("username"), PASSWORD: options.get("password")})
        case "OAuthBearerLoginModule" if _TOKEN_URL in conf:
            extensions = [f"{k.removeprefix(_EXTENSION)}={v}" for k, v in options.items() if k.startswith(_EXTENSION)]
            settings = {
                "sasl.oauthbearer.method": "oidc",
                "sasl.oauthbearer.client.id": options.get("clientId"),
                "sasl.oauthbearer.client.secret": options.get("clientSecret"),
                "sasl.oauthbearer.scope": options.get("scope"),
                "sasl.oauthbearer.extensions": ",".join(extensions) or None,
            }
            return _present(settings)
        case "Krb5LoginModule":
            settings = {
                "sasl.kerberos.principal": options.get("principal"),
                "sasl.kerberos.keytab": options.get("keyTab"),
            }
            return _present(settings)
        case module:
            raise InvalidSettingError(
                f"{JAAS}: Kafka's client for Python does not support the login module {module}",
                hint=f"use PLAIN, SCRAM, Kerberos, or OAUTHBEARER with {_TOKEN_URL}",
            )


def login_of_java(conf: Mapping[str, str]) -> dict[str, str]:
    """`sasl.jaas.config` for librdkafka's user and password. Raises `InvalidSettingError`."""
    user, password, mechanism = conf.get(USER), conf.get(PASSWORD), conf.get(MECHANISM, "")
    if user is None or password is None:
        missing = PASSWORD if password is None else USER
        raise InvalidSettingError(f"{missing} is missing", hint=f"give {USER} and {PASSWORD}, or {JAAS}")
    module = "plain.PlainLoginModule" if mechanism.upper() == "PLAIN" else "scram.ScramLoginModule"
    if module.startswith("scram") and not mechanism.upper().startswith("SCRAM-"):
        raise InvalidSettingError(
            f"{USER} cannot be used with {MECHANISM} {mechanism or 'GSSAPI'}", hint=f"give {JAAS}"
        )
    return {JAAS: f"{_MODULES}.{module} required username={_quoted(user)} password={_quoted(password)};"}


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _present(settings: Mapping[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in settings.items() if value is not None}
