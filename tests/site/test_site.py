"""The documents as a site: every page in both forms, all links lead somewhere, and nothing comes from another host."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

import build_site
from docs_site import html_check, http_api, pages
from lithify.gateway.operations.table import OPERATIONS
from support.pages.text import ROOT, prose

BODY = {"body": {"type": "object", "properties": {"of": {"type": "object", "properties": {"a": {"type": "string"}}}}}}
OPENAPI = {
    "openapi": "3.1.0",
    "info": {"title": "A gateway", "version": "1"},
    "paths": {
        "/api/v1/topics/{name}": {
            "put": {
                "summary": "What there is of a topic.",
                "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/$defs/body", "$defs": BODY}}}},
                "parameters": [{"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}],
                "responses": {
                    "200": {
                        "description": "The topic",
                        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/TopicInfo"}}},
                    }
                },
            }
        }
    },
    "components": {
        "schemas": {
            "TopicInfo": {
                "type": "object",
                "description": "A topic.",
                "required": ["name"],
                "properties": {
                    "name": {"type": "string"},
                    "logs": {"type": "array", "items": {"$ref": "#/components/schemas/Log"}},
                },
            },
            "Log": {"type": "object", "properties": {"offset": {"type": ["integer", "null"], "description": "a|b"}}},
        }
    },
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of all versions."""
    folder = tmp_path_factory.mktemp("site")
    for earlier in ("0.1", "not-a-version"):
        build_site.write(folder / earlier, {"index.html": earlier})
    assert build_site.build(folder) == []
    return folder


@pytest.fixture
def built(site: Path) -> Path:
    return site / build_site.VERSION


def test_every_document_is_a_page_and_markdown_beside_it(built: Path) -> None:
    documents = [str(page.relative_to(ROOT)) for page in (ROOT / "docs").rglob("*.md")]
    places = [built / pages.place_of(page) for page in (*pages.OTHER_PAGES, *documents)]
    assert len(places) == len({*places}) > 80
    assert [place for place in places if not (place.is_file() and place.with_suffix(".html").is_file())] == []


def test_files_of_other_folders_are_shown_in_a_page_and_json_is_beside_it(built: Path) -> None:
    page = (built / "deploy.md").read_text("utf-8")
    assert f"\n## cleaner.yaml\n\n````yaml\n{(ROOT / 'deploy' / 'cleaner.yaml').read_text('utf-8')}````\n" in page
    assert "[grafana-dashboard.json](deploy/grafana-dashboard.json)\n" in page
    assert (built / "deploy" / "grafana-dashboard.json").is_file()


def test_links_of_the_markdown_lead_somewhere(built: Path) -> None:
    dead = []
    for page in sorted(built.rglob("*.md")):
        for target in re.findall(r"\]\(([^)\s]+)\)", prose(page.read_text("utf-8"))):
            name, _, anchor = target.partition("#")
            file = page.parent / name if name else page
            text = file.read_text("utf-8") if file.is_file() and file.suffix == ".md" else ""
            headings = re.findall(r"^#+ +(.+)$", text, re.MULTILINE)
            if ":" not in target and not (file.is_file() and (not anchor or anchor in map(pages.anchor_of, headings))):
                dead.append((str(page.relative_to(built)), target))
    assert dead == []


def test_the_index_for_programs_has_each_page_once_with_a_line(built: Path) -> None:
    index = (built / "llms.txt").read_text("utf-8")
    places = re.findall(r"^- \[.+?\]\(([^)]+)\)", index, re.MULTILINE)
    assert sorted(places) == sorted(str(page.relative_to(built)) for page in built.rglob("*.md"))
    assert "\n## Start\n\n- [Install](start/install.md): a checkout, " in index
    everything = (built / "llms-full.txt").read_text("utf-8")
    assert [place for place in places if f"<!-- {place} -->\n\n# " not in everything] == []


def test_the_index_of_the_search_is_there(built: Path) -> None:
    found = (built / "searchindex.js").read_text("utf-8")
    assert '"tombston"' in found or "tombston:" in found
    assert "Search.setIndex(" in found


def test_classes_have_their_signatures_docstrings_and_links_to_rules(built: Path) -> None:
    text = (built / "reference" / "classes.md").read_text("utf-8")
    assert (
        "\n### Topic.append\n\n```python\nappend(\n    batch: Sequence[Record] | pa.Table | pa.RecordBatch,\n" in text
    )
    assert "would miss a delete ([C49](../guarantees.md#c49))" in text
    assert 'id="topic-append"' in (built / "reference" / "classes.html").read_text("utf-8")


def test_the_http_api_is_a_page(built: Path) -> None:
    text = (built / "reference" / "http-api.md").read_text("utf-8")
    assert "\n## GET /api/v1/status\n\nThe state of every topic" in text
    shown = _without_names(text)  # one path may have its parameter under another name
    assert [one.path for one in OPERATIONS if f" {_without_names(one.path)}\n" not in shown] == []


def _without_names(text: str) -> str:
    return re.sub(r"{\w+}", "{}", text)


def test_a_page_of_an_http_api_has_parameters_bodies_answers_and_values() -> None:
    text = http_api.page(OPENAPI)
    assert "\n## PUT /api/v1/topics/{name}\n\nWhat there is of a topic.\n" in text
    assert "| `name` | path | string |  |\n" in text
    assert "Body: `application/json` [body](#body).\n" in text
    assert "| 200 | `application/json` [TopicInfo](#topicinfo) | The topic |\n" in text
    assert (
        "\n### body\n\n| field | type | |\n| --- | --- | --- |\n| `of` | object of `a` (string), optional |  |\n"
        in text
    )
    assert "| `logs` | list of [Log](#log), optional |  |\n" in text
    assert "| `offset` | integer or null, optional | a\\|b |\n" in text


def test_versions_stand_beside_each_other_and_the_newest_is_the_latest(site: Path) -> None:
    newest = build_site.VERSION
    assert (site / "latest" / "llms.txt").read_text("utf-8") == (site / newest / "llms.txt").read_text("utf-8")
    listed = re.findall(r'href="([^"]+)"', (site / "versions.html").read_text("utf-8"))
    assert listed == [f"{newest}/index.html", "0.1/index.html"]
    assert "url=latest/index.html" in (site / "index.html").read_text("utf-8")
    assert (site / "0.1" / "index.html").read_text("utf-8") == "0.1"


def test_what_is_wrong_in_a_page_would_be_seen(tmp_path: Path) -> None:
    build_site.write(
        tmp_path / "0.2",
        {
            "a.html": '<h1 id="x">A</h1><a href="b.html#no"></a><a href="c.html"></a><a href="#x"></a>'
            '<a href="https://example.com">told</a><a href="../versions.html"></a>'
            '<script src="https://example.com/x.js"></script><img src="gone.png">',
            "b.html": "<p>B</p>",
            "s.css": "@import '//example.com/x.css'; p {background: url(https://example.com/y.png)}",
        },
    )
    assert html_check.findings(tmp_path / "0.2") == [
        "a.html: fetches https://example.com/x.js",
        "a.html: gone.png is not there",
        "a.html: b.html#no has an anchor that is not there",
        "a.html: c.html leads nowhere",
        "s.css: fetches //example.com/x.css",
        "s.css: fetches https://example.com/y.png",
    ]


def test_a_link_to_a_page_or_a_heading_that_is_not_there_ends_a_build(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    build_site.write(tmp_path, {"index.md": "# A\n\n[b](b.md) [c](c.md#no) [d](c.md#c-e)\n", "c.md": "# C\n\n## C E\n"})
    with pytest.raises(subprocess.CalledProcessError):
        build_site.run_sphinx(tmp_path, {"index": "\n```{toctree}\n/c\n```\n"})
    said = capfd.readouterr().err
    assert ("target not found: 'b.md'" in said, "'no'" in said, "c-e" in said) == (True, True, False)
    assert not (tmp_path / "index.html").exists()


def test_a_document_may_link_to_no_other_folder() -> None:
    assert pages.moved("[a](../deploy/cleaner.yaml) `x`", "docs/a.md") == "[a](deploy.md#cleaneryaml) `x`"
    assert pages.moved("```\n[a](../src)\n```\n[a](#b)", "docs/a.md") == "```\n[a](../src)\n```\n[a](#b)"
    with pytest.raises(LookupError, match="src/lithify, which is not below"):
        pages.moved("[a](../src/lithify)", "docs/a.md")
