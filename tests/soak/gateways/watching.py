"""Those who watch gateways all the while: a page in a browser, or a follower of their events."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from threading import Event, Thread
from typing import Any, Protocol

import requests

Rows = Mapping[str, Mapping[str, Any]]
"""By topic, its row of the overview."""
SILENT_S = 30.0
"""A gateway says something every few seconds."""


class Watcher(Protocol):
    """One that watches one gateway."""

    kind: str

    @property
    def is_live(self) -> bool: ...

    def rows(self) -> Rows:
        """The topics as it knows them."""
        ...

    def complaints(self) -> list[str]:
        """Errors that a gateway which ends does not explain."""
        ...

    def close(self) -> None: ...


def has_browser() -> bool:
    return find_spec("playwright") is not None and shutil.which("chromium") is not None


@dataclass(slots=True)
class EventFollower:
    """Follows `/api/v1/events`, and comes back as the page does."""

    url: str
    kind: str = "events"
    lives: set[str] = field(default_factory=set)
    """Runs of the gateway that it has met."""
    is_live: bool = False
    _topics: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    _run: str = ""
    _after: int = 0
    _found: list[str] = field(default_factory=list)
    _stop: Event = field(default_factory=Event)

    def start(self) -> EventFollower:
        Thread(target=self._follow, daemon=True).start()
        return self

    def rows(self) -> Rows:
        return dict(self._topics)

    def complaints(self) -> list[str]:
        return self._found

    def close(self) -> None:
        self._stop.set()

    def _follow(self) -> None:
        while not self._stop.is_set():
            with suppress(requests.RequestException):
                self._connected()
            self.is_live = False
            self._stop.wait(1.0)

    def _connected(self) -> None:
        params = {"run": self._run, "after": str(self._after)} if self._run else {}
        with requests.get(f"{self.url}/api/v1/events", params=params, stream=True, timeout=SILENT_S) as answer:
            if not answer.ok:
                return
            event: dict[str, str] = {}
            for line in answer.iter_lines(chunk_size=1, decode_unicode=True):
                if self._stop.is_set():
                    return
                name, _, value = line.partition(": ")
                if line and name:
                    event[name] = value
                elif "data" in event:
                    self._told(event["event"], json.loads(event["data"]), int(event["id"]))
                    event = {}

    def _told(self, kind: str, data: Mapping[str, Any], number: int) -> None:
        if kind == "hello":
            self._run, self._after = data["run"], number
            self.lives.add(self._run)
            status = requests.get(f"{self.url}/api/v1/status", timeout=SILENT_S)
            if status.ok:
                self._topics = {row["topic"]: row for row in status.json()["topics"]}
            self.is_live = status.ok
        elif number < self._after:
            self._found.append(f"{self.url}: event {number} came after {self._after}")
        if kind == "topics":
            self._topics |= {row["topic"]: row for row in data["topics"]}
            for name in data["gone"]:
                self._topics.pop(name, None)
        self._after = max(self._after, number)


@dataclass  # without slots: Playwright stores its own beside a method that it calls
class BrowserPage:
    """The page in Chromium, driven by the thread that has started it."""

    url: str
    explained: Callable[[float], bool]
    """Whether at that time (epoch s) something was out that requests may have failed for."""
    kind: str = "a page in Chromium"
    lost_connections: int = 0
    is_live: bool = False
    _said: list[tuple[float, str]] = field(default_factory=list)
    _looked_s: float = 0.0
    _close: list[Callable[[], None]] = field(default_factory=list)
    _page: Any = None

    def start(self) -> BrowserPage:
        """Once the gateway answers."""
        from playwright.sync_api import sync_playwright

        playwright = sync_playwright().start()
        self._close.append(playwright.stop)
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        self._close.append(browser.close)
        self._page = browser.new_page()
        self._page.set_default_timeout(60_000)
        self._page.on("console", self._console)
        self._page.on("pageerror", lambda error: self._said.append((time.time(), f"an exception: {error}")))
        self._page.goto(self.url)
        return self

    def tick(self) -> None:
        """What its browser has said is taken in then, once a second."""
        if time.monotonic() >= self._looked_s + 1.0:
            self._looked_s = time.monotonic()
            self.is_live = "live" in self._page.evaluate("document.getElementById('live').className").split()[1:]

    def rows(self) -> Rows:
        """What the page is drawn from."""
        found = self._page.evaluate("import('/page/store.js').then(({store}) => [...store.topics.values()])")
        return {row["topic"]: row for row in found}

    def shown(self) -> str:
        """The text of the page."""
        return str(self._page.inner_text("body"))

    def complaints(self) -> list[str]:
        return [text for at_s, text in self._said if not ("Failed to load" in text and self.explained(at_s))]

    def close(self) -> None:
        while self._close:
            with suppress(Exception):
                self._close.pop()()

    def _console(self, said: Any) -> None:
        if said.type not in ("error", "warning"):
            return
        if "Failed to load resource" in said.text and "net::ERR_" in said.text:
            self.lost_connections += 1
        else:
            self._said.append((time.time(), f"{said.type}: {said.text} {said.location.get('url', '')}"))
