"""Programs in front of a PostgreSQL or an S3 that answers nothing end within 10 seconds of a signal (C50)."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from threading import Event

import pytest

import lithify
from lithify.model.record import Record
from support.servers.tcp_proxy import wait_until

from .conftest import Backend

pytestmark = pytest.mark.alone

ENDS_WITHIN_S = 10.0
BOUND_S = 60.0

PROGRAM = [sys.executable, "-m", "lithify", "--catalog", "prod"]
CLEANER = ("cleaner", "run", "--json", "--interval", "500ms")
STOPPED = [
    (("status",), signal.SIGINT),
    (("topic", "list"), signal.SIGINT),
    (("consume", "orders"), signal.SIGINT),
    (("produce", "orders", "records.jsonl"), signal.SIGINT),
    (("sweep", "--yes"), signal.SIGINT),
    (CLEANER, signal.SIGINT),
    (CLEANER, signal.SIGTERM),
]


def started(verb: tuple[str, ...], folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*PROGRAM, *verb],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )


@pytest.mark.parametrize(("wire", "asked"), [("database", b"metadata_location"), ("s3", b" HTTP/1.1")])
def test_every_verb_ends_in_time_whatever_does_not_answer(
    backend: Backend, wire: str, asked: bytes, tmp_path: Path
) -> None:
    lithify.open(catalog="prod").create_topic("orders").append([Record(b"k", b"v")])
    (tmp_path / "records.jsonl").write_text('{"key": "k", "value": "v"}\n')
    held: list[bytes] = []
    over = Event()

    def hold(data: bytes) -> None:
        if asked in data:
            held.append(data)
            over.wait(2 * BOUND_S)

    (backend.database_wire if wire == "database" else backend.s3_wire).on_request = hold
    processes = [started(verb, tmp_path) for verb, _ in STOPPED]
    try:
        wait_until(lambda: len(held) >= len(processes), "not all of them have asked", BOUND_S)
        begun = time.monotonic()
        for process, (verb, number) in zip(processes, STOPPED, strict=True):
            assert process.poll() is None, verb
            process.send_signal(number)
        for process, (verb, _) in zip(processes, STOPPED, strict=True):
            process.wait(BOUND_S)
            assert time.monotonic() - begun < ENDS_WITHIN_S + 1, verb  # the machine may be busy
    finally:
        over.set()
        for process in processes:
            process.kill()
            process.wait()
