"""Standard streams that take nothing any more: what failed first is said, with its exit code."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from lithify.cli.invocation import Invocation
from lithify.cli.main import run as run_here
from support.processes.programs import PROGRAM
from support.servers.tcp_proxy import wait_until

A_LINE = '{"key":"k","value":"v"}\n'
BROKEN = "it is not JSON: Expecting property name enclosed in double quotes at column 2"


@pytest.fixture
def orders(lithify):
    lithify("topic", "create", "orders")
    return lithify


@pytest.fixture(params=["without a reader", "full"])
def lost(request) -> Iterator[int]:
    """A file that takes no output."""
    if request.param == "full":
        file = os.open("/dev/full", os.O_WRONLY)
    else:
        reader, file = os.pipe()
        os.close(reader)
    yield file
    os.close(file)


def produced(text: str, *flags: str, stdout: int, stderr: int = subprocess.PIPE) -> tuple[int, str]:
    command = [*PROGRAM, *flags, "produce", "orders"]
    buffered = {**os.environ, "PYTHONUNBUFFERED": ""}  # so that Python has something to flush at exit
    done = subprocess.run(command, input=text, stdout=stdout, stderr=stderr, text=True, check=False, env=buffered)
    return done.returncode, done.stderr


def test_refused_input_is_said_where_stdout_takes_nothing(orders, lost):
    code, said = produced(f"{A_LINE}{{broken\n", "--json", stdout=lost)
    told = json.loads(said)
    assert (code, told["code"], told["hint"]) == (2, "InvalidInput", "nothing was written")
    assert told["message"] == f"stdin, line 2: {BROKEN}"
    assert orders("consume", "orders").lines == []


def test_how_far_it_got_is_said_where_stdout_takes_nothing(orders, lost):
    code, said = produced(f"{A_LINE * 20_000}{{broken\n", stdout=lost)
    how_far = "nothing of its batch was written; 20,000 records of earlier batches were"
    assert (code, said) == (2, f"error[InvalidInput]: stdin, line 20001: {BROKEN} ({how_far})\n")


def test_the_exit_code_stands_where_no_stream_takes_anything(orders, lost):
    assert produced(f"{A_LINE}{{broken\n", stdout=lost, stderr=lost) == (2, None)


def test_an_interrupt_is_said_where_stdout_takes_nothing(orders, lost):
    command = [*PROGRAM, "produce", "orders", "--linger", "100ms"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=lost, stderr=subprocess.PIPE, text=True) as producing:
        assert producing.stdin is not None
        assert producing.stderr is not None
        producing.stdin.write(A_LINE)
        producing.stdin.flush()
        wait_until(lambda: orders("consume", "orders").lines, "it is not there", 30)
        producing.send_signal(signal.SIGINT)
        said = producing.stderr.read()
    assert producing.returncode == 130
    assert said == "interrupted: orders: 1 record written, version 2; later lines were not written\n"


def test_what_was_found_is_the_exit_code_where_nobody_reads_it(orders, tmp_path, lost):
    """As in `lithify replica verify r | head -1`, with `set -o pipefail`, or on a full disk."""
    orders("produce", "orders", stdin=A_LINE)
    orders("replica", "add", "orders", "--to", tmp_path / "backup", "--name", "r")
    orders("replica", "run", "--once")
    (copied,) = (tmp_path / "backup").rglob("*.parquet")
    copied.unlink()
    for command in (["replica", "verify", "r"], ["replica", "verify", "r", "--json"], ["doctor"]):
        env = {**os.environ, "LITHIFY_WAREHOUSE": str(orders.warehouse), "LITHIFY_PULSAR_JARS": str(tmp_path / "none")}
        done = subprocess.run([*PROGRAM, *command], stdout=lost, stderr=subprocess.PIPE, env=env, check=False)
        assert done.returncode == 3, (command, done.stderr)


def test_a_plan_that_nobody_reads_is_a_refusal_without_yes(orders, lost):
    orders("produce", "orders", stdin=A_LINE)
    orders("consume", "orders", "--group", "billing")
    assert run(["group", "reset", "billing", "orders", "--to", "earliest"], stdout=lost) == 2


def test_what_failed_is_the_exit_code_where_nobody_reads_the_rest(orders, lost):
    (metadata,) = Path(orders.warehouse).glob("default/orders-*/metadata/*.metadata.json")
    metadata.unlink()
    orders("topic", "create", "others")
    assert run(["topic", "list"], stdout=lost) == 1
    assert run(["status", "--json"], stdout=lost) == 1
    assert run(["status"], stdout=lost, stderr=lost) == 1


def test_all_topics_are_repaired_where_nobody_reads_which(orders, lost):
    """As in `lithify repair --all --yes | head -1`."""
    orders("topic", "create", "others")
    (Path(orders.warehouse) / "catalog.db").unlink()
    assert run(["repair", "orders"], stdout=lost) == 2
    run(["repair", "--all", "--yes"], stdout=lost, stderr=lost)
    assert orders("repair").err == "no topic needs repair\n"


def test_all_of_the_work_is_done_where_nobody_reads_how(lithify, lost):
    """As in `lithify sweep --yes 2>&1 | head -1`; a round ended before Spark had started."""
    for name in ("a", "b"):
        lithify("topic", "create", name, "--config", "versions.retention.ms=0")
        lithify("produce", name, stdin=A_LINE * 2)
        lithify("truncate", name, "--to", 1, "--yes")
    run(["sweep", "--yes"], stdout=lost, stderr=lost)
    assert [lithify("versions", name, "--json").lines for name in ("a", "b")] == [[], []]


def test_a_daemon_that_nobody_hears_ends_and_has_failed(lithify, lost):
    assert run(["cleaner", "run", "--json"], stdout=lost) == 1
    assert run(["replica", "run"], stderr=lost) == 1


def test_a_run_that_ends_by_itself_does_all_of_its_work_where_nobody_hears_it(orders, lost, tmp_path):
    """As in `lithify replica run --once 2>&1 | head -1`, which copied nothing."""
    orders("replica", "add", "orders", "--to", tmp_path / "backup", "--name", "r")
    assert run(["replica", "run", "--once"], stderr=lost) == 0
    assert orders("replica", "run", "--once", "--json").lines[1]["event"] == "stopped"
    assert run(["cleaner", "run", "--once"], stderr=lost) == 0


def test_a_terminal_that_hangs_up_fails_no_work(orders):
    """As after `disown`: the records were written, and then their bar could not be taken away."""
    kept, shown = pty.openpty()
    command, env = [*PROGRAM, "produce", "orders"], {**os.environ, "TERM": "xterm"}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=shown, env=env
    ) as producing:
        os.close(shown)
        os.read(kept, 1)
        os.close(kept)
        producing.communicate(A_LINE.encode())
    assert producing.returncode == 0


def test_the_lost_connection_of_a_server_is_no_reader_that_has_gone(monkeypatch, capsys):
    def broken(*_):
        raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr(Invocation, "open_lake", broken)
    assert run_here(["topic", "list"]) == 1
    assert "BrokenPipeError" in capsys.readouterr().err


def run(command: list[str], *, stdout: int = subprocess.DEVNULL, stderr: int = subprocess.DEVNULL) -> int:
    return subprocess.run([*PROGRAM, *command], stdout=stdout, stderr=stderr, check=False).returncode
