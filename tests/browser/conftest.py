"""A real browser, and gateways of lakes in memory for it to look at."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest
import requests
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

from browser.warehouse import DAMAGED, Earlier, Past, fail, make_stories
from lithify.api.lake import Lake
from lithify.gateway.process.serving import Serving
from lithify.gateway.server.app import Gateway
from lithify.gateway.server.jobs.jobs import Jobs
from lithify.gateway.server.live.events import Events
from lithify.testing import memory_lake
from support.servers.gateways import bound_port, guarded_gateway

ENOUGH_MS = 60_000
expect.set_options(timeout=ENOUGH_MS)


@dataclass
class Shown:
    """A gateway that can be restarted on its port, and what has failed in the browser."""

    lake: Lake
    name: str = "gateway-1"
    needs_token: bool = False
    port: int = 0
    events: Events = field(default_factory=Events)

    def start(self) -> Shown:
        self.events = Events()
        self.jobs = Jobs(self.lake.warehouse.clock, 2, self.events.job)
        bound = bound_port(self.port)
        self.port = bound.address.port
        app = guarded_gateway(Gateway(self.name, self.lake, self.jobs, self.events), needs_token=self.needs_token)
        self.serving = Serving(app, bound)
        self.serving.start()
        return self

    def stop(self) -> None:
        self.jobs.close()
        self.serving.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def ask(self, method: str, path: str, **more: object) -> requests.Response:
        return requests.request(method, self.url + path, timeout=60, **more)  # type: ignore[arg-type]


def a_shop() -> Lake:
    """Topics with something to see, of which one is quarantined and one is due."""
    clock = Earlier()
    past = Past(memory_lake(clock), clock, random.Random(7))
    make_stories(past)
    lake = past.at(0).lake
    for name, records in (("risk/limits", 30), ("ads/clicks", 40), ("ads/quiet", 0)):
        lake.create_topic(name)
        if records:
            past.append(name, records, 5)
    fail(lake, "risk/limits", DAMAGED, "Damaged", quarantined=True, failures=5)
    return lake


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """Debian's Chromium: what Playwright downloads is not needed."""
    program = shutil.which("chromium")
    assert program, "the section `browser` needs Chromium: apt-get install chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def shop() -> Iterator[Shown]:
    shown = Shown(a_shop()).start()
    yield shown
    shown.stop()


def _of_an_end(text: str, *, fails: bool) -> bool:
    """Whether it says only that a gateway has ended, or has refused a request where a test `fails` some."""
    return "Failed to load resource" in text and (fails or "net::ERR_" in text)


@dataclass
class Watched:
    """A page, and what its browser complained of."""

    page: Page
    complaints: list[str]


@pytest.fixture
def opened(chromium: Browser) -> Iterator[Callable[..., Page]]:
    """Opens pages; at the end none may have complained, but for requests that a test lets fail."""
    pages: list[Watched] = []

    def open_page(url: str, *, fails: bool = False, **how: object) -> Page:
        page = chromium.new_context(**how).new_page()  # type: ignore[arg-type]
        page.set_default_timeout(ENOUGH_MS)
        complaints: list[str] = []

        def noted(said: ConsoleMessage) -> None:
            if said.type in ("error", "warning") and not _of_an_end(said.text, fails=fails):
                complaints.append(said.text)

        page.on("console", noted)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        pages.append(Watched(page, complaints))
        page.goto(url)
        return page

    yield open_page
    for watched in pages:
        watched.page.context.close()
    assert [text for watched in pages for text in watched.complaints] == []
