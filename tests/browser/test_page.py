"""The page of a gateway in a real browser: what it shows, what its buttons do, and what it does in trouble."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from playwright.sync_api import Page, Route, expect

import lithify
from browser.conftest import Shown, a_shop
from lithify.daemons.cleaner.cleaner_options import RoundProgress
from lithify.gateway.server.live.events import KEPT
from lithify.gateway.server.live.page import load_page
from lithify.reports.events import CleanerEvent, EventKind
from lithify.testing import memory_lake
from support.servers.tcp_proxy import a_proxy

ORDERS = "/#/topics/shop%2Forders"


def names(page: Page) -> list[str]:
    return page.locator("table.topics td.topic a").all_inner_texts()


def row(page: Page, topic: str):
    return page.locator("table.topics tbody tr", has=page.get_by_role("link", name=topic, exact=True))


def test_topics_are_shown_the_worst_first_and_found(shop: Shown, opened):
    page = opened(shop.url)
    expect(page.locator("#live")).to_have_text("gateway-1")
    expect(row(page, "risk/limits").locator(".badge")).to_have_text("quarantined")
    expect(row(page, "ads/clicks").locator(".badge")).to_have_text("due")
    assert names(page)[0] == "risk/limits"
    page.keyboard.press("/")
    page.keyboard.type("iot dev")
    expect(page.locator("table.topics td.topic a")).to_have_count(1)
    assert names(page) == ["iot/devices"]
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Topic", exact=True).click()
    expect(page.locator("td.topic a").first).to_have_text("ads/clicks")
    page.get_by_role("button", name="quarantined").click()
    expect(page.locator("table.topics td.topic a")).to_have_count(1)
    expect(page.locator(".totals")).to_contain_text("1 of 6 topics")


def test_the_keyboard_is_enough(shop: Shown, opened):
    page = opened(shop.url)
    expect(row(page, "shop/orders")).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.press("ArrowDown")
    first = page.evaluate("document.activeElement.textContent")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.textContent") != first
    page.keyboard.press("Enter")
    expect(page.get_by_role("slider").first).to_be_visible()
    page.get_by_role("slider").first.focus()
    page.keyboard.press("ArrowRight")
    told = page.evaluate("document.activeElement.getAttribute('aria-valuetext')")
    assert re.search(r"segment.*offsets.*record", told)
    shop.events.told(CleanerEvent(EventKind.SWEPT, 0, "c", "shop/orders", {"files": 0, "bytes": 0}))  # drawn again
    page.wait_for_timeout(1_000)
    assert page.evaluate("document.activeElement.getAttribute('aria-valuetext')") == told
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("search the topics")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_a_log_is_drawn_with_all_its_runs(shop: Shown, opened):
    page = opened(shop.url + "/#/topics/iot%2Fdevices")
    layout = shop.lake.topic("iot/devices").layout().logs[0]
    expect(page.locator("svg.log .run")).to_have_count(len(layout.runs))
    parts = [run.get_attribute("class").split()[1] for run in page.locator("svg.log .run").all()]
    assert parts == [run.part.value for run in layout.runs]
    expect(page.locator("svg.log")).to_contain_text(f"end {layout.log_end_offset:,}")
    drawn = "runs => runs.map(run => run.getBoundingClientRect().width)"
    widths = page.locator("svg.log .run .ground").evaluate_all(drawn)
    spans = [run.end_offset - run.base_offset for run in layout.runs]
    assert widths.index(max(widths)) == spans.index(max(spans))


def test_rounds_are_charts_and_a_table(shop: Shown, opened):
    page = opened(f"{shop.url}{ORDERS}/rounds")
    rounds = len(shop.lake.topic("shop/orders").history())
    expect(page.locator("table.facts tbody tr")).to_have_count(rounds)
    expect(page.locator("svg.bars")).to_have_count(3)
    page.get_by_role("slider").focus()
    page.keyboard.press("End")
    expect(page.locator(".readout")).to_contain_text("superseded")


def test_records_and_keys_are_shown_as_what_they_are(opened):
    lake = memory_lake()
    topic = lake.create_topic("mixed")
    hostile = b"<img src=x onerror=alert(1)><script>alert(2)</script>"
    topic.append(
        [
            lithify.Record(b"json", json.dumps({"a": [1, {"b": None}]}).encode(), headers=(("h", b"x"),)),
            lithify.Record(b"\xff\x01", b"\x00\x01\xfe"),
            lithify.Record(hostile, hostile),
            lithify.Record(b"json", None),
        ]
    )
    shown = Shown(lake).start()
    page = opened(shown.url + "/#/topics/mixed/records")
    items = page.locator(".record-list .record")
    expect(items).to_have_count(4)
    expect(items.nth(0)).to_contain_text("tombstone")
    expect(items.nth(1)).to_contain_text(hostile.decode())
    items.nth(2).locator("summary").click()
    expect(items.nth(2).locator("pre")).to_contain_text("000000  00 01 fe")
    items.nth(3).locator("summary").click()
    expect(items.nth(3).locator("pre")).to_contain_text('  "a": [\n    1,')
    page.get_by_role("searchbox", name="Key").fill("json")
    page.get_by_role("button", name="Find").click()
    card = page.locator(".key-card")
    expect(card).to_contain_text("deleted, or never there")
    expect(card.locator(".timeline > li")).to_have_count(2)
    items.nth(2).get_by_role("button", name="All of this key").click()
    expect(page.get_by_role("searchbox", name="Key")).to_have_value("0xff01")
    expect(card.locator("pre").first).to_contain_text("00 01 fe")
    shown.stop()


def test_every_button_does_what_it_says(opened):
    shown = Shown(a_shop()).start()
    page = opened(shown.url + "/#/topics/ads%2Fclicks")
    dialog = page.get_by_role("dialog")
    page.get_by_role("button", name="Plan").click()
    expect(dialog).to_contain_text("A round would read at most")
    dialog.get_by_role("button", name="Close").click()
    page.get_by_role("button", name="Compact …").click()
    expect(dialog).to_contain_text("A round would read at most")
    assert shown.lake.topic("ads/clicks").history() == ()
    dialog.get_by_role("button", name="Compact now").click()
    expect(dialog.get_by_role("heading")).to_have_text("Compacted")
    expect(dialog).to_contain_text("superseded")
    assert len(shown.lake.topic("ads/clicks").history()) == 1
    dialog.get_by_role("button", name="Close").click()
    page.get_by_role("button", name="Verify …").click()
    dialog.get_by_role("button", name="Verify", exact=True).click()
    expect(dialog).to_contain_text("Clean: nothing was lost.")
    dialog.get_by_role("button", name="Close").click()
    page.get_by_role("button", name="Undo …").click()
    expect(dialog).to_contain_text("What would change", use_inner_text=False)
    dialog.get_by_role("button", name="Undo the round").click()
    expect(page.locator(".notice")).to_contain_text("was undone")
    assert shown.lake.topic("ads/clicks").state().log(0).first_dirty_offset == 0
    page.goto(shown.url + "/#/topics/risk%2Flimits")
    page.locator(".buttons").get_by_role("button", name="Release …").click()
    expect(dialog).to_contain_text("5 failures")
    dialog.get_by_role("button", name="Release", exact=True).click()
    expect(page.locator(".notice").last).to_contain_text("released")
    assert not shown.lake.topic("risk/limits").status().logs[0].quarantined
    page.goto(shown.url + "/#/topics/shop%2Forders/versions")
    page.get_by_role("button", name=re.compile("^Against")).first.click()
    dialog.get_by_role("button", name="Verify", exact=True).click()
    expect(dialog).to_contain_text("Clean: nothing was lost.")
    shown.stop()


def test_an_error_is_shown_with_its_hint(opened):
    shown = Shown(a_shop()).start()
    page = opened(shown.url + "/#/topics/ads%2Fquiet", fails=True)
    expect(page.get_by_role("slider")).to_be_visible()
    page.get_by_role("button", name="Undo …").click()
    expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("NothingToUndo")
    page.get_by_role("button", name="Close").click()
    shown.lake.delete_topic("ads/quiet")
    page.get_by_role("button", name="Plan").click()
    expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("UnknownTopic")
    shown.stop()


def test_it_follows_what_happens_elsewhere(opened):
    shown = Shown(a_shop()).start()
    page = opened(shown.url)
    expect(row(page, "ads/quiet").locator(".badge")).to_have_text("clean")
    shown.lake.topic("ads/quiet").append([lithify.Record(b"a", b"1")] * 9)
    expect(row(page, "ads/quiet").locator(".badge")).to_have_text("due")
    shown.lake.create_topic("ads/new")
    expect(row(page, "ads/new")).to_be_visible()
    shown.lake.delete_topic("ads/new")
    expect(row(page, "ads/new")).to_have_count(0)
    progress = RoundProgress("w", ("ads/quiet",), shown.lake.warehouse.clock.now_ms(), "rewrite", 3, 8)
    shown.events.proceeded(progress)
    expect(page.locator("#running")).to_have_text("1")
    page.goto(shown.url + "/#/activity")
    expect(page.locator("main")).to_contain_text("rewrite 3 of 8")
    shown.events.proceeded(RoundProgress("w", ("ads/quiet",), progress.begun_ms, ended=True))
    expect(page.locator("main")).to_contain_text("No round of the cleaner is running.")
    facts = {"partition": 0, "error": "it broke", "error_code": "Damaged", "failures": 5}
    shown.events.told(CleanerEvent(EventKind.QUARANTINED, progress.begun_ms, "c1", "ads/quiet", facts))
    expect(page.locator(".events li").first).to_contain_text("it broke")
    shown.stop()


def test_a_gateway_that_restarts_and_one_that_was_upgraded(opened, monkeypatch):
    shown = Shown(a_shop()).start()
    page = opened(shown.url, fails=True)
    expect(page.locator("#live")).to_have_text("gateway-1")
    shown.stop()
    expect(page.locator("#lost")).to_contain_text("does not answer")
    expect(page.locator("#live")).to_have_text("not connected")
    shown.lake.topic("ads/quiet").append([lithify.Record(b"a", b"1")] * 9)
    shown.start()
    expect(page.locator("#lost")).to_have_count(0)
    expect(row(page, "ads/quiet").locator(".badge")).to_have_text("due")
    shown.stop()
    newer = load_page()
    monkeypatch.setattr("lithify.gateway.server.app.load_page", lambda: type(newer)(newer.files, "newer"))
    shown.start()
    expect(page.locator("#upgraded")).to_contain_text("another version of this page")
    expect(page.get_by_role("button", name="Reload")).to_be_visible()
    shown.stop()


def test_a_round_whose_end_it_has_missed_is_not_shown_as_running(opened):
    shown = Shown(a_shop()).start()
    page = opened(shown.url, fails=True)
    expect(page.locator("#live")).to_have_text("gateway-1")
    progress = RoundProgress("w", ("ads/quiet",), shown.lake.warehouse.clock.now_ms(), "rewrite", 3, 8)
    shown.events.proceeded(progress)
    expect(page.locator("#running")).to_have_text("1")
    shown.events.proceeded(replace(progress, ended=True))
    for _ in range(KEPT):
        shown.events.told(CleanerEvent(EventKind.STOPPED, progress.begun_ms, "c1", None, {"reason": "x"}))
    expect(page.locator("#running")).to_be_hidden()
    shown.events.proceeded(progress)
    expect(page.locator("#running")).to_have_text("1")
    shown.stop()
    shown.start()  # it has lost its work
    expect(page.locator("#running")).to_be_hidden()
    shown.stop()


def test_topics_that_cannot_be_read_at_first_are_shown_later(opened):
    shown = Shown(a_shop()).start()
    page = opened("about:blank", fails=True)
    refused = []

    def refuse_once(route: Route) -> None:
        if refused:
            return route.fallback()
        refused.append(route)
        return route.fulfill(status=503, json={"detail": "the catalog was away for a moment", "code": "Warehouse"})

    page.route("**/api/v1/status", refuse_once)
    page.goto(shown.url)
    expect(page.locator("#unreadable")).to_contain_text("away for a moment")
    expect(row(page, "ads/quiet")).to_be_visible()
    expect(page.locator("#unreadable")).to_have_count(0)
    shown.stop()


def test_what_events_tell_is_not_undone_by_an_answer_from_before(opened):
    shown = Shown(a_shop()).start()
    page = opened("about:blank")
    held = []

    def hold_first(route: Route) -> None:
        if held:
            route.fallback()
        else:
            held.append((route, route.fetch()))

    page.route("**/api/v1/status", hold_first)
    page.goto(shown.url)
    expect(page.locator("#live")).to_have_text("gateway-1")
    while not held:
        page.wait_for_timeout(50)
    shown.lake.topic("ads/quiet").append([lithify.Record(b"a", b"1")] * 9)
    expect(row(page, "ads/quiet").locator(".badge")).to_have_text("due")
    route, answer = held[0]
    route.fulfill(response=answer)
    expect(row(page, "shop/orders")).to_be_visible()
    expect(row(page, "ads/quiet").locator(".badge")).to_have_text("due")
    shown.stop()


def test_a_gateway_that_is_frozen_is_no_longer_shown_as_live(opened):
    """It keeps its connections and says nothing, as a machine that has lost the network does."""
    shown = Shown(a_shop()).start()
    with a_proxy("127.0.0.1", shown.port) as proxy:
        page = opened("about:blank", fails=True)
        page.clock.install()
        page.goto(f"http://{proxy.address}")
        expect(page.locator("#live")).to_have_text("gateway-1")
        page.clock.fast_forward(20_000)
        expect(page.locator("#live")).to_have_text("gateway-1")
        proxy.silent = True
        page.clock.fast_forward(41_000)
        expect(page.locator("#live")).to_have_text("not connected")
        proxy.mend()
        page.clock.fast_forward(60_000)
        expect(page.locator("#live")).to_have_text("gateway-1")
    shown.stop()


@pytest.mark.parametrize("topics", [1_500])
def test_only_rows_in_sight_are_in_the_document(opened, topics):
    lake = memory_lake()
    for number in range(topics):
        lake.create_topic(f"many/t{number:05}")
    shown = Shown(lake).start()
    page = opened(shown.url)
    expect(page.locator(".totals")).to_contain_text("1,500 topics")
    assert page.locator("table.topics tbody tr").count() < 80
    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    expect(row(page, f"many/t{topics - 1:05}")).to_be_visible()
    page.get_by_role("searchbox").fill("t00777")
    expect(page.locator("table.topics td.topic a")).to_have_count(1)
    shown.stop()
