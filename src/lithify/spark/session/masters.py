"""Checks `spark.master` before Spark starts: Spark itself takes a minute to give up on an address without listener."""

from __future__ import annotations

import re
import socket
from contextlib import suppress

from lithify.errors import EngineUnavailableError

CONNECT_S = 5.0
_KNOWN = re.compile(
    r"local|local\[(\d+|\*)(,\s*\d+)?\]|local-cluster\[.*\]|yarn|k8s://.+|spark://(?P<hosts>[^,]+:\d+(,[^,]+:\d+)*)"
)
_FORMS = "local[*], local[N], spark://HOST:PORT, yarn or k8s://URL"


def check_master(master: str) -> None:
    """Raises `EngineUnavailableError` for a text that is not a master, or a standalone one that cannot be reached."""
    known = _KNOWN.fullmatch(master.strip())
    if known is None:
        raise EngineUnavailableError(
            f"spark.master={master}: Spark does not support such a master", hint=f"give {_FORMS}"
        )
    hosts = known["hosts"]
    if hosts and not any(_listens(address) for address in hosts.split(",")):
        raise EngineUnavailableError(
            f"spark.master={master}: no Spark master accepts connections there",
            hint="check host and port (the master's log and web page show them), and firewalls in between",
        )


def _listens(address: str) -> bool:
    host, _, port = address.rpartition(":")
    with suppress(OSError), socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_S):
        return True
    return False
