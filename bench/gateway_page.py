"""The page of a gateway of 10,000 topics, in Chromium: how soon it is ready, how quick search and sort are.

    python bench/gateway_page.py [--topics 10000] [--repeat 5]

The lake is in memory, and one in a hundred of its topics is due: the gateway and the page are measured, and no catalog.
Of the page there are the time that its renderer had a processor for, and the time that passed, which is longer on a
machine that does other things too. The targets are 100 ms for a `status` of a warm gateway, and 1 s until the page is
ready.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import time
from collections.abc import Callable
from http.client import HTTPConnection
from typing import Any

from playwright.sync_api import Browser, sync_playwright

import lithify
from lithify.api.lake import Lake
from lithify.gateway.access.hosts import AllowedHosts
from lithify.gateway.listening.bound import bind
from lithify.gateway.listening.guarded import GatewayTokens, guarded
from lithify.gateway.listening.listen import ListenAddress, Listening
from lithify.gateway.process.serving import Serving
from lithify.gateway.server.app import Gateway, application
from lithify.gateway.server.jobs.jobs import Jobs
from lithify.gateway.server.kinds import kind_of
from lithify.testing import memory_lake
from shown import add_publish, shown

READY = """
new MutationObserver(() => {
  if (!window.readyMs && document.querySelector("table.topics td.topic a")) window.readyMs = performance.now();
}).observe(document, { childList: true, subtree: true });
"""
SEARCH = """text => {
  const field = document.getElementById("search");
  const begun = performance.now();
  field.value = text;
  field.dispatchEvent(new Event("input"));
  document.body.offsetHeight;
  return performance.now() - begun;
}"""
SORT = """n => {
  const begun = performance.now();
  document.querySelectorAll("table.topics th button")[n].click();
  document.body.offsetHeight;
  return performance.now() - begun;
}"""


def many_topics(topics: int) -> Lake:
    lake = memory_lake()
    for number in range(topics):
        topic = lake.create_topic(f"stream{number % 50:02}/topic{number:05}")
        if number % 100 == 0:
            topic.append([lithify.Record(key=b"a", value=b"1")] * 3)
    return lake


def served(lake: Lake) -> tuple[Serving, int]:
    bound = bind(ListenAddress("127.0.0.1", 0))
    app = application(Gateway("bench", lake, Jobs(lake.warehouse.clock, 1)))
    listening, tokens = Listening(bound.address, False), GatewayTokens(None, lake.warehouse.clock)
    serving = Serving(guarded(app, listening, tokens, hosts=AllowedHosts(), kind_of=kind_of), bound)
    serving.start()
    return serving, bound.address.port


def status(port: int) -> dict[str, Any]:
    """One request: what it took of this process, which both serves and asks."""
    begun_s, cpu_s = time.perf_counter(), time.process_time()
    connection = HTTPConnection("127.0.0.1", port)
    connection.request("GET", "/api/v1/status")
    body = connection.getresponse().read()
    connection.close()
    took = {"took_ms": 1000 * (time.perf_counter() - begun_s), "cpu_ms": 1000 * (time.process_time() - cpu_s)}
    return {**took, "bytes": len(body)}


def opened(browser: Browser, url: str) -> dict[str, Any]:
    """One load of the page in a new browser context, with the slowest of some searches and sorts."""
    page = browser.new_context().new_page()
    page.add_init_script(READY)
    metrics = page.context.new_cdp_session(page)
    metrics.send("Performance.enable")

    def cpu_ms() -> float:
        told = {one["name"]: one["value"] for one in metrics.send("Performance.getMetrics")["metrics"]}
        return 1000 * float(told["ThreadTime"])

    def taken(act: Callable[[], float]) -> dict[str, float]:
        before = cpu_ms()
        return {"took_ms": act(), "cpu_ms": cpu_ms() - before}

    def load() -> float:
        page.goto(url)
        page.wait_for_selector("table.topics td.topic a")
        return float(page.evaluate("readyMs"))

    steps = {
        "page ready": taken(load),
        "search": taken(lambda: max(page.evaluate(SEARCH, text) for text in ("t", "topic0", "topic00777", ""))),
        "sort": taken(lambda: max(page.evaluate(SORT, column) for column in (1, 1, 2, 3, 4, 0))),
        "rows": {"in_document": page.locator("table.topics tbody tr").count()},
    }
    page.context.close()
    return steps


def medians(runs: list[dict[str, Any]]) -> dict[str, float]:
    return {name: round(statistics.median(run[name] for run in runs), 1) for name in runs[0]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--topics", type=int, default=10_000)
    parser.add_argument("--repeat", type=int, default=5)
    add_publish(parser)
    flags = parser.parse_args()
    with shown(flags) as show:
        serving, port = served(many_topics(flags.topics))
        show(step="first status", **status(port))
        show(step="status", **medians([status(port) for _ in range(2 * flags.repeat)]))
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            runs = [opened(browser, f"http://127.0.0.1:{port}/") for _ in range(flags.repeat)]
            browser.close()
        for step in runs[0]:
            show(step=step, **medians([run[step] for run in runs]))
        serving.close()


if __name__ == "__main__":
    main()
