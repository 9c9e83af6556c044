"""The page is a fixed list of files, all of the package, that a browser loads with a strict policy."""

import re
from importlib.resources import files
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder
from requests import Request

from gateway.conftest import Served
from lithify.gateway.server.live.page import FIRST, PACKAGE, PLACE, POLICY, TYPES, load_page

CONTENT = {f.name: f.read_text("utf-8") for f in files(PACKAGE).iterdir() if f.name.endswith(tuple(TYPES))}
LINES = 300
ROOT = Path(__file__).resolve().parents[2]


def test_the_first_file_names_others_and_its_version(served: Served):
    answer = served.ask("GET", "/")
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    assert f'data-page="{load_page().version}"' in answer.text
    named = re.findall(r'(?:href|src)="(page/[^"]+)"', answer.text)
    assert len(named) >= 4
    for name in named:
        assert served.ask("GET", f"/{name}").status_code == 200


@pytest.mark.parametrize("name", sorted(CONTENT))
def test_each_file_has_the_policy_and_is_sent_once(served: Served, name):
    path = "/" if name == FIRST else PLACE + name
    answer = served.ask("GET", path)
    assert answer.status_code == 200
    assert answer.headers["Content-Security-Policy"] == POLICY
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    again = served.ask("GET", path, headers={"If-None-Match": answer.headers["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["ETag"] == answer.headers["ETag"]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/page/", 404),
        ("/page/none.js", 404),
        ("/page/index.html", 404),
        ("/page/__init__.py", 404),
        ("/page/../server/page.py", 400),
        ("/page/..%2Fserver%2Fpage.py", 400),
        ("/page/%2e%2e/server/page.py", 400),
        ("/page//etc/passwd", 400),
        ("/page/app.js%00", 400),
        ("/page/app.js/", 404),
    ],
)
def test_there_are_no_other_paths(served: Served, path, status):
    request = served.session.prepare_request(Request("GET", served.url))
    request.url = served.url + path  # as it is, without what a client would tidy
    assert served.session.send(request, timeout=30, allow_redirects=False).status_code == status


@pytest.mark.parametrize("name", sorted(CONTENT))
def test_nothing_is_from_elsewhere_and_nothing_is_inline(name):
    text = CONTENT[name].replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?://|url\(['\"]?//|@import", text)
    if name.endswith(".html"):
        assert not re.search(r"<script(?![^>]*\ssrc=)|<style|\sstyle=|\son\w+=|javascript:", text)
    if name.endswith(".js"):
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text)
        for imported in re.findall(r'from "\./([^"]+)"', text):
            assert imported in CONTENT


@pytest.mark.parametrize("name", sorted(CONTENT))
def test_files_are_short(name):
    assert len(CONTENT[name].splitlines()) <= LINES


def test_the_wheel_has_every_file_of_the_page():
    wheel = {file.distribution_path for file in WheelBuilder(str(ROOT)).recurse_included_files()}
    assert wheel >= {f"lithify/gateway/page/{name}" for name in CONTENT}
    assert "lithify/gateway/page/__init__.py" in wheel
