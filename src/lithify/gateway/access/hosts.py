"""Whether a request is meant for this gateway, and whether another web site has a browser send it.

    Host      a name of this gateway? else a site may have given its own name our address (DNS rebinding)
    Origin    the page is ours? else a site has a visitor's browser send what the visitor may do (CSRF)

A program other than a browser sends neither `Origin` nor `Sec-Fetch-Site`, and is not concerned.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from http import HTTPStatus
from ipaddress import IPv6Address, ip_address

from lithify.errors import InvalidInputError
from lithify.gateway.access.heads import Headers
from lithify.gateway.access.refusals import Refusal, forbidden, malformed

SHOWN = 200
"""Characters of a header that an answer repeats."""
LOOPBACK_NAMES = frozenset(("localhost", "127.0.0.1", "::1"))
_AUTHORITY = re.compile(r"(?:\[([0-9A-Fa-f:.]{2,45})\]|([A-Za-z0-9._-]{1,254}))(?::([0-9]{1,5}))?")
_ORIGIN = re.compile(r"(https?)://(.+)")
_DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Authority:
    """A host, in lower case, without brackets and without the dot at its end, and the port if it is named."""

    host: str
    port: int | None

    def without(self, port: int) -> Authority:
        return Authority(self.host, None) if self.port == port else self


def parse_authority(text: str) -> Authority | None:
    """`localhost:7660`, `[::1]:7660`, `gateway.example.org.`; None for anything else, as with a user or a path."""
    match = _AUTHORITY.fullmatch(text)
    if match is None:
        return None
    six, name, digits = match.groups()
    port = None if digits is None else int(digits)
    if port is not None and not 0 < port < 65536:
        return None
    if six is None:
        host = name.lower().removesuffix(".")
        return Authority(host, port) if host and ".." not in name else None
    try:
        return Authority(str(IPv6Address(six)), port)
    except ValueError:
        return None


def checked_host(name: str) -> str:
    """A host that a user allows. Raises `InvalidInputError`."""
    authority = parse_authority(f"[{name}]" if name.count(":") > 1 and "[" not in name else name)
    if authority is None or authority.port is not None:
        raise InvalidInputError(f"{name!r} is not the name of a host", hint="write it without scheme and port")
    return authority.host


@dataclass(frozen=True, slots=True)
class AllowedHosts:
    """The names of a gateway: loopback, the address that a connection has come to, and more."""

    more: frozenset[str] = frozenset()

    def refusal(self, headers: Headers, server: str) -> Refusal | None:
        """Why a request is not meant for it; None if it is. `server` is the address that the connection has come to."""
        text = headers.get(b"host")
        authority = None if text is None else parse_authority(text)
        if authority is None:
            return malformed(
                "the request has no header Host that names a host", hint="send the host of the gateway's URL"
            )
        if authority.host in LOOPBACK_NAMES | self.more or authority.host == _normal(server):
            return None
        return forbidden(
            f"this gateway is not known as {authority.host}",
            hint=f"use its address, or, if that is a name of it, run it with `--allow-host {authority.host}`",
            status=HTTPStatus.MISDIRECTED_REQUEST,
        )


def cross_site_refusal(headers: Headers, scheme: str, *, is_page: bool) -> Refusal | None:
    """Why a request is refused as one of another web site; None if it comes from nowhere else.

    A visitor may follow a link to the page of the gateway. All else that another origin asks is refused, even another
    port of this host: no site of others has to read from a gateway or write to it.
    """
    site, origin = headers.get(b"sec-fetch-site"), headers.get(b"origin")
    follows_link = is_page and headers.get(b"sec-fetch-mode") == "navigate"
    if site not in (None, "none", "same-origin") and not follows_link:
        return forbidden(f"the request comes from another web site (Sec-Fetch-Site: {site[:SHOWN]})")
    if origin is not None and not _is_ours(origin, headers.get(b"host") or "", scheme):
        return forbidden(f"the request comes from another web site (Origin: {origin[:SHOWN]})")
    return None


def _is_ours(origin: str, host: str, scheme: str) -> bool:
    match = _ORIGIN.fullmatch(origin)
    if match is None or (scheme == "https" and match[1] != "https"):  # over HTTP a proxy may have had the TLS
        return False
    port = _DEFAULT_PORTS[match[1]]
    theirs, ours = parse_authority(match[2]), parse_authority(host)
    return theirs is not None and ours is not None and theirs.without(port) == ours.without(port)


def _normal(address: str) -> str:
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    mapped = parsed.ipv4_mapped if isinstance(parsed, IPv6Address) else None
    return str(mapped or parsed)
