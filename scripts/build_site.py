"""Builds the documents as a site that needs no network: `just site`.

    site/0.2/                 this version; `install.html` with `install.md` beside it, `llms.txt`, `llms-full.txt`
    site/latest/              a copy of the newest version that is there
    site/versions.html        the versions that are there
    site/index.html           leads to `latest`

Folders of other versions remain, so that a site grows by one folder for each version that is built into it. Sphinx has
an environment of its own in `.venv/site`, at the versions of requirements-site.lock, made when it is first needed.
"""

from __future__ import annotations

import argparse
import json
import os
import posixpath
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

import lithify
from docs_site import html_check, http_api, llms, python_classes
from docs_site.pages import CONTENTS, ROOT, Entry, assets, contents, place_of, site_pages, title_of
from lithify.gateway.server.openapi import description

OUT = ROOT / "site"
ENVIRONMENT = ROOT / ".venv" / "site"
LOCK = ROOT / "requirements-site.lock"
VERSION = lithify.__version__.rpartition(".")[0]
ADDED_TO = "Reference"
"""The section of the contents to which generated pages belong."""


def build(out: Path = OUT) -> list[str]:
    """Builds this version into a folder of `out`. What is wrong with it is returned; then `out` is as before."""
    pages = site_pages()
    generated = {python_classes.PLACE: python_classes.page(), http_api.PLACE: http_api.page(description())}
    entries = contents(pages) + [Entry(ADDED_TO, place, title_of(text)) for place, text in generated.items()]
    pages |= generated
    with tempfile.TemporaryDirectory() as work:
        html = Path(work) / "html" / VERSION
        write(html, {**pages, **assets()})
        run_sphinx(html, toctrees(pages, entries))
        texts = {"llms.txt": llms.index(pages, entries, VERSION), "llms-full.txt": llms.everything(pages, entries)}
        write(html, texts)
        if wrong := html_check.findings(html):
            return wrong
        out.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(out / VERSION, ignore_errors=True)
        shutil.move(html, out / VERSION)
    publish_latest(out)
    return []


def toctrees(pages: Mapping[str, str], entries: Sequence[Entry]) -> dict[str, str]:
    """What is below a page in the sidebar, as Sphinx reads it, by page: the sections below the first one.

    Pages that no section has are below the `index.md` of their folder, or below the first page.
    """
    contents_place = place_of(CONTENTS)
    sections = {section: [e.place for e in entries if e.section == section] for section in _sections(entries)}
    left = [place for place in pages if place not in ("index.md", contents_place, *(e.place for e in entries))]
    below: dict[str, list[str]] = {}
    for place in left:
        folder_page = posixpath.join(posixpath.dirname(place), "index.md")
        below.setdefault(folder_page if folder_page in pages and place != folder_page else "index.md", []).append(place)
    trees = {place: _toctree(places) for place, places in below.items()}
    trees["index.md"] = _toctree([contents_place])
    trees["index.md"] += "".join(_toctree(places, section) for section, places in sections.items())
    trees["index.md"] += _toctree(below.get("index.md", []), "More")
    return {place.removesuffix(".md"): tree for place, tree in trees.items()}


def publish_latest(out: Path) -> None:
    """Copies the newest version of a site to `latest`, and writes the list of versions and the first page."""
    found = [folder.name for folder in out.iterdir() if re.fullmatch(r"\d+(\.\d+)*", folder.name)]
    versions = sorted(found, key=lambda name: [*map(int, name.split("."))], reverse=True)
    shutil.rmtree(out / "latest", ignore_errors=True)
    shutil.copytree(out / versions[0], out / "latest")
    links = "".join(f'<li><a href="{escape(one)}/index.html">{escape(one)}</a></li>' for one in versions)
    write(
        out,
        {
            "versions.html": _plain("Versions of the documents", f"<h1>Versions of the documents</h1><ul>{links}</ul>"),
            "index.html": _plain(
                "Lithify",
                '<p><a href="latest/index.html">The documents</a></p>',
                '<meta http-equiv="refresh" content="0; url=latest/index.html">',
            ),
        },
    )


def run_sphinx(folder: Path, below: Mapping[str, str]) -> None:
    """Makes HTML beside the Markdown in a folder; a warning is an error. `below` is what `toctrees` returns.

    Raises `CalledProcessError`, after Sphinx has printed what is wrong.
    """
    settings = str(ROOT / "scripts" / "docs_site" / "sphinx")
    command = [str(environment() / "bin" / "python"), "-m", "sphinx", "-b", "html", "-E", "-q", "-W", "--keep-going"]
    with tempfile.TemporaryDirectory() as work:
        trees, html = Path(work) / "toctrees.json", Path(work) / "html"
        trees.write_text(json.dumps(below), "utf-8")
        given = {"LITHIFY_SITE_VERSION": VERSION, "LITHIFY_SITE_TOCTREES": str(trees)}
        command += ["-c", settings, "-d", f"{work}/doctrees", str(folder), str(html)]
        subprocess.run(command, check=True, env={**os.environ, **given})
        for left in (".buildinfo", "objects.inv", "_sources"):
            shutil.rmtree(html / left) if (html / left).is_dir() else (html / left).unlink(missing_ok=True)
        shutil.copytree(html, folder, dirs_exist_ok=True)


def environment() -> Path:
    """The folder of Sphinx's environment; made, or brought to the versions of the lock file."""
    done = ENVIRONMENT / "made-from"
    lock = LOCK.read_text("utf-8")
    if not (done.exists() and done.read_text("utf-8") == lock):
        print("Installing Sphinx into .venv/site", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", "--clear", ENVIRONMENT], check=True)
        install = [str(ROOT / ".venv" / "bin" / "uv"), "pip", "install", "--quiet", "--system-certs"]
        install += ["--python", str(ENVIRONMENT), "--require-hashes", "-r", str(LOCK)]
        subprocess.run(install, check=True)
        done.write_text(lock, "utf-8")
    return ENVIRONMENT


def write(folder: Path, contents: Mapping[str, str | bytes]) -> None:
    """Writes files to their places below a folder."""
    for place, content in contents.items():
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).write_bytes(content.encode() if isinstance(content, str) else content)


def _sections(entries: Sequence[Entry]) -> list[str]:
    return list(dict.fromkeys(entry.section for entry in entries))


def _toctree(places: Sequence[str], caption: str = "") -> str:
    named = f":caption: {caption}\n" if caption else ""
    lines = "".join(f"/{place.removesuffix('.md')}\n" for place in places)
    return f"\n```{{toctree}}\n:hidden:\n:titlesonly:\n{named}\n{lines}```\n"


def _plain(title: str, body: str, head: str = "") -> str:
    shown = '<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">'
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">{shown}{head}<title>{title}</title>'
        f"<style>body {{font-family: sans-serif; margin: 2rem}}</style></head><body>{body}</body></html>\n"
    )


def main() -> int:
    """Builds what the command line asks for; returns the exit code."""
    parser = argparse.ArgumentParser(description="Builds the documents as a site.")
    parser.add_argument("--out", type=Path, default=OUT, help="the folder of the site; by default `site`")
    arguments = parser.parse_args()
    wrong = build(arguments.out.resolve())
    print("\n".join(wrong) or arguments.out / VERSION / "index.html")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
