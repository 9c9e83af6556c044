"""How the guard of a gateway treats each request, by its method and path."""

from __future__ import annotations

from lithify.gateway.access.middleware import Kind

OPEN = frozenset(("/", "/healthz", "/readyz", "/openapi.json"))
"""They have nothing of the warehouse in them."""
_PAGE = "/page/"
_EVENTS = "/events"


def kind_of(_method: str, path: str) -> Kind:
    """The kind of a request with that path, as it was sent. What is not known needs a token."""
    return Kind(is_open=path in OPEN or path.startswith(_PAGE), is_stream=path.endswith(_EVENTS))
