"""Where a gateway is, how it is reached, and the token by which it knows who asks.

    token           --gateway-token-file, else $LITHIFY_GATEWAY_TOKEN, else the file at $LITHIFY_GATEWAY_TOKEN_FILE
    certificates    --gateway-ca, else $LITHIFY_GATEWAY_CA, else those that the machine trusts

The token is never a word of the command line, which every user of a machine can read. Over http:// it goes to this
machine only, unless the caller allows more.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import unquote, urlsplit

from lithify.errors import RefusedError
from lithify.errors.redaction import keep_secret

TOKEN_VARIABLE = "LITHIFY_GATEWAY_TOKEN"
TOKEN_FILE_VARIABLE = "LITHIFY_GATEWAY_TOKEN_FILE"
AUTHORITIES_VARIABLE = "LITHIFY_GATEWAY_CA"
PLAIN_VARIABLE = "LITHIFY_GATEWAY_INSECURE_NO_TLS"
LONGEST_TOKEN = 4_096
_EXAMPLE = "write http://HOST:PORT or https://HOST:PORT"
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Trust:
    """What a caller says beside the URL; None and False leave it to the environment."""

    token_file: str | None = None
    authorities: str | None = None
    """A file of certificates that are trusted instead of the machine's."""
    allows_plain: bool = False
    """Whether the token may be sent to another machine as plain text."""


NO_MORE = Trust()


@dataclass(frozen=True, slots=True)
class Proxy:
    """What requests are sent through."""

    host: str
    port: int
    credentials: str | None = field(default=None, repr=False)
    """`user:password`."""


@dataclass(frozen=True, slots=True)
class Address:
    """`path` is what precedes `/api/v1`, where a reverse proxy serves the gateway below one."""

    url: str
    host: str
    port: int
    path: str
    is_tls: bool
    token: str | None = field(default=None, repr=False)
    authorities: str | None = None
    proxy: Proxy | None = None

    @property
    def authority(self) -> str:
        """`HOST:PORT`, as the header Host has it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS["https" if self.is_tls else "http"] else f"{host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        return _is_loopback(self.host)


def address_of(url: str, trust: Trust = NO_MORE) -> Address:
    """The address in a URL, with what the caller and the environment say. Raises `RefusedError`."""
    try:
        parts = urlsplit(url.strip())
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise RefusedError(f"{url}: not the URL of a gateway: {error}", hint=_EXAMPLE) from None
    if parts.username is not None or parts.password is not None:
        raise RefusedError(
            "the URL of the gateway has a user name or a password",
            hint=f"set ${TOKEN_VARIABLE} or ${TOKEN_FILE_VARIABLE} instead",
        )
    if parts.scheme not in _PORTS or not host or parts.query or parts.fragment or not _is_plain(url.strip()):
        raise RefusedError(f"{url}: not the URL of a gateway", hint=_EXAMPLE)
    if parts.path.rstrip("/").endswith("/api/v1"):
        raise RefusedError(f"{url}: not the URL of a gateway", hint="leave out /api/v1")
    address = Address(
        url=url.strip().rstrip("/"),
        host=host,
        port=_PORTS[parts.scheme] if port is None else port,
        path=parts.path.rstrip("/"),
        is_tls=parts.scheme == "https",
        token=_token(trust.token_file),
        authorities=trust.authorities or os.environ.get(AUTHORITIES_VARIABLE) or None,
        proxy=_proxy(parts.scheme, host),
    )
    if address.token is not None and not (address.is_tls or address.is_loopback or _allows_plain(trust)):
        raise RefusedError(
            f"{address.url}: over http:// the token would be sent to another machine as plain text",
            hint="write https://; to accept that others may read the token: --gateway-insecure-no-tls",
        )
    return address


def _allows_plain(trust: Trust) -> bool:
    return trust.allows_plain or os.environ.get(PLAIN_VARIABLE, "").strip() == "1"


def _is_plain(url: str) -> bool:
    """Without characters that would end a line of a request."""
    return url.isascii() and url.isprintable() and " " not in url


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _token(given_file: str | None) -> str | None:
    """The token, kept out of all texts from now on."""
    if given_file is not None:
        token, source = _read(given_file), given_file
    elif token := os.environ.get(TOKEN_VARIABLE, "").strip():
        source = f"${TOKEN_VARIABLE}"
    elif source := os.environ.get(TOKEN_FILE_VARIABLE, ""):
        token = _read(source)
    else:
        return None
    token = token.strip()
    if token:
        keep_secret(token)
    if not token or not _is_plain(token) or len(token) > LONGEST_TOKEN:
        raise RefusedError(
            f"{source} has no token of a gateway", hint="put into it what `lithify token create` printed"
        )
    return token


def _read(path: str) -> str:
    try:
        with Path(path).open(encoding="utf-8", errors="replace") as file:
            return file.read(2 * LONGEST_TOKEN)
    except OSError as error:
        raise RefusedError(
            f"{path}: the token of the gateway cannot be read: {error.strerror}",
            hint=f"correct --gateway-token-file or ${TOKEN_FILE_VARIABLE}",
        ) from None


def _proxy(scheme: str, host: str) -> Proxy | None:
    """What `http_proxy`, `https_proxy` and `no_proxy` say, as for other programs; none for this machine."""
    if _is_loopback(host) or not any(name.lower().endswith("_proxy") for name in os.environ):
        return None
    from urllib.request import getproxies, proxy_bypass

    proxies = getproxies()
    given = proxies.get(scheme) or proxies.get("all")
    if not given or proxy_bypass(host):
        return None
    instead = "set no_proxy to the host of the gateway, to reach it directly"
    try:
        parts = urlsplit(given if "://" in given else f"http://{given}")
        proxy, port = parts.hostname, parts.port or _PORTS["http"]
    except ValueError:  # its text may have the password
        raise RefusedError("the proxy of the environment is not http://HOST:PORT", hint=instead) from None
    if parts.scheme != "http" or not proxy:
        raise RefusedError(
            f"the proxy of the environment is not http://HOST:PORT: {parts.scheme}://{proxy}", hint=instead
        )
    credentials = None
    if parts.username:
        credentials = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        keep_secret(unquote(parts.password or ""))
    return Proxy(proxy, port, credentials)
