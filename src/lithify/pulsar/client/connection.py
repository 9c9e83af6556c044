"""One connection to a broker, or through a proxy to one: opened, logged in, used for requests, and read.

    connect ─► (TLS) ─► CONNECT ─► CONNECTED
    request ─► answer with the same id            what comes in between waits for `received`
    PING, AUTH_CHALLENGE                          are answered whenever the connection is listened to

Every wait has a deadline. A connection belongs to one thread at a time.
"""

from __future__ import annotations

import select
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Self

from lithify.errors import BrokerError
from lithify.pulsar.client.broker_refusals import TransientBrokerError, refusal
from lithify.pulsar.client.commands_pb2 import AuthData, BaseCommand
from lithify.pulsar.client.config import ClientConfig
from lithify.pulsar.client.frames import Frame, Frames, framed
from lithify.waits.deadline import Deadline

PROTOCOL_VERSION: Final = 21
CLIENT_VERSION: Final = "Lithify"
RECEIVE_BUFFER_BYTES: Final = 4 << 20

_FIELDS: Final = {field.number: field.name for field in BaseCommand.DESCRIPTOR.fields if field.name != "type"}
_NUMBERS: Final = {name: number for number, name in _FIELDS.items()}
ERROR: Final = _NUMBERS["error"]
PING: Final = _NUMBERS["ping"]
AUTH_CHALLENGE: Final = _NUMBERS["auth_challenge"]
CONNECTED: Final = _NUMBERS["connected"]
_ATTENDED: Final = (PING, AUTH_CHALLENGE)
_ANSWERS: Final = frozenset(
    _NUMBERS[name]
    for name in (
        "success",
        "error",
        "ack_response",
        "partition_metadata_response",
        "lookup_topic_response",
        "get_last_message_id_response",
    )
)


def command(name: str) -> BaseCommand:
    """An empty command; `name` is its field."""
    made = BaseCommand(type=_NUMBERS[name])
    getattr(made, name).SetInParent()
    return made


class Connection:
    """Logged in. `broker` is whom a proxy at `address` is to pass everything on to, as host:port."""

    def __init__(self, config: ClientConfig, address: tuple[str, int], broker: str = "") -> None:
        """Raises `BrokerError`, of which `TransientBrokerError` if no broker answers there."""
        self._config = config
        self.address, self.broker = address, broker
        self.where = f"{address[0]}:{address[1]}"
        if broker not in ("", self.where):
            self.where += f" for {broker}"
        self._last_request = 0
        self._waiting: list[Frame] = []
        deadline = Deadline(config.answer_s)
        self._socket = self._connected(deadline)
        self._descriptor = self._socket.fileno()
        """Of a socket that is closed there is none to ask for."""
        self._frames = Frames(self._socket, self.where)
        try:
            self._log_in(deadline)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def local_port(self) -> int:
        return int(self._socket.getsockname()[1])

    def close(self) -> None:
        """Ends it, and what depends on it. A thread that listens to it gets an error."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def send(self, sent: BaseCommand) -> None:
        """Raises `TransientBrokerError`."""
        try:
            self._socket.settimeout(self._config.answer_s)
            self._socket.sendall(framed(sent))
        except (OSError, ValueError) as error:
            raise TransientBrokerError(f"{self.where}: the connection broke: {error}") from error

    def new_request(self) -> int:
        """An id for a request."""
        self._last_request += 1
        return self._last_request

    def request(self, sent: BaseCommand, about: str) -> BaseCommand:
        """The answer to a request, which has an id. Raises the error that the broker answers with, or `BrokerError`.

        `about` says what is asked about, for errors.
        """
        request_id = getattr(sent, _FIELDS[sent.type]).request_id
        self.send(sent)
        deadline, earlier = Deadline(self._config.answer_s), self._waiting
        while True:
            self._waiting = []
            frames = self.received(deadline)
            for number, (answer, _) in enumerate(frames):
                if answer.type in _ANSWERS and getattr(answer, _FIELDS[answer.type]).request_id == request_id:
                    self._waiting = earlier + frames[number + 1 :]
                    return self._unless_refused(answer, about)
                earlier.append(frames[number])

    def received(self, deadline: Deadline) -> list[Frame]:
        """What has come, at least one frame. Raises `TransientBrokerError` at the deadline or when it breaks."""
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            return waiting
        while True:
            frames = self._frames.whole()
            kept = [frame for frame in frames if frame[0].type not in _ATTENDED]
            if len(kept) < len(frames):
                self._attend(frames)
            if kept:
                return kept
            try:
                left_s = deadline.left_s()
            except TimeoutError as error:
                raise TransientBrokerError(f"{self.where}: {error}") from error
            self._frames.receive(left_s)

    def arrived(self, wait_s: float) -> list[Frame] | None:
        """What has come after at most so long, without those that are answered here; None: not a byte."""
        if waiting := self._waiting:
            self._waiting = []
            return waiting
        if not self.wait_for_bytes(wait_s):
            return None
        self._frames.receive(self._config.answer_s)
        frames = self._frames.whole()
        self._attend(frames)
        return [frame for frame in frames if frame[0].type not in _ATTENDED]

    def wait_for_bytes(self, wait_s: float) -> bool:
        """Whether there are any after at most so long, or an end of the connection, which the next read tells.

        Any thread may wait while another one uses the connection, or closes it.
        """
        is_pending = isinstance(self._socket, ssl.SSLSocket) and self._socket.pending() > 0
        poll = select.poll()
        poll.register(self._descriptor, select.POLLIN)
        return is_pending or bool(poll.poll(wait_s * 1000))

    def _attend(self, frames: list[Frame]) -> None:
        for received, _ in frames:
            if received.type == PING:
                self.send(command("pong"))
            elif received.type == AUTH_CHALLENGE:
                answer = command("auth_response")
                method, data = self._config.login()
                answer.auth_response.client_version = CLIENT_VERSION
                answer.auth_response.protocol_version = PROTOCOL_VERSION
                answer.auth_response.response.CopyFrom(AuthData(auth_method_name=method, auth_data=data))
                self.send(answer)

    def _unless_refused(self, answer: BaseCommand, about: str) -> BaseCommand:
        response = getattr(answer, _FIELDS[answer.type])
        if answer.type == ERROR or (hasattr(response, "error") and response.HasField("error")):
            raise refusal(response.error, response.message, f"{about} at {self.where}")
        return answer

    def _connected(self, deadline: Deadline) -> socket.socket:
        host, port = self.address
        return _attempted(lambda: self._secured(socket.create_connection((host, port), deadline.left_s())), self.where)

    def _secured(self, plain: socket.socket) -> socket.socket:
        """With TLS if the service URL requires it."""
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if not self._config.uses_tls:
            return plain
        try:
            return self._config.tls.context().wrap_socket(plain, server_hostname=self.address[0])
        except BaseException:
            plain.close()
            raise

    def _log_in(self, deadline: Deadline) -> None:
        sent = command("connect")
        sent.connect.client_version, sent.connect.protocol_version = CLIENT_VERSION, PROTOCOL_VERSION
        sent.connect.feature_flags.supports_auth_refresh = True
        sent.connect.feature_flags.supports_broker_entry_metadata = True
        sent.connect.feature_flags.supports_get_partitioned_metadata_without_auto_creation = True
        method, data = self._config.login()
        if method:
            sent.connect.auth_method_name, sent.connect.auth_data = method, data
        if self.broker:
            sent.connect.proxy_to_broker_url = self.broker
        self.send(sent)
        (answer, _), *self._waiting = self.received(deadline)
        if answer.type == ERROR:
            raise refusal(answer.error.error, answer.error.message, self.where)
        if answer.type != CONNECTED:
            raise BrokerError(
                f"{self.where} answers a login with command {answer.type}, which is not a command of a broker"
            )
        if answer.connected.HasField("max_message_size"):
            self._frames.allow(answer.connected.max_message_size)


def _attempted(connect: Callable[[], socket.socket], where: str) -> socket.socket:
    try:
        return connect()
    except ssl.SSLCertVerificationError as error:
        hint = "check tlsTrustCertsFilePath"
        raise BrokerError(f"the certificate of {where} is not trusted: {error.verify_message}", hint=hint) from error
    except ssl.SSLError as error:
        hint = "check that this port uses TLS, and check the client's certificate"
        raise BrokerError(f"no TLS connection to {where}: {error.reason or error}", hint=hint) from error
    except ValueError as error:
        raise BrokerError(f"{where} is not the address of a broker: {error}", hint="check the service URL") from error
    except OSError as error:
        hint = "check the service URL, and that the cluster runs"
        raise TransientBrokerError(f"no broker can be reached at {where}: {error}", hint=hint) from error
