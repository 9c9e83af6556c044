"""How often an address may fail to authenticate, in bounded memory.

    30 failures at once, then one every 2 s: more are answered with 429, and get no line in the audit log
    10,000 addresses are known; with more, the one that has not failed for longest is forgotten

A right token counts from any address at any time, as one of 256 bits cannot be guessed. Behind a proxy or a NAT all
share one address: else one of them could lock out the others.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address, ip_network
from threading import Lock

AT_ONCE, EACH_S, ADDRESSES = 30, 2.0, 10_000
_SIX_PREFIX = 64
"""Bits of an IPv6 network: who has one has all of its addresses."""


class Failures:
    """Failures by address, for several threads; `seconds` is a clock that only goes forward."""

    def __init__(self, seconds: Callable[[], float]) -> None:
        self._seconds = seconds
        self._free_at_s: OrderedDict[str, float] = OrderedDict()
        """When all failures of an address are forgiven."""
        self._lock = Lock()

    def too_many(self, address: str) -> int:
        """Counts one more failure; after how many seconds the next is counted, or 0 if this one is not too many."""
        with self._lock:
            return self._counted(_network(address), self._seconds())

    def _counted(self, network: str, now_s: float) -> int:
        free_at_s = max(self._free_at_s.pop(network, now_s), now_s) + EACH_S
        wait_s = free_at_s - now_s - AT_ONCE * EACH_S
        if wait_s > 0:
            free_at_s -= EACH_S
        self._free_at_s[network] = free_at_s
        if len(self._free_at_s) > ADDRESSES:
            self._free_at_s.popitem(last=False)
        return 0 if wait_s <= 0 else int(wait_s) + 1


def _network(address: str) -> str:
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    # Where [::] is listened on, 10.0.0.7 comes as ::ffff:10.0.0.7.
    four = parsed.ipv4_mapped if isinstance(parsed, IPv6Address) else parsed
    return str(four or ip_network((parsed, _SIX_PREFIX), strict=False))
