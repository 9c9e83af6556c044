"""The page of a gateway that needs tokens: it asks for one, and shows what that may see."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

import lithify
from browser.conftest import Shown

TOPICS = ("shop/orders", "shop/carts", "secret/plans")


@pytest.fixture
def guarded(tmp_path) -> Iterator[Shown]:
    """A gateway of a warehouse in a folder, whose database has tokens."""
    lake = lithify.open(str(tmp_path))
    for topic in TOPICS:
        lake.create_topic(topic).append([lithify.Record(b"a", b"1")] * 3)
    shown = Shown(lake, needs_token=True).start()
    yield shown
    shown.stop()


def a_token(shown: Shown, *grants: str) -> str:
    return shown.lake.tokens().create("alice", grants).token


def give(page: Page, token: str) -> None:
    page.get_by_role("textbox", name="Token").fill(token)
    page.get_by_role("button", name="Use it").click()


def test_it_asks_until_the_token_is_right_and_keeps_it_in_its_tab(guarded: Shown, opened):
    token = a_token(guarded, "admin")
    page = opened(guarded.url, fails=True)
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("heading")).to_have_text("This gateway needs a token")
    give(page, "wrøng")
    expect(dialog.get_by_role("alert")).to_contain_text("no token of Lithify")
    give(page, token[:-1] + ("a" if token[-1] != "a" else "b"))
    expect(dialog.get_by_role("alert")).to_contain_text("unknown or revoked")
    give(page, token)
    expect(page.locator("#live")).to_have_text("gateway-1")
    expect(page.locator("table.topics td.topic a")).to_have_count(len(TOPICS))
    kept = page.evaluate("[Object.values(sessionStorage), Object.values(localStorage), document.cookie]")
    assert kept == [[token], [], ""]
    assert token not in page.content()
    assert token not in page.url
    page.reload()
    expect(page.locator("#live")).to_have_text("gateway-1")
    other = page.context.new_page()
    other.goto(guarded.url)
    expect(other.get_by_role("dialog")).to_contain_text("needs a token")


def test_without_a_token_it_says_so_and_asks_again_when_asked(guarded: Shown, opened):
    page = opened(guarded.url, fails=True)
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("#lost")).to_contain_text("Nothing is shown without a token")
    expect(page.locator("#live")).to_have_text("no token")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.get_by_role("button", name="Give a token").click()
    give(page, a_token(guarded, "look"))
    expect(page.locator("table.topics td.topic a")).to_have_count(len(TOPICS))
    expect(page.locator("#lost")).to_have_count(0)


def test_what_a_token_may_not_do_is_told_and_not_offered_again(guarded: Shown, opened):
    page = opened(guarded.url + "/#/topics/shop%2Forders", fails=True)
    give(page, a_token(guarded, "look", "topic:secret"))
    expect(page.get_by_role("slider")).to_be_visible()
    page.get_by_role("button", name="Compact …").click()
    expect(page.get_by_role("alert")).to_contain_text("lacks the role topic for stream shop: it has look")
    page.get_by_role("button", name="Close").click()
    page.goto(guarded.url + "/#/topics/shop%2Fcarts")
    expect(page.get_by_role("button", name="Plan")).to_be_visible()
    expect(page.get_by_role("button", name="Compact …")).to_have_count(0)
    page.goto(guarded.url + "/#/topics/shop%2Fcarts/records")
    expect(page.get_by_role("alert")).to_contain_text("lacks the role consume for stream shop")
    page.goto(guarded.url + "/#/topics/secret%2Fplans")
    page.get_by_role("button", name="Compact …").click()
    expect(page.get_by_role("dialog")).to_contain_text("A round would read at most")
    page.keyboard.press("Escape")
    page.goto(guarded.url + "/#/jobs")
    expect(page.get_by_role("alert")).to_contain_text("lacks the role admin")


def test_a_token_for_one_stream_shows_that_stream(guarded: Shown, opened):
    page = opened(guarded.url, fails=True)
    give(page, a_token(guarded, "look:shop"))
    expect(page.locator("#lost")).to_contain_text("What this token may see is read every few seconds")
    expect(page.locator("table.topics td.topic a")).to_have_count(2)
    guarded.lake.create_topic("shop/later")
    expect(page.locator("table.topics td.topic a")).to_have_count(3)
    page.get_by_role("link", name="shop/orders").click()
    expect(page.get_by_role("slider")).to_be_visible()
    page.goto(guarded.url + "/#/topics/secret%2Fplans")
    expect(page.get_by_role("alert")).to_contain_text("lacks the role look for stream secret")
    page.goto(guarded.url + "/#/cleaners")
    expect(page.get_by_role("alert")).to_contain_text("lacks the role look for the whole warehouse")
    page.get_by_role("button", name="Use another token").click()
    expect(page.get_by_role("dialog")).to_contain_text("needs a token")
