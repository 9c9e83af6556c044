"""Each view passes axe's checks in light and dark, and fits a phone."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from browser.conftest import Shown

VIEWS = {
    "topics": ("#/topics", "table.topics td.topic a"),
    "logs": ("#/topics/shop%2Forders", "svg.log .run"),
    "side by side": ("#/topics/shop%2Fcustomers", "svg.log .of-view"),
    "quarantined": ("#/topics/risk%2Flimits", ".one-log.stuck"),
    "rounds": ("#/topics/shop%2Forders/rounds", "svg.bars .round"),
    "records": ("#/topics/shop%2Forders/records", ".record"),
    "versions": ("#/topics/shop%2Forders/versions", "table.facts"),
    "settings": ("#/topics/shop%2Forders/settings", "table.facts"),
    "activity": ("#/activity", ".job"),
    "cleaners": ("#/cleaners", ".cards .empty"),
    "readers": ("#/readers", ".group"),
}
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
SIZES = {"desk": {"width": 1280, "height": 860}, "phone": {"width": 360, "height": 780}}


def check(page: Page, where: str) -> None:
    results = Axe().run(page, options={"runOnly": RULES})
    found = [(one["id"], node["html"][:160]) for one in results.response["violations"] for node in one["nodes"]]
    assert (where, found) == (where, [])


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_view_can_be_used_by_all(shop: Shown, opened, scheme, size):
    shop.ask("POST", "/api/v1/topics/ads%2Fclicks/rounds", json={"partitions": [9]})
    page = opened(shop.url, fails=True, color_scheme=scheme, viewport=SIZES[size], reduced_motion="reduce")
    for name, (place, there) in VIEWS.items():
        page.goto(f"{shop.url}/{place}")
        expect(page.locator(there).first).to_be_visible()
        check(page, name)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
    page.goto(shop.url + "/#/topics/ads%2Fclicks")
    page.get_by_role("button", name="Compact …").click()
    expect(page.get_by_role("dialog")).to_contain_text("A round would read at most")
    check(page, "a dialog")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
