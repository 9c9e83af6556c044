"""Paths of requests: a slash that is encoded belongs to a name, as in `/api/v1/topics/shop%2Forders`."""

from __future__ import annotations

from urllib.parse import unquote

from starlette.types import ASGIApp, Receive, Scope, Send


class EncodedSlashes:
    """Keeps encoded slashes as `%2F` in the path by which requests are routed."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            raw = scope.get("raw_path", b"").partition(b"?")[0].decode("latin-1")
            parts = (unquote(part).replace("/", "%2F") for part in raw.split("/"))
            scope = {**scope, "path": "/".join(parts)}
        await self._app(scope, receive, send)
