"""The documents keep up with the code: generated pages are current, links lead somewhere."""

from __future__ import annotations

import importlib.util
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def prose(text: str) -> str:
    """A page without its code blocks."""
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as Git forges make them."""
    headings = re.findall(r"^#+ +(.+)$", prose(text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def dead_links(page: Path) -> list[str]:
    dead = []
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page.read_text("utf-8"))):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = page if not name else page.parent / name
        if not file.exists() or (anchor and anchor not in anchors(file.read_text("utf-8"))):
            dead.append(target)
    return dead


def command_under(heading: str) -> str:
    """The first code block under a heading of the README, which must be one line."""
    readme = (ROOT / "README.md").read_text("utf-8")
    section = readme.partition(f"\n## {heading}\n")[2]
    block = re.search(r"^```\w*\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    assert block is not None, heading
    lines = block[1].splitlines()
    assert len(lines) == 1, f"{heading}: {lines}"
    return lines[0]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    assert dead_links(page) == []


def test_a_dead_link_would_be_seen(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# A b\n[there](#a-b) [not there](#c) [no file](none.md)\n```\n[code](x.md)\n```\n")
    assert dead_links(page) == ["#c", "none.md"]


def test_the_readme_has_one_command_to_run_and_one_to_test():
    assert command_under("Run it").endswith("lithify demo")
    assert command_under("Test it")


def test_ci_runs_what_the_readme_says():
    ran = [line for line in (ROOT / ".ci" / "run").read_text("utf-8").splitlines() if line and line[0] not in "#"]
    assert ran == ["set -euo pipefail", 'cd "$(dirname "$0")/.."', command_under("Test it")]


def test_the_page_of_settings_is_current():
    source = ROOT / "scripts" / "settings_reference.py"
    spec = importlib.util.spec_from_file_location("settings_reference", source)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.PAGE.read_text("utf-8") == module.page(), "run `just docs`"


def test_every_page_can_be_reached_from_the_readme():
    reached: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page not in reached and page.suffix == ".md":
            reached.add(page)
            links = re.findall(r"\]\(([^)\s#:]+)(?:#[^)]*)?\)", prose(page.read_text("utf-8")))
            waiting += [(page.parent / link).resolve() for link in links]
    assert [str(page.relative_to(ROOT)) for page in PAGES if page not in reached] == []


def test_scripts_are_executable():
    staged = subprocess.run(
        ["git", "ls-files", "-s", "scripts/setup", ".ci/run"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    assert [line.split()[0] for line in staged.splitlines()] == ["100755", "100755"]
