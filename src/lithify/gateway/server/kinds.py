"""How the guard of a gateway treats each request, by its method and path."""

from __future__ import annotations

from urllib.parse import unquote

from lithify.gateway.access.middleware import Kind
from lithify.gateway.operations.records import APPENDED_BYTES

OPEN = frozenset(("/", "/healthz", "/readyz", "/openapi.json"))
"""They have nothing of the warehouse in them."""
_PAGE = "/page/"


def kind_of(method: str, path: str) -> Kind:
    """The kind of a request with that path, as it was sent. What is not known needs a token."""
    match [unquote(part) for part in path.split("/")]:
        case ["", "api", "v1", "events"] | ["", "api", "v1", "jobs", _, "events"]:
            return Kind(lane="streams")
        case ["", "api", "v1", "topics", _, "records"] if method == "POST":
            return Kind(lane="appends", body_bytes=APPENDED_BYTES)
        case ["", "api", "v1", "topics", _, "records" | "table"]:
            return Kind(lane="reads")
    return Kind(is_open=path in OPEN or path.startswith(_PAGE))
