"""Paths of requests: a slash that is encoded belongs to a name, as in `/api/v1/topics/shop%2Forders`.

as it was sent     by which it is routed     the name
shop%2Forders      shop%2Forders             shop/orders
shop%252Forders    shop%252Forders           shop%2Forders, which is another topic
caf%C3%A9          café                      café
"""

from __future__ import annotations

from urllib.parse import unquote

from starlette.types import ASGIApp, Receive, Scope, Send


class EncodedSlashes:
    """Keeps slashes and percents of names encoded, as `%2F` and `%25`, in the path by which requests are routed."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            raw = scope.get("raw_path", b"").partition(b"?")[0].decode("latin-1")
            parts = (unquote(part).replace("%", "%25").replace("/", "%2F") for part in raw.split("/"))
            scope = {**scope, "path": "/".join(parts)}
        await self._app(scope, receive, send)


def name_of(part: str) -> str:
    """The name that a part of such a path stands for."""
    return part.replace("%2F", "/").replace("%25", "%")
