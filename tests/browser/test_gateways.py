"""What the page shows of the other gateways of a catalog, and of the standing jobs that they share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from playwright.sync_api import expect

import lithify
from browser.conftest import Shown
from browser.test_access_for_all import check
from browser.warehouse import Earlier
from lithify.api.lake import Lake
from lithify.api.wiring.shared_place import shared_place
from lithify.coordination.leases.gateways.jobs_sql import open_standing_jobs
from lithify.daemons.cleaner.loop import Loop
from lithify.daemons.cleaner.note_writer import NoteWriter
from lithify.model.jobs.definition import JobState


@pytest.fixture
def shared(tmp_path) -> Iterator[Shown]:
    """A gateway of a warehouse in a folder, whose database gateways share."""
    lake = lithify.open(str(tmp_path))
    lake.create_topic("shop/orders", 2).append([lithify.Record(b"a", b"1", partition=0)])
    shown = Shown(lake).start()
    yield shown
    shown.stop()


def note(loop: Loop, ms: int) -> None:
    NoteWriter(loop.coordination, loop.options, loop.reporter, ms - 1).write(ms)


def test_the_logs_of_a_gateway_that_died_are_taken_over(shared: Shown, opened):
    now_ms = shared.lake.warehouse.clock.now_ms()
    first, second = (shared.lake.cleaner(cleaner_id=name) for name in ("g1", "g2"))
    log = f"{shared.lake.topic('shop/orders').state().identity}/1"
    for loop in (first, second):
        loop.leases.register(loop.options.cleaner_id)
    note(first, now_ms - 600_000)
    note(second, now_ms)
    assert first.leases.take([log]) == {log}
    page = opened(shared.url + "/#/topics/shop%2Forders")
    expect(page.locator(".running-here")).to_contain_text("g1 works on 1 log of it: partition 1")
    expect(page.locator("#silent")).to_have_text("1")
    page.get_by_role("link", name="Cleaners").click()
    card = page.locator(".cleaner.stuck")
    expect(card).to_contain_text("It has not looked for long")
    expect(card).to_contain_text("It has not given up 1 log")
    first.leases.release([log])
    assert second.leases.take([log]) == {log}
    expect(card).to_contain_text("Taken over from it: 1 log")
    expect(card).to_contain_text("shop/orders 1 by g2")
    check(page, "cleaners")
    note(first, now_ms + 1)  # it is there again
    expect(card).to_have_count(0)
    expect(page.locator("#silent")).to_be_hidden()


def test_a_gateway_whose_clock_is_set_back_is_not_shown_as_silent(tmp_path, opened):
    stored, clock = lithify.open(str(tmp_path)).warehouse, Earlier()
    lake = Lake(replace(stored, clock=clock))
    lake.create_topic("orders")
    loop = lake.cleaner(cleaner_id="g1")
    loop.leases.register("g1")
    note(loop, clock.now_ms())
    shown = Shown(lake).start()
    try:
        page = opened(shown.url + "/#/cleaners")
        card = page.locator(".cleaner")
        expect(card).to_contain_text("g1")
        clock.by_ms = 600_000
        note(loop, clock.now_ms())
        page.wait_for_timeout(7_000)  # two looks
        expect(card).to_contain_text("g1")
        expect(page.locator("#silent")).to_be_hidden()
    finally:
        shown.stop()


def test_standing_jobs_are_shown_paused_and_resumed(shared: Shown, opened):
    jobs = shared.lake.standing_jobs()
    arguments = ["kafka", "ingest", "orders", "--bootstrap", "kafka:9092", "--continuous"]
    jobs.add("orders-in", arguments)
    store = open_standing_jobs(*shared_place(shared.lake.warehouse, None, makes=True))
    now_ms = shared.lake.warehouse.clock.now_ms()
    (stored,) = store.jobs()
    running = JobState("g2", True, now_ms - 60_000, now_ms, report='{"topic": "shop/orders", "lag": 1234}')
    store.note([(stored.job, running)])
    page = opened(shared.url + "/#/jobs")
    card = page.get_by_role("article", name="orders-in")
    expect(card.locator(".state")).to_have_text("running")
    expect(card).to_contain_text("lithify kafka ingest orders")
    expect(card).to_contain_text("1,234")
    failed = replace(running, running=False, failures=3, exit_code=1, error="no broker answers", error_code="Kafka")
    store.note([(stored.job, failed)])
    expect(card.locator(".state")).to_have_text("failing")
    expect(card.get_by_role("alert")).to_contain_text("no broker answers")
    check(page, "standing jobs")
    page.set_viewport_size({"width": 360, "height": 780})
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    card.get_by_role("button", name="Pause …").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Its process ends")
    dialog.get_by_role("button", name="Cancel").click()
    assert not jobs.list()[0].paused
    card.get_by_role("button", name="Pause …").click()
    dialog.get_by_role("button", name="Pause", exact=True).click()
    expect(card.locator(".state")).to_have_text("paused")
    assert jobs.list()[0].paused
    card.get_by_role("button", name="Resume …").click()
    dialog.get_by_role("button", name="Resume", exact=True).click()
    expect(card.get_by_role("button", name="Pause …")).to_be_visible()
    assert not jobs.list()[0].paused
