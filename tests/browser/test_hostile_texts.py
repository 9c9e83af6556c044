"""What strangers may have put into names, records and links changes neither the page nor what a person reads there."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

import lithify
from browser.conftest import Shown, fail
from lithify.testing import memory_lake

MARKUP = "<img src=x onerror=alert(1)>"
TURNED = "\u202egnp.exe"
ESCAPE = "\x1b[31m"
NAME = f"persistent://a/b/{MARKUP}"


@pytest.fixture
def hostile():
    lake = memory_lake()
    text = f"{MARKUP}{TURNED}{ESCAPE}\u200b\0".encode()
    lake.create_topic(NAME).append([lithify.Record(text, text, headers=((f"{TURNED}{MARKUP}", text),))])
    fail(lake, NAME, f"{MARKUP}\n{TURNED}{ESCAPE}", "Damaged", quarantined=True, failures=5)
    shown = Shown(lake).start()
    yield shown
    shown.stop()


def test_names_and_errors_are_text_without_characters_that_steer_it(hostile: Shown, opened):
    page = opened(hostile.url)
    page.locator("td.topic a").click()
    expect(page.locator("h1")).to_contain_text(MARKUP)
    expect(page.locator(".error").first).to_contain_text("\\u{202e}gnp.exe\\u{1b}[31m")
    assert not {"\u202e", "\x1b"} & set(page.content())
    assert page.locator("img").count() == 0


def test_a_link_shows_no_name_that_steers_the_page(hostile: Shown, opened):
    page = opened(f"{hostile.url}/#/topics/%E2%80%AEgnp.exe%1B", fails=True)
    expect(page.locator("h1")).to_contain_text("\\u{202e}gnp.exe\\u{1b}")
    expect(page).to_have_title("\\u{202e}gnp.exe\\u{1b} – Lithify")
    expect(page.locator(".error")).to_be_visible()
    assert not {"\u202e", "\x1b"} & set(page.content())


def test_records_are_text_without_characters_that_steer_it(hostile: Shown, opened):
    page = opened(hostile.url)
    page.locator("td.topic a").click()
    page.get_by_role("link", name="Records").click()
    page.locator("details.record summary").click()
    expect(page.locator("details.record pre")).to_contain_text(
        f"{MARKUP}\\u{{202e}}gnp.exe\\u{{1b}}[31m\\u{{200b}}\\u{{0}}"
    )
    page.get_by_role("button", name="All of this key").click()
    expect(page.locator(".key-card")).to_contain_text("Records that are left (1)")
    assert not {"\u202e", "\x1b", "\u200b"} & set(page.locator("main").inner_text())
    assert page.locator("img").count() == 0


@pytest.mark.parametrize("place", ["%", "%E0%A4%A", "toString", "__proto__", "constructor/x", "topics/%ff/toString"])
def test_a_link_to_nowhere_does_not_end_the_page(hostile: Shown, opened, place):
    page = opened(f"{hostile.url}/#/{place}", fails=True)
    expect(page.locator("#live")).to_have_text("gateway-1")
    expect(page.locator("main")).not_to_be_empty()
    page.get_by_role("link", name="Cleaners").click()
    expect(page.get_by_role("heading", name="Cleaners")).to_be_visible()
