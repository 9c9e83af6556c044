"""How to reach a cluster, and who one is there: by Pulsar's own names, as `client.conf` has them.

    --service-url, --admin-url ──┐
    client.conf ─────────────────┴─► ClientConfig ──► connections, admin interface, tasks on other machines

Tokens are in no `repr`, error or log. A token file is read anew at each use, since clusters rotate tokens; it
must be at the same place on all machines that read from the cluster.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from math import inf
from pathlib import Path
from typing import NoReturn
from urllib.parse import unquote, urlsplit

from lithify.errors import BrokerError, InvalidSettingError
from lithify.errors.given_files import read_given
from lithify.errors.redaction import keep_secret
from lithify.model.settings.secrets import keep
from lithify.pulsar.client.login.oauth2 import OAuth2, token_of
from lithify.pulsar.client.login.tls import Tls, check_no_stores

ANSWER_S = 30.0
OUTAGE_S = 120.0

PLUGINS = "org.apache.pulsar.client.impl.auth."
TOKEN, CERTIFICATE = f"{PLUGINS}AuthenticationToken", f"{PLUGINS}AuthenticationTls"
OAUTH2 = f"{PLUGINS}oauth2.AuthenticationOAuth2"
_PORTS = {"pulsar": 6650, "pulsar+ssl": 6651}
_VERIFIES = "tlsEnableHostnameVerification"
"""Other files of Pulsar call it `tlsHostnameVerificationEnabled` (proxies) or `…Enable` (Java's clients)."""
_READ = (
    "brokerServiceUrl",
    "webServiceUrl",
    "authPlugin",
    "authParams",
    "useTls",
    "useKeyStoreTls",
    "tlsTrustCertsFilePath",
    "tlsCertificateFilePath",
    "tlsCertFilePath",
    "tlsKeyFilePath",
    "tlsAllowInsecureConnection",
    _VERIFIES,
)
_MISTYPED = 0.9
"""How like one of these a name is that stands for it; what else Pulsar's tools have in a `client.conf` is not."""
_OWN_NAME = re.compile(r"[\w.-]+")


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """A cluster and a client of it. Times are in seconds."""

    service_url: str
    admin_url: str = ""
    tls: Tls = field(default_factory=Tls)
    token: str = field(default="", repr=False)
    token_file: str = ""
    oauth2: OAuth2 | None = None
    answer_s: float = ANSWER_S
    """The most that a connection, an answer or the next entry may take."""
    outage_s: float = OUTAGE_S
    """How long a reader tries to reach a broker that has gone away."""

    def __post_init__(self) -> None:
        keep_secret(self.token)
        for what, url in (("service", self.service_url), ("admin", self.admin_url)):
            if "@" in url:  # it would be shown wherever the URL is
                hint = "remove it from the URL, and use authPlugin and authParams of client.conf"
                raise InvalidSettingError(
                    f"the {what} URL of the Pulsar cluster contains a user or password", hint=hint
                )
        self.addresses()
        if self.admin_url:
            self.admin_urls()

    @classmethod
    def of(cls, service_url: str = "", admin_url: str = "", conf: Mapping[str, str] | None = None) -> ClientConfig:
        """From the names of `client.conf`; URLs that are given override it. Raises `InvalidSettingError`."""
        given = {name: value.strip() for name, value in (conf or {}).items() if value.strip()}
        keep(given)
        keep_secret(given.get("authParams", ""))
        _check_names(given)
        url = service_url or given.get("brokerServiceUrl", "")
        if not url:
            hint = "give --service-url, or brokerServiceUrl in client.conf"
            raise InvalidSettingError("the service URL of the Pulsar cluster is missing", hint=hint)
        check_no_stores(given, is_on=_flag(given, "useKeyStoreTls"))
        if "proxyServiceUrl" in given:
            hint = "remove it; if the proxy is Pulsar's own, give its address as brokerServiceUrl"
            raise InvalidSettingError(
                "proxyServiceUrl of client.conf: Lithify does not support such a proxy", hint=hint
            )
        if _flag(given, "useTls") and url.startswith("pulsar://"):
            url = "pulsar+ssl" + url.removeprefix("pulsar")
        config = cls(url, admin_url or given.get("webServiceUrl", ""), _tls_of(given))
        return _authenticated(config, given.get("authPlugin", ""), given.get("authParams", ""))

    def waiting(self, outage_s: float) -> ClientConfig:
        """The same, with no longer waits than this. Raises `InvalidSettingError`."""
        if not 0 < outage_s < inf:
            raise InvalidSettingError(f"outage_s={outage_s} is not a time to wait", hint="give seconds, more than 0")
        return replace(self, outage_s=outage_s, answer_s=min(self.answer_s, outage_s))

    @property
    def uses_tls(self) -> bool:
        return self.service_url.startswith("pulsar+ssl:")

    def addresses(self) -> tuple[tuple[str, int], ...]:
        """Host and port of every broker or proxy that the service URL names. Raises `InvalidSettingError`."""
        scheme, separator, hosts = self.service_url.partition("://")
        if scheme not in _PORTS or not separator or not hosts.strip("/"):
            hint = "write it as pulsar://host:6650, or pulsar+ssl://host:6651"
            raise InvalidSettingError(f"{self.service_url!r} is not the service URL of a Pulsar cluster", hint=hint)
        return tuple(address_of(f"{scheme}://{host}") for host in hosts.rstrip("/").split(","))

    def admin_urls(self) -> tuple[str, ...]:
        """Of every admin interface that the URL names. Raises `InvalidSettingError`."""
        scheme, *_ = self.admin_url.partition("://")
        first, *others = self.admin_url.split(",")
        urls = (first, *(f"{scheme}://{host}" for host in others))
        if scheme not in ("http", "https") or not all(map(_names_a_host, urls)):
            raise InvalidSettingError(f"{self.admin_url!r} is not the URL of an admin interface, http://host:port")
        return urls

    def login(self) -> tuple[str, bytes]:
        """Pulsar's name of the authentication method, empty if there is none, and what to say. Raises `BrokerError`."""
        token = self.token if self.oauth2 is None else token_of(self.oauth2, self.answer_s)
        if self.token_file:
            try:
                token = read_given(self.token_file).decode("utf-8-sig").strip()
            except (OSError, UnicodeDecodeError) as error:
                why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
                raise BrokerError(f"the token cannot be read from {self.token_file}: {why}") from error
        keep_secret(token)
        if self.token_file and not token:
            raise BrokerError(f"{self.token_file} has no token", hint="check authParams")
        if not (token.isascii() and token.isprintable()):  # no header can have it, and errors of libraries show it
            place = f"in {self.token_file}" if self.token_file else "of authParams"
            place = place if self.oauth2 is None else f"that {self.oauth2.issuer_url} has issued"
            raise BrokerError(f"the token {place} is not one line of ASCII", hint="check authParams")
        if token:
            return "token", token.encode()
        return ("tls", b"") if self.tls.certificate_file else ("", b"")


def conf_of(file: Path) -> dict[str, str]:
    """What a `client.conf` says. Raises `InvalidSettingError`, also for what only Java's properties have."""
    try:
        text = read_given(file, pipes=True).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"  # the error shows what is there
        raise InvalidSettingError(f"{file} cannot be read: {why}") from error
    conf = {}
    ended = re.split(r"\r\n|\r|\n", text)  # Java knows no other ends: those may be in a token
    for number, line in enumerate(map(str.strip, ended), 1):
        name, separator, value = line.partition("=")
        if not line or line[0] in "#!":
            continue
        if not _OWN_NAME.fullmatch(name.strip()) or not separator or value.endswith("\\"):
            hint = "write name=value, without escapes and on one line"
            raise InvalidSettingError(f"{file}: line {number} is not a setting", hint=hint)  # it may be a secret
        conf[name.strip()] = value.strip()
    return conf


def _check_names(conf: Mapping[str, str]) -> None:
    """Raises `InvalidSettingError` for a mistyped name: without it, no host name might be verified, for example."""
    missing = {name.lower(): name for name in _READ if name not in conf}
    for name in conf:
        spelled = _VERIFIES.lower() if "hostname" in name.lower() else name.lower()
        if name not in _READ and (meant := get_close_matches(spelled, missing, 1, _MISTYPED)):
            hint = f"did you mean {missing[meant[0]]}?"
            raise InvalidSettingError(f"{name} of client.conf is not a setting of a Pulsar client", hint=hint)


def address_of(url: str) -> tuple[str, int]:
    """Host and port of one broker. Raises `InvalidSettingError`."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port or _PORTS[parts.scheme]
    except (KeyError, ValueError):
        host, port = None, 0
    if not host:
        raise InvalidSettingError(f"{url!r} is not the address of a Pulsar broker")
    return host, port


def _names_a_host(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.hostname is not None and parts.port != 0
    except ValueError:
        return False


def _tls_of(conf: Mapping[str, str]) -> Tls:
    return Tls(
        conf.get("tlsTrustCertsFilePath", ""),
        conf.get("tlsCertificateFilePath") or conf.get("tlsCertFilePath", ""),  # 0.2.0 knew the latter only
        conf.get("tlsKeyFilePath", ""),
        _flag(conf, "tlsAllowInsecureConnection"),
        _flag(conf, _VERIFIES),
    )


def _flag(conf: Mapping[str, str], name: str) -> bool:
    value = conf.get(name, "false").lower()
    if value not in ("true", "false"):
        raise InvalidSettingError(f"{name} must be true or false, not {value!r}")
    return value == "true"


def _authenticated(config: ClientConfig, plugin: str, parameters: str) -> ClientConfig:
    """As Pulsar's plug-ins read `authParams`."""
    if plugin == TOKEN:
        return _with_token(config, parameters)
    if plugin == CERTIFICATE:
        if parameters.startswith("{"):
            pairs = {str(name): str(value) for name, value in _json(parameters).items()}
        else:
            pairs = dict(re.findall(r"(\w+):([^,]*)", parameters))
        certificate, key = pairs.get("tlsCertFile", ""), pairs.get("tlsKeyFile", "")
        if not certificate:
            hint = "write tlsCertFile:/path/to/certificate,tlsKeyFile:/path/to/key"
            raise InvalidSettingError("authParams has no certificate", hint=hint)
        return replace(config, tls=replace(config.tls, certificate_file=certificate, key_file=key))
    if plugin == OAUTH2:
        return replace(config, oauth2=OAuth2.of(_json(parameters)))
    if plugin:
        hint = f"use {TOKEN}, {OAUTH2} or {CERTIFICATE}"
        raise InvalidSettingError(f"the authPlugin {plugin} is not supported", hint=hint)
    return config


def _with_token(config: ClientConfig, parameters: str) -> ClientConfig:
    if parameters.startswith("file:"):
        file = unquote(re.sub(r"^//[^/]*", "", parameters.removeprefix("file:")))
        return replace(config, token_file=file or _no_token())
    token = parameters.removeprefix("token:")
    if token.startswith("{"):
        json_token = _json(token).get("token")
        token = json_token if isinstance(json_token, str) else ""
    return replace(config, token=token.strip() or _no_token())


def _no_token() -> NoReturn:
    raise InvalidSettingError("authParams has no token", hint="write token:... or file:///path/to/token")


def _json(text: str) -> Mapping[str, object]:
    try:
        parameters = json.loads(text)
    except (ValueError, RecursionError):
        parameters = None
    if not isinstance(parameters, dict):
        raise InvalidSettingError("authParams looks like JSON but is not an object")  # its text is secret
    return parameters
