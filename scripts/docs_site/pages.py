"""The documents as a site has them: moved out of `docs/`, files that they name as pages, links that follow.

    README.md             index.md             what Lithify is
    docs/README.md        contents.md          all pages, by what a reader wants to do
    docs/start/x.md       start/x.md
    docs/f/README.md      f/index.md
    deploy/*              deploy.md            each file under a heading of its own, but JSON and pictures as they are

In the repository and on the site each relative link leads to the same text.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OPENING, CONTENTS = "README.md", "docs/README.md"
PLACES = {OPENING: "index.md", CONTENTS: "contents.md"}
OTHER_PAGES = (OPENING, "CHANGELOG.md", "CONTRIBUTING.md", "bench/README.md")
SHOWN = ("deploy", "examples", "LICENSE")
"""What documents link to and is no page: a folder becomes one with each of its files, a file one with its text."""
LANGUAGES = {".py": "python", ".yaml": "yaml", ".service": "ini"}
ASSETS = (".svg", ".png", ".json")
"""What is beside the pages, as it is."""

_FENCED = r"^( *)(`{3,}).*?^\1\2$"
_CODE = re.compile(_FENCED, re.MULTILINE | re.DOTALL)
_CODE_OR_LINK = re.compile(rf"{_FENCED}|\]\((?P<target>[^)\s]+)\)", re.MULTILINE | re.DOTALL)
_ITEM = re.compile(r"^- (.*(?:\n  .*)*)", re.MULTILINE)
_LINK = re.compile(r"\[([^\]]*)\]\(([^)\s]+)\)")


@dataclass(frozen=True, slots=True)
class Entry:
    """A page in the contents: the section, its place on the site, its name, and what is said of it."""

    section: str
    place: str
    name: str
    line: str = ""


def anchor_of(heading: str) -> str:
    """Of the text of a heading, as code hosts make it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def place_of(path: str) -> str:
    """Where the site has a page or an asset of the repository; both paths are from the root."""
    if path in PLACES:
        return PLACES[path]
    folder, name = posixpath.split(path.removeprefix("docs/"))
    if not folder:
        return name.lower()
    return posixpath.join(folder, "index.md" if name == "README.md" else name)


def site_pages() -> dict[str, str]:
    """The text of every page that is written by hand, by its place."""
    documents = sorted(str(page.relative_to(ROOT)) for page in (ROOT / "docs").rglob("*.md"))
    pages = {place_of(path): moved((ROOT / path).read_text("utf-8"), path) for path in (*OTHER_PAGES, *documents)}
    return pages | {f"{name.lower()}.md": _files_page(name) for name in SHOWN}


def assets() -> dict[str, bytes]:
    """Pictures and the like, by their place."""
    return {
        place_of(str(file.relative_to(ROOT))): file.read_bytes()
        for folder in ("docs", *SHOWN)
        for file in sorted((ROOT / folder).rglob("*"))
        if file.suffix in ASSETS
    }


def moved(text: str, page: str) -> str:
    """The text of a page of the repository with links as they are from its place on the site."""

    def follow(found: re.Match[str]) -> str:
        target = found["target"]
        if target is None or re.match(r"[a-z]+:|#", target):
            return found[0]
        name, _, anchor = target.partition("#")
        place, anchor = _destination(posixpath.normpath(posixpath.join(posixpath.dirname(page), name)), anchor)
        relative = posixpath.relpath(place, posixpath.dirname(place_of(page)) or ".")
        return f"]({relative}#{anchor})" if anchor else f"]({relative})"

    return _CODE_OR_LINK.sub(follow, text)


def contents(pages: dict[str, str]) -> list[Entry]:
    """The pages that the contents name, in their order, each once."""
    found: dict[str, Entry] = {}
    section = ""
    for part in re.split(r"^## (.+)$", pages[place_of(CONTENTS)], flags=re.MULTILINE)[1:]:
        if "\n" not in part:
            section = part
            continue
        for item in _ITEM.findall(part):
            links = [(name, target) for name, target in _LINK.findall(item) if "#" not in target]
            line = " ".join(_LINK.sub(r"\1", item).split())
            for name, target in links:
                said = line.removeprefix(f"{name}: ") if len(links) == 1 else ""
                found.setdefault(target, Entry(section, target, name, said))
    return list(found.values())


def title_of(text: str) -> str:
    """The first heading of a page, as plain text."""
    heading = re.search(r"^# (.+)$", text, re.MULTILINE)
    return heading[1].replace("`", "") if heading else ""


def first_sentence(text: str) -> str:
    """Of the first paragraph below the title, as plain text on one line."""
    below = re.split(r"^# .+$", _CODE.sub("", text), maxsplit=1, flags=re.MULTILINE)[-1]
    paragraphs = [part.strip().removeprefix("**Context.** ") for part in below.split("\n\n")]
    plain = [" ".join(_LINK.sub(r"\1", part).split()) for part in paragraphs if re.match(r"[\w`\[]", part)]
    return re.split(r"(?<=[.:]) ", plain[0])[0].rstrip(":") if plain else ""


def _destination(path: str, anchor: str) -> tuple[str, str]:
    """The page of the site, and the anchor in it, for a path that a document links to."""
    if path.endswith((".md", *ASSETS)):
        return place_of(path), anchor
    shown, _, inside = path.partition("/")
    if shown not in SHOWN:
        raise LookupError(f"a document links to {path}, which is not below {', '.join(SHOWN)}")
    return f"{shown.lower()}.md", anchor_of(inside)


def _files_page(name: str) -> str:
    if (ROOT / name).is_file():
        return f"# {name}\n\n{_block(ROOT / name)}"
    return f"# Files in {name}\n\nThe folder `{name}` of the repository has these files.\n{''.join(_file_blocks(name))}"


def _file_blocks(folder: str) -> Iterator[str]:
    for file in sorted((ROOT / folder).rglob("*")):
        if file.is_file() and "__pycache__" not in file.parts:
            name = str(file.relative_to(ROOT / folder))
            shown = f"[{name}]({folder}/{name})\n" if file.suffix in ASSETS else _block(file)
            yield f"\n## {name}\n\n{shown}"


def _block(file: Path) -> str:
    return f"````{LANGUAGES.get(file.suffix, 'text')}\n{file.read_text('utf-8')}````\n"
