"""One request to a gateway and its answer, within bounds: of time, of size, of repetitions.

    GET     repeated if the connection was refused or reset, a few times within a second; connections are kept for it
    others  sent once, on a connection of their own: without an answer it is not known what was done

Python's own client is used: importing it costs a third of what importing `requests` does. It follows no redirect, so
that the token goes nowhere else.
"""

from __future__ import annotations

import ssl
import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from http.client import (
    HTTPConnection,
    HTTPException,
    HTTPResponse,
    HTTPSConnection,
    IncompleteRead,
    RemoteDisconnected,
)
from socket import gaierror
from typing import TypeVar

import lithify
from lithify.errors import GatewayError, LithifyError, RefusedError, UnknownOutcomeError
from lithify.gateway.client.address import AUTHORITIES_VARIABLE, Address

T = TypeVar("T")

CONNECT_S = 10.0
ANSWER_S = 300.0
"""Without a byte of an answer. The gateway waits for its stores, too, and has a patience of its own with each."""
SILENT_S = 60.0
"""Without an event or a comment, of which a gateway sends one every 15 s."""
PAUSES_S = (0.1, 0.4)
MOST_BYTES = 256 * 2**20
"""Of an answer, or of an event: more than any report has."""
_AGAIN = (ConnectionRefusedError, ConnectionResetError, BrokenPipeError, RemoteDisconnected)
_IS_IT_TLS = "check whether the URL begins with http:// or https://"
_OTHER_NAME, _OUT_OF_DATE = (62, 64), (9, 10)
"""Codes of OpenSSL's `X509_V_ERR_…`, which `ssl` does not name."""


@dataclass(frozen=True, slots=True)
class Request:
    """`path` is below the gateway's, with the query. `look` says how to find out whether it was done."""

    method: str
    path: str
    body: bytes | None = None
    look: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def changes(self) -> bool:
        return self.method != "GET"


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back."""

    status: int
    kind: str
    """The media type, in lower case."""
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    """By name, in lower case."""


def answer_of(response: HTTPResponse, body: bytes) -> Answer:
    headers = {name.lower(): value for name, value in response.headers.items()}
    return Answer(response.status, response.headers.get_content_type(), body, headers)


class Connection:
    """Requests to one gateway, one after the other."""

    def __init__(self, address: Address, within_s: float = ANSWER_S) -> None:
        """`within_s` is the longest silence of a gateway before its answer."""
        self.address, self._within_s = address, within_s
        self._kept: HTTPConnection | None = None
        self._trusted: ssl.SSLContext | None = None

    def ask(self, request: Request, *, within_s: float | None = None) -> Answer:
        """An answer of any status. Raises `GatewayError`, or `UnknownOutcomeError` for what may change something."""
        return _repeated(request, lambda: self._asked(request, self._within_s if within_s is None else within_s))

    @contextmanager
    def stream(self, request: Request, *, within_s: float = SILENT_S) -> Iterator[HTTPResponse]:
        """An answer that comes little by little, never silent for longer than that.

        Raises as `ask` does until it begins. Then `OSError` or `HTTPException` from its methods say that it broke off.
        """
        connection, response = _repeated(request, lambda: self._begun(request, within_s))
        with closing(connection), response:
            yield response

    def _begun(self, request: Request, within_s: float) -> tuple[HTTPConnection, HTTPResponse]:
        connection = self._connected(self._within_s)
        return connection, self._sent(connection, request, within_s)

    def close(self) -> None:
        kept, self._kept = self._kept, None
        if kept is not None:
            kept.close()

    def _asked(self, request: Request, within_s: float) -> Answer:
        kept, self._kept = (None, self._kept) if request.changes else (self._kept, None)
        connection = kept or self._connected(within_s)
        response = self._sent(connection, request, within_s)
        try:
            with response:
                answer = answer_of(response, self._read(response))
        except (OSError, HTTPException) as error:
            connection.close()
            raise self._broken(request, error) from None
        except BaseException:
            connection.close()
            raise
        if request.changes or response.will_close:
            connection.close()
        else:
            self._kept = connection
        return answer

    def _read(self, response: HTTPResponse) -> bytes:
        """The whole body. Raises `GatewayError`, or `OSError` for one that is cut: `read` returns what has come."""
        body = response.read(MOST_BYTES + 1)
        if len(body) > MOST_BYTES:
            raise GatewayError(
                f"the gateway at {self.address.url} answered with more than {MOST_BYTES >> 20} MiB",
                hint="ask for less, such as for one topic",
            )
        if response.length:
            raise RemoteDisconnected("the connection was closed within the answer")
        return body

    def _connected(self, within_s: float) -> HTTPConnection:
        """A new connection. Raises `_FailedError`."""
        address, proxy = self.address, self.address.proxy
        where = (address.host, address.port) if proxy is None else (proxy.host, proxy.port)
        connection: HTTPConnection
        if address.is_tls:
            connection = HTTPSConnection(*where, timeout=min(CONNECT_S, within_s), context=self._context())
            if proxy is not None:
                connection.set_tunnel(address.host, address.port, self._of_proxy())
        else:
            connection = HTTPConnection(*where, timeout=min(CONNECT_S, within_s))
        try:
            connection.connect()
        except (OSError, HTTPException) as error:
            connection.close()
            raise _FailedError(_unreached(address.url, error), isinstance(error, _AGAIN)) from None
        return connection

    def _sent(self, connection: HTTPConnection, request: Request, within_s: float) -> HTTPResponse:
        """The beginning of the answer. Raises `_FailedError`."""
        address, path = self.address, self.address.path + request.path
        is_proxied = address.proxy is not None and not address.is_tls
        headers = {
            "Host": address.authority,
            "User-Agent": f"lithify/{lithify.__version__}",
            "Accept": "application/json",
            **({} if address.token is None else {"Authorization": f"Bearer {address.token}"}),
            **({} if request.body is None else {"Content-Type": "application/json"}),
            **(self._of_proxy() if is_proxied else {}),
            **request.headers,
        }
        target = f"http://{address.authority}{path}" if is_proxied else path
        try:
            if connection.sock is not None:
                connection.sock.settimeout(within_s)
            with suppress(ConnectionResetError, BrokenPipeError):  # who refuses a body may answer before all of it came
                connection.request(request.method, target, request.body, headers)
            return connection.getresponse()
        except (OSError, HTTPException) as error:
            connection.close()
            raise self._broken(request, error) from None
        except BaseException:
            connection.close()
            raise

    def _of_proxy(self) -> dict[str, str]:
        proxy = self.address.proxy
        if proxy is None or proxy.credentials is None:
            return {}
        return {"Proxy-Authorization": f"Basic {b64encode(proxy.credentials.encode()).decode()}"}

    def _context(self) -> ssl.SSLContext:
        if self._trusted is None:
            path = self.address.authorities
            try:
                self._trusted = ssl.create_default_context(cafile=path)
            except (OSError, ssl.SSLError) as error:
                raise RefusedError(
                    f"{path}: the certificates cannot be read: {error.strerror or error}",
                    hint=f"correct --gateway-ca or ${AUTHORITIES_VARIABLE}",
                ) from None
        return self._trusted

    def _broken(self, request: Request, error: Exception) -> _FailedError:
        """The request may have arrived."""
        told = f"the gateway at {self.address.url} did not answer: {reason_of(error)}"
        if request.changes:
            unknown = f"{told}; whether it did what was requested is not known"
            return _FailedError(UnknownOutcomeError(unknown, hint=request.look), may_pass=False)
        return _FailedError(GatewayError(told, hint=_IS_IT_TLS), isinstance(error, _AGAIN))


def _repeated(request: Request, send: Callable[[], T]) -> T:
    """What `send` returns; a look is sent again where that may pass. Raises what has failed."""
    pauses = iter(() if request.changes else PAUSES_S)
    while True:
        try:
            return send()
        except _FailedError as failed:
            pause = next(pauses, None) if failed.may_pass else None
            if pause is None:
                raise failed.told from None
        time.sleep(pause)


class _FailedError(Exception):
    """A request that failed: with which error, and whether a repetition may pass."""

    def __init__(self, told: LithifyError, may_pass: bool) -> None:
        super().__init__(str(told))
        self.told, self.may_pass = told, may_pass


def _unreached(url: str, error: Exception) -> GatewayError:
    """Nothing was sent."""
    match error:
        case ssl.SSLCertVerificationError():
            return GatewayError(
                f"{url}: its certificate is not trusted: {error.verify_message.rstrip('.')}",
                hint=_certificate_hint(error.verify_code),
            )
        case ssl.SSLError():
            return GatewayError(f"{url}: no connection by TLS: {reason_of(error)}", hint=_IS_IT_TLS)
        case gaierror():
            return GatewayError(f"{url}: the host is not known: {reason_of(error)}", hint="correct the URL")
        case _:
            return GatewayError(
                f"no gateway can be reached at {url}: {reason_of(error)}",
                hint="start one there with `lithify gateway run`, or correct the URL",
            )


def _certificate_hint(verify_code: int) -> str:
    if verify_code in _OTHER_NAME:
        return "use a name or an address that is in the certificate, or give the gateway a certificate with this one"
    if verify_code in _OUT_OF_DATE:
        return "give the gateway a certificate that is valid now, and check the clock of this machine"
    return "name the file of the authority that signed it by --gateway-ca"


def reason_of(error: Exception) -> str:
    """Why a connection has failed, in a few words."""
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, IncompleteRead):
        return "the connection was closed"
    if isinstance(error, ssl.SSLError):
        return str(error.reason or error).lower().replace("_", " ")
    strerror = getattr(error, "strerror", None)
    return str(strerror or error or type(error).__name__).strip()
