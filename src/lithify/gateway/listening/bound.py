"""A socket that is bound before anything else starts, so that a port in use is told at once."""

from __future__ import annotations

import socket
from dataclasses import dataclass

from lithify.errors import UnusableEnvironmentError
from lithify.gateway.listening.listen import ListenAddress

BACKLOG = 512


@dataclass(frozen=True, slots=True)
class BoundSocket:
    """It listens; `address` has the port that it has got."""

    address: ListenAddress
    socket: socket.socket


def bind(address: ListenAddress, *, option: str = "") -> BoundSocket:
    """Binds the address, which `option` chose; port 0 takes a free one. Raises `UnusableEnvironmentError`."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    taken = socket.socket(family, socket.SOCK_STREAM)
    try:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind((address.host, address.port))
        taken.listen(BACKLOG)
    except OSError as error:
        taken.close()
        raise UnusableEnvironmentError(
            f"{address} cannot be listened on: {error.strerror or error}",
            hint=f"choose another address{option and f' with {option}'}",
        ) from None
    return BoundSocket(ListenAddress(address.host, taken.getsockname()[1]), taken)
