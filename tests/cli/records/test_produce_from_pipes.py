"""`lithify produce` from a pipe that stays open: what is read is appended soon, and before the program ends."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time

import pytest

from support.processes.terminals import on_a_terminal
from support.servers.tcp_proxy import wait_until


@pytest.fixture
def producing(lithify):
    """A producer with an open pipe, and a look at what the topic has."""
    lithify("topic", "create", "orders")

    def start(*flags):
        command = [sys.executable, "-m", "lithify", "produce", "orders", *flags]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    return start


def told(process, *keys):
    for key in keys:
        process.stdin.write(json.dumps({"key": key, "value": "v"}).encode() + b"\n")
    process.stdin.flush()


def test_a_record_is_there_while_its_producer_lives_and_has_the_time_at_which_it_was_read(
    lithify, producing, begins_chain
):
    process = producing("--linger", "100ms")
    told(process, "a")
    wait_until(lambda: len(lithify("consume", "orders").lines) == 1, "the first is not there", 30)
    assert process.poll() is None
    time.sleep(0.3)
    told(process, "b")
    wait_until(lambda: len(lithify("consume", "orders").lines) == 2, "the second is not there", 30)
    _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (0, b"orders: 2 records written, version %d\n" % (3 + begins_chain))
    first, second = (record["timestamp"] for record in lithify("consume", "orders").lines)
    assert second >= first + 300


def test_an_interrupt_appends_what_was_read_whole(lithify, producing, begins_chain):
    process = producing("--linger", "3s")
    told(process, "a")
    wait_until(lambda: len(lithify("consume", "orders").lines) == 1, "the first is not there", 30)
    told(process, *"bc")
    process.stdin.write(b'{"key":"half')
    process.stdin.flush()
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    _, err = process.communicate(timeout=30)
    far = b"orders: 3 records written, version %d" % (3 + begins_chain)
    assert err == b"interrupted: " + far + b"; later lines were not written\n"
    assert [record["key"] for record in lithify("consume", "orders").lines] == ["a", "b", "c"]


def test_no_bar_is_drawn_while_records_are_typed(lithify, tmp_path):
    """It would be drawn into the line that is being typed."""
    lithify("topic", "create", "orders")
    with on_a_terminal("produce", "orders", "--linger", "100ms") as terminal:
        terminal.wait_for(b"Ctrl-D ends")
        terminal.type(b'{"key":"a","value":"1"}\n')
        wait_until(lambda: len(lithify("consume", "orders").lines) == 1, "the first is not there", 30)
        terminal.type(b'{"key":"b","value":"2"}\n\x04')
        assert terminal.ended() == 0
    assert b"2 records written" in terminal.drawn
    assert b"\x1b[?25l" not in terminal.drawn and b"appending" not in terminal.drawn
    file = tmp_path / "records"
    file.write_text('{"key":"c","value":"3"}\n')
    with on_a_terminal("produce", "orders", "--format", "json", str(file)) as terminal:
        assert terminal.ended() == 0
    assert b"appending" in terminal.drawn, "of a file there is a bar"
