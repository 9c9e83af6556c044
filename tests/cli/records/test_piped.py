"""Tables in pipes and files: programs take lines apart, and none is wrapped, unless `$COLUMNS` is set."""

from __future__ import annotations

import os
import pty
import struct
import subprocess
from fcntl import ioctl
from termios import TIOCSWINSZ

import pytest

from support.processes.programs import PROGRAM

REASON = "a disk of the warehouse cannot be read, which the person who looks after it should know soon"


@pytest.fixture
def failed(lithify, failing):
    """A topic whose status has a line of more than 80 characters."""
    from lithify.model.failure import LogFailure

    lithify("topic", "create", "orders", "--partitions", 2)
    failing("orders", {1: LogFailure(8, *[1_700_000_000_000] * 3, f"{REASON}; {REASON}", True, "Damaged")})
    return lithify


def widest(text: str) -> int:
    return max(map(len, text.splitlines()))


@pytest.mark.parametrize(
    "command", [("status",), ("status", "orders"), ("quarantine", "list"), ("topic", "info", "orders")]
)
def test_nothing_is_wrapped_off_a_terminal(failed, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "78")
    wrapped = failed(*command).out
    monkeypatch.delenv("COLUMNS")
    whole = failed(*command).out
    if command[0] == "topic":
        assert whole == wrapped  # no word is taken apart, and its widest line is one word
        return
    assert widest(wrapped) <= 78 < widest(whole)
    assert len(whole.splitlines()) < len(wrapped.splitlines())
    assert "".join(whole.split()).startswith("".join(wrapped.split())[:20])
    if command[0] == "quarantine":
        assert f"{REASON}; {REASON}" in whole


def test_a_column_that_may_be_wrapped_has_no_spaces_behind_it(failed, monkeypatch):
    monkeypatch.delenv("COLUMNS")
    assert all(line == line.rstrip() for line in failed("stream", "list").out.splitlines())


def test_a_terminal_says_itself_how_wide_it_is(failed):
    controller, terminal = pty.openpty()
    ioctl(terminal, TIOCSWINSZ, struct.pack("HHHH", 24, 50, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    subprocess.run([*PROGRAM, "quarantine", "list"], stdout=terminal, env=environment, check=False)
    os.close(terminal)
    shown = os.read(controller, 65_536).decode()
    assert REASON not in shown and "".join(REASON.split()) in "".join(shown.split())


@pytest.mark.parametrize("columns", ["9" * 5_000, "0", "00", "-1", "²", "eighty"])
def test_a_width_that_is_none_fails_no_command(failed, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    assert failed("status").code == 0
