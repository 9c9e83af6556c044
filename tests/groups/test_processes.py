"""Members that are processes of their own: stopped, killed and interrupted (C58)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from groups.conftest import PARTITIONS, put, wait_until
from lithify import Lake, Topic
from lithify.api.groups import Group
from support.processes.frozen import freeze
from support.processes.programs import PROGRAM

LEASE = "4s"
Consume = Callable[[str], tuple[subprocess.Popen[bytes], Path]]


@pytest.fixture
def consume(topic: Topic, tmp_path: Path) -> Iterator[Consume]:
    """Starts `lithify consume --group g --follow`, which prints into a file."""
    with ExitStack() as stack:

        def started(name: str) -> tuple[subprocess.Popen[bytes], Path]:
            path = tmp_path / name
            where = ("--warehouse", str(tmp_path / "lake"))
            command = (*PROGRAM, "consume", "orders", "--group", "g", "--follow", "--lease", LEASE, *where)
            out, err = (stack.enter_context(Path(f"{path}{end}").open("wb")) for end in ("", ".err"))
            process = subprocess.Popen(command, stdout=out, stderr=err)
            stack.callback(process.wait)
            stack.callback(process.kill)
            return process, path

        yield started


def printed(path: Path) -> list[int]:
    return [int(json.loads(line)["value"]) for line in path.read_text("utf-8").splitlines()]


def stored(lake: Lake) -> dict[int, int]:
    return {p.log.partition: p.cursor.offset for p in Group(lake.warehouse, "g").positions()}


def all_at(lake: Lake, offset: int) -> Callable[[], bool]:
    return lambda: stored(lake) == dict.fromkeys(range(PARTITIONS), offset)


def test_a_stopped_member_is_taken_over_and_overwrites_nothing(
    consume: Consume, lake: Lake, topic: Topic, tmp_path: Path
) -> None:
    stopped, first = consume("first")
    wait_until(all_at(lake, 25))
    freeze(stopped, tmp_path / "lake" / "catalog.db")
    put(topic, range(100, 140))
    _, second = consume("second")
    wait_until(all_at(lake, 35))
    stopped.send_signal(signal.SIGCONT)
    for end in range(180, 300, 40):
        put(topic, range(end - 40, end))
        before = stored(lake)
        wait_until(all_at(lake, end // 4))
        assert all(before[p] <= offset for p, offset in stored(lake).items())
    assert {*printed(first), *printed(second)} == {*range(260)}
    assert {*range(100, 140)} <= {*printed(second)}


def test_a_killed_member_loses_nothing_and_an_interrupted_one_repeats_nothing(
    consume: Consume, lake: Lake, topic: Topic
) -> None:
    killed, first = consume("first")
    wait_until(all_at(lake, 25))
    killed.kill()
    put(topic, range(100, 140))
    other, second = consume("second")
    wait_until(all_at(lake, 35))
    assert sorted(printed(first)) == list(range(100))
    assert sorted(printed(second)) == list(range(100, 140))
    other.send_signal(signal.SIGINT)
    assert other.wait(60) == 130
    put(topic, range(140, 180))
    third_process, third = consume("third")
    wait_until(all_at(lake, 45))
    assert sorted(printed(third)) == list(range(140, 180)), "its partitions were free at once"
    os.kill(third_process.pid, signal.SIGTERM)
    assert third_process.wait(60) == 130
    assert all(not Path(f"{path}.err").read_text("utf-8") for path in (second, third))
