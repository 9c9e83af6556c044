"""Frames of Pulsar's protocol: commands, and with a MESSAGE the entry as it is stored.

    [size of all that follows, 4][size of the command, 4][command][entry: only with MESSAGE]

A peer can claim any size: more than a broker may send is an error before memory is taken for it.
"""

from __future__ import annotations

import socket
import struct
from typing import Final

from google.protobuf.message import DecodeError

from lithify.errors import BrokerError
from lithify.pulsar.client.broker_refusals import TransientBrokerError
from lithify.pulsar.client.commands_pb2 import BaseCommand

RECEIVE_BYTES: Final = 1 << 20
ENTRY_BYTES: Final = 5 << 20
"""Pulsar's default for the largest entry; the broker says which it has."""
ENTRY_BYTES_AT_MOST: Final = 256 << 20
PADDING_BYTES: Final = 10 << 10
"""For the command, and what brokers add to an entry."""

MESSAGE: Final = 9

_SIZES: Final = struct.Struct(">II")
_parsed = BaseCommand.FromString

Frame = tuple[BaseCommand, bytes]


def framed(command: BaseCommand) -> bytes:
    """A command as it is sent."""
    data = command.SerializeToString()
    return _SIZES.pack(len(data) + 4, len(data)) + data


class Frames:
    """What is read from a socket, frame by frame. `where` is for errors."""

    def __init__(self, connection: socket.socket, where: str) -> None:
        self._socket, self._where = connection, where
        self._received = bytearray()
        self._limit = ENTRY_BYTES + PADDING_BYTES

    def allow(self, entry_bytes: int) -> None:
        """Entries may have this number of bytes from now on. Raises `BrokerError`."""
        if not 0 < entry_bytes <= ENTRY_BYTES_AT_MOST:
            raise BrokerError(f"{self._where}: the broker has entries of {entry_bytes} bytes, which is too large")
        self._limit = max(entry_bytes, ENTRY_BYTES) + PADDING_BYTES

    def receive(self, timeout_s: float) -> None:
        """Waits for more bytes. Raises `TransientBrokerError` at the end of the connection."""
        try:
            self._socket.settimeout(timeout_s)
            more = self._socket.recv(RECEIVE_BYTES)
        except TimeoutError as error:
            raise TransientBrokerError(f"{self._where}: the broker sends nothing") from error
        except (OSError, ValueError) as error:
            raise TransientBrokerError(f"{self._where}: the connection broke: {error}") from error
        if not more:
            raise TransientBrokerError(f"{self._where}: the broker closed the connection")
        self._received += more

    def whole(self) -> list[Frame]:
        """The frames that have come as a whole. Raises `BrokerError` for what no broker sends."""
        received = self._received
        if len(received) < _SIZES.size or len(received) - 4 < self._checked(*_SIZES.unpack_from(received)):
            return []
        data, begin, frames = bytes(received), 0, []
        before_last = len(data) - _SIZES.size
        try:
            while begin <= before_last:
                size, command_size = _SIZES.unpack_from(data, begin)
                if size > self._limit or command_size > size - 4:
                    self._checked(size, command_size)
                end = begin + 4 + size
                if end > len(data):
                    break
                payload = begin + 8 + command_size
                frames.append((_parsed(data[begin + 8 : payload]), data[payload:end]))
                begin = end
        except DecodeError as error:
            raise BrokerError(f"{self._where} sends commands that Pulsar does not have: {error}") from error
        del received[:begin]
        return frames

    def _checked(self, size: int, command_size: int) -> int:
        if 4 <= size <= self._limit and command_size <= size - 4:
            return size
        hint = (
            "check that the service URL is the binary port of a broker or proxy, with TLS if it begins with "
            "pulsar+ssl://"
        )
        raise BrokerError(f"{self._where} does not use Pulsar's protocol: it sent a frame of {size} bytes", hint=hint)
