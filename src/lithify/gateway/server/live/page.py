"""The page of a gateway: a fixed list of files, of the package alone, whose names are the only paths there are.

Nothing in it is from elsewhere, and the browser is told to load nothing else. Each file has an ETag, and a browser asks
whether it is still the same, so that after an upgrade it has the new ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

PACKAGE = "lithify.gateway.page"
PLACE = "/page/"
FIRST = "index.html"
VERSION = b"{{version}}"
"""In the first file, where the version of the page belongs."""
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
POLICY = (
    "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}


@dataclass(frozen=True, slots=True)
class PageFile:
    """A file as it is sent."""

    content: bytes
    kind: str
    etag: str

    def answer(self, request: Request) -> Response:
        """It, or 304 if the browser has it."""
        headers = {**HEADERS, "ETag": self.etag}
        if self.etag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return Response(self.content, media_type=self.kind, headers=headers)


@dataclass(frozen=True, slots=True)
class Page:
    """All files by name, and the version of them together."""

    files: dict[str, PageFile]
    version: str

    def routes(self) -> list[Route]:
        """`/` and a route for each file."""
        others = [Route(PLACE + name, file.answer, name=name) for name, file in self.files.items() if name != FIRST]
        return [Route("/", self.files[FIRST].answer, name="page"), *others]


def load_page() -> Page:
    """The page, as this version of Lithify has it."""
    folder = files(PACKAGE)
    found = sorted((f.name, f.read_bytes()) for f in folder.iterdir() if f.name.endswith(tuple(TYPES)))
    version = blake2b(b"\0".join(name.encode() + b"\0" + content for name, content in found), digest_size=8).hexdigest()
    return Page({name: _file(name, content.replace(VERSION, version.encode())) for name, content in found}, version)


def _file(name: str, content: bytes) -> PageFile:
    digest = blake2b(content, digest_size=16).hexdigest()
    return PageFile(content, TYPES["." + name.rpartition(".")[2]], f'"{digest}"')
