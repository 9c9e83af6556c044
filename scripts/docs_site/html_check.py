"""What is wrong with built pages: links that lead nowhere, anchors that are not there, anything from another host."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

FETCHED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src", "object": "data"}
"""What a browser fetches by itself: the attribute of each element that names it."""
_ELSEWHERE = re.compile(r"(?:[a-z][a-z0-9+.-]*:)?//", re.IGNORECASE)
_IN_STYLES = re.compile(r"""(?:url\(\s*['"]?|@import\s+['"])((?:https?:)?//[^'")\s]+)""")


@dataclass(slots=True)
class Page:
    """What a page names."""

    ids: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    fetched: list[str] = field(default_factory=list)


class _Reader(HTMLParser):
    def __init__(self, page: Page) -> None:
        super().__init__()
        self.page = page

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.page.ids.update(given[name] for name in ("id", "name") if name in given)
        if tag == "a" and "href" in given:
            self.page.links.append(given["href"])
        if (name := FETCHED.get(tag)) and name in given:
            self.page.fetched.append(given[name])


def findings(folder: Path) -> list[str]:
    """One line for each thing that is wrong in the pages below `folder`; links may lead out of it to its versions."""
    pages = {file: _read(file) for file in sorted(folder.rglob("*.html"))}
    return [line for file in pages for line in _of_page(file, pages, folder)] + [
        f"{file.relative_to(folder)}: fetches {found}"
        for file in sorted(folder.rglob("*.css"))
        for found in _IN_STYLES.findall(file.read_text("utf-8"))
    ]


def _of_page(file: Path, pages: dict[Path, Page], folder: Path) -> Iterator[str]:
    name = file.relative_to(folder)
    for fetched in pages[file].fetched:
        if _ELSEWHERE.match(fetched):
            yield f"{name}: fetches {fetched}"
        elif not fetched.startswith(("data:", "#")) and not _target(file, fetched).is_file():
            yield f"{name}: {fetched} is not there"
    for link in pages[file].links:
        if re.match(r"[a-z]+:|//", link) or link in ("#", ""):
            continue
        target, _, anchor = link.partition("#")
        at = _target(file, target) if target else file
        if at == folder.parent / "versions.html":
            continue
        if not at.is_file():
            yield f"{name}: {link} leads nowhere"
        elif anchor and at in pages and unquote(anchor) not in pages[at].ids:
            yield f"{name}: {link} has an anchor that is not there"


def _target(file: Path, link: str) -> Path:
    return Path(*(file.parent / unquote(link.partition("?")[0].partition("#")[0])).resolve().parts)


def _read(file: Path) -> Page:
    page = Page()
    _Reader(page).feed(file.read_text("utf-8"))
    return page
