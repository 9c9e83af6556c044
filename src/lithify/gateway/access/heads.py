"""The line and the headers of a request: what is more than one, too long or not what it seems is refused.

    GET /api/v1/topics/shop%2Forders?limit=10     one path, which each part of the gateway reads in the same way
    //   /../   %2e%2e   ..%2f   \\   %00   %zz     refused: a path that two programs might read differently

h11 has refused what is not HTTP: unprintable headers, two lengths, two hosts. It has joined folded headers.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from http import HTTPStatus
from urllib.parse import unquote_to_bytes

from lithify.gateway.access.callers import Scope
from lithify.gateway.access.refusals import Refusal, malformed

PATH_BYTES, QUERY_BYTES = 4_096, 8_192
HEADERS, HEADER_BYTES = 100, 32 * 1024
"""More than browsers and proxies send. h11 bounds the bytes of a head only while it is incomplete."""

_ONCE = frozenset(
    (b"authorization", b"content-length", b"content-type", b"host", b"idempotency-key", b"origin", b"sec-fetch-site")
)
_ESCAPES = re.compile(rb"(?:[!-$&-\[\]-~]|%[0-9A-Fa-f]{2})*")
"""What is printable but for the backslash, and whole escapes."""


class Headers:
    """The headers of a request, of which those that decide are there at most once."""

    def __init__(self, scope: Scope) -> None:
        self._all: list[tuple[bytes, bytes]] = list(scope["headers"])

    def get(self, name: bytes) -> str | None:
        """The value of the first header of that name; None without one."""
        found = next((value for key, value in self._all if key == name), None)
        return None if found is None else found.decode("latin-1").strip()

    def has(self, names: Iterable[bytes]) -> bool:
        return not {key for key, _ in self._all}.isdisjoint(names)

    def refusal(self) -> Refusal | None:
        size = sum(len(key) + len(value) for key, value in self._all)
        if len(self._all) > HEADERS or size > HEADER_BYTES:
            return malformed(
                f"the request has {len(self._all)} headers of {size:,} bytes: at most {HEADERS} of {HEADER_BYTES:,} "
                "bytes are read",
                status=HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
            )
        if self.has((b"transfer-encoding",)) and self.has((b"content-length",)):
            return malformed("the request has both Content-Length and Transfer-Encoding")
        counts = Counter(key for key, _ in self._all if key in _ONCE)
        twice = [key.decode() for key, count in counts.items() if count > 1]
        return malformed(f"the request has the header {twice[0]} more than once") if twice else None


def target_refusal(scope: Scope) -> Refusal | None:
    """Why the path and query of a request are not read; None if they are."""
    path, query = bytes(scope["raw_path"]), bytes(scope["query_string"])
    if len(path) > PATH_BYTES or len(query) > QUERY_BYTES:
        return malformed(
            f"the address has a path of {len(path):,} bytes and a query of {len(query):,}: at most {PATH_BYTES:,} and "
            f"{QUERY_BYTES:,} are read",
            status=HTTPStatus.REQUEST_URI_TOO_LONG,
        )
    if not path.startswith(b"/") or not _ESCAPES.fullmatch(path) or not _is_plain(path):
        return malformed(
            "the path of the request is not a plain one: it has empty, `.` or `..` parts, or broken escapes",
            hint="percent-encode the name of a topic: shop%2Forders",
        )
    return None


def _is_plain(path: bytes) -> bool:
    *inner, last = path.split(b"/")[1:]
    if b"" in inner:
        return False
    for escaped in (*inner, last):
        try:
            text = unquote_to_bytes(escaped).decode()
        except UnicodeDecodeError:
            return False
        if not text.isprintable() or "\\" in text or not {".", ".."}.isdisjoint(text.split("/")):
            return False
    return True
