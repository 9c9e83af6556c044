"""Whether a gateway may listen where it is to listen.

127.0.0.1, [::1], localhost     no token needed, unless they are required
anything else                   needs tokens and TLS, or flags that name the risk
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address

from lithify.errors import RefusedError

NO_TOKENS, NO_TLS = "--insecure-no-tokens", "--insecure-no-tls"


@dataclass(frozen=True, slots=True)
class Address:
    """To connect to. `host` is an address or a name."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class ListenAddress(Address):
    """`host` is an address, or a name that is resolved when it is listened on; port 0 is any that is free.

    `localhost` is 127.0.0.1, whatever it may be resolved to.
    """

    def __post_init__(self) -> None:
        if self.host.lower() == "localhost":
            object.__setattr__(self, "host", "127.0.0.1")

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine reaches it. A name may stand for any address."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return False


@dataclass(frozen=True, slots=True)
class Protection:
    """What a gateway is started with.

    `tokens` are those that have not expired, None if there is no database for them; `tls` is whether there is a
    certificate.
    """

    tokens: int | None
    tls: bool
    requires_tokens: bool = False
    insecure_no_tokens: bool = False
    insecure_no_tls: bool = False


@dataclass(frozen=True, slots=True)
class Listening:
    """That it may start: whether each request needs a token, and what a person should be told."""

    address: ListenAddress
    needs_token: bool
    warnings: tuple[str, ...] = ()


def may_listen(
    address: ListenAddress, given: Protection, *, allows: str = "read, change and delete everything"
) -> Listening:
    """Decides whether a gateway may start, whose address `allows` that much. Raises `RefusedError`."""
    if given.requires_tokens and given.insecure_no_tokens:
        raise RefusedError(f"--require-tokens and {NO_TOKENS} contradict each other", hint="use only one of them")
    needs_token = given.requires_tokens or not (address.is_loopback or given.insecure_no_tokens)
    needs_tls = not (address.is_loopback or given.tls or given.insecure_no_tls)
    if (needs_token and not given.tokens) or needs_tls:
        raise _refused(address, given, no_token=needs_token and not given.tokens, no_tls=needs_tls)
    warnings = []
    if not address.is_loopback and not needs_token:
        warnings.append(f"{address}: without tokens: who reaches this port may {allows}")
    if not address.is_loopback and not given.tls:
        warnings.append(f"{address}: without TLS: who is on the way reads all records, and the tokens")
    return Listening(address, needs_token, tuple(warnings))


def _refused(address: ListenAddress, given: Protection, *, no_token: bool, no_tls: bool) -> RefusedError:
    missing, hints = [], []
    if no_token:
        missing.append("there is no database for tokens" if given.tokens is None else "there is no valid token")
        hints.append(
            "pass --coordination-url" if given.tokens is None else "run `lithify token create NAME --grant admin`"
        )
    if no_tls:
        missing.append("there is no certificate")
        hints.append("pass --tls-certificate and --tls-key")
    risks = {NO_TOKENS: no_token and not given.requires_tokens, NO_TLS: no_tls}
    flags = [flag for flag, is_one in risks.items() if is_one]
    otherwise = f"; to accept the risk: {' '.join(flags)}" if flags else ""
    local = "" if address.is_loopback else ", or listen on 127.0.0.1"
    reach = "requires tokens" if address.is_loopback else "other machines reach it"
    return RefusedError(
        f"a gateway does not start on {address}: {reach}, and {' and '.join(missing)}",
        hint=f"{' and '.join(hints)}{local}{otherwise}",
    )
