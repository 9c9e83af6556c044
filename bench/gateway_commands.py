"""Commands through a warm gateway, beside the same commands without one.

    python bench/gateway_commands.py [--times 5]

A real `lithify gateway run`, whose catalog is in SQLite. `compact` is of a topic with three new records each time. The
processor time is the command's own, with all its children. `round over HTTP` is the same without a command: one request
of a connection that is open. The targets are 0.5 s for `compact` through a gateway, and 0.3 s of processor time for
`topic list`.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable

import lithify
from real_gateway import PROGRAM, a_gateway
from shown import add_publish, shown


def taken(act: Callable[[], object], before: Callable[[], object], times: int) -> tuple[float, float]:
    """Medians of the seconds, and of the processor time of children, of something that is done so often."""
    measured = []
    for _ in range(times + 1):
        before()
        begun, used = time.perf_counter(), os.times()
        act()
        seconds, after = time.perf_counter() - begun, os.times()
        children_s = after.children_user + after.children_system - used.children_user - used.children_system
        measured.append((seconds, children_s))
    by_clock, by_processor = zip(*measured[1:], strict=True)  # the first one gets all warm
    return statistics.median(by_clock), statistics.median(by_processor)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=5)
    add_publish(parser)
    asked = parser.parse_args()
    with shown(asked) as show, tempfile.TemporaryDirectory() as folder:
        topic = lithify.open(folder).create_topic("orders")

        def append() -> None:
            topic.append([lithify.Record(key, value) for key, value in ((b"a", b"1"), (b"b", b"2"), (b"a", b"3"))])

        def run(*words: str) -> None:
            subprocess.run([*PROGRAM, *words], check=True, capture_output=True)

        def row(what: str, act: Callable[[], object], before: Callable[[], object], **more: str) -> None:
            seconds, cpu_s = taken(act, before, asked.times)
            own = {} if what == "round over HTTP" else {"cpu_s": round(cpu_s, 2)}
            show(what=what, **more, seconds=round(seconds, 2), **own)

        def pair(through: str, *where: str) -> None:
            row("topic list", lambda: run(*where, "topic", "list"), lambda: None, through=through)
            row("compact", lambda: run(*where, "compact", "orders"), append, through=through)

        with a_gateway(folder) as gateway:
            pair("a gateway", "--gateway", gateway.url)
            row("round over HTTP", lambda: gateway.compact("orders"), append)
        pair("none", "--warehouse", folder)


if __name__ == "__main__":
    main()
