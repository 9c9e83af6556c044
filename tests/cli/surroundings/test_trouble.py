"""Bad surroundings: each an exit code and one line with the next step, and nothing lost."""

from __future__ import annotations

import ctypes
import json
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.processes.programs import PROGRAM

A_LINE = '{"key":"k","value":"v"}\n'


@pytest.fixture
def orders(lithify):
    lithify("topic", "create", "orders")
    lithify("produce", "orders", stdin=A_LINE * 3)
    return lithify


def segments(lithify) -> list[Path]:
    return sorted(lithify.warehouse.rglob("partition=*/*.parquet"))


def test_a_missing_data_file_is_named(orders):
    (segment,) = segments(orders)
    whole = segment.read_bytes()
    segment.unlink()
    for command in (("consume", "orders"), ("table", "orders")):
        said = orders.error(*command, code=1)
        assert f"{segment}: the file is missing" in said
        assert "restore the file" in said
    segment.write_bytes(whole)
    assert len(orders("consume", "orders").lines) == 3


@pytest.mark.parametrize("left", [0, 100, -1])
def test_a_data_file_that_was_cut_short_is_named(orders, left):
    (segment,) = segments(orders)
    segment.write_bytes(segment.read_bytes()[:left])
    said = orders.error("consume", "orders", code=1)
    assert str(segment) in said
    assert "restore the file" in said


@pytest.mark.parametrize("closed", [(2,), (0, 1, 2)], ids=str)
def test_streams_that_are_closed_are_no_files_of_the_warehouse(orders, closed, tmp_path):
    """What a library prints must not land in a segment that got the number of a closed stream."""
    printing = (
        "import os, lithify.cli.main\n"
        "real = os.fsync\n"
        "os.fsync = lambda file: [real(file), *(os.write(number, b'PRINTED') for number in (1, 2))]\n"
        "lithify.cli.main.main()"
    )
    records = tmp_path / "records.jsonl"
    records.write_text(A_LINE)
    done = subprocess.run(
        [sys.executable, "-c", printing, "--warehouse", orders.warehouse, "produce", "orders", records],
        preexec_fn=lambda: [os.close(number) for number in closed],
        stdin=subprocess.PIPE,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done
    assert len(orders("consume", "orders").lines) == 4
    assert [path for path in orders.warehouse.rglob("*") if path.is_file() and b"PRINTED" in path.read_bytes()] == []


def test_records_from_a_stdin_that_is_closed_are_none(orders):
    done = subprocess.run(
        [*PROGRAM, "--warehouse", orders.warehouse, "produce", "orders"],
        preexec_fn=lambda: os.close(0),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(
        "error[InvalidInput]: stdin is closed (pass the name of a file, or pipe records into it; nothing was written"
    )


def test_a_stdin_that_cannot_be_read_is_named(orders, tmp_path):
    with (tmp_path / "written").open("w") as for_writing:
        done = subprocess.run(
            [*PROGRAM, "produce", "orders"], stdin=for_writing, capture_output=True, text=True, check=False
        )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error[InvalidInput]: stdin: Bad file descriptor (nothing was written)\n"


def test_a_place_that_is_no_warehouse(lithify, tmp_path):
    (tmp_path / "file").write_text("x")
    for place in (tmp_path, tmp_path / "file"):
        said = lithify.error("topic", "list", "--warehouse", place, code=1)
        assert said.startswith(f"{place} is not a warehouse")
    (tmp_path / "link").symlink_to(tmp_path / "none")
    said = lithify.error("topic", "create", "x", "--warehouse", tmp_path / "link", code=1)
    assert said.startswith(f"{tmp_path}/link is a link to {tmp_path}/none, which does not exist")
    assert "give it with --catalog NAME" in lithify.error("topic", "list", "--warehouse", "s3://bucket/lake", code=1)


def test_a_damaged_catalog(orders):
    (orders.warehouse / "catalog.db").write_bytes(b"no catalog at all" * 100)
    said = orders.error("status", code=1)
    assert "its catalog.db is not a catalog" in said


def test_a_read_only_warehouse_can_be_read_and_says_so_when_written_to(orders, one_process):
    before = orders("consume", "orders").out
    places = [orders.warehouse, *orders.warehouse.rglob("*")]
    modes = [place.stat().st_mode for place in places]
    for place, mode in zip(places, modes, strict=True):
        place.chmod(mode & 0o555)
    try:
        read, *written, looked = one_process(
            ("consume", "orders"),
            ("produce", "orders"),
            ("topic", "create", "more"),
            ("topic", "delete", "orders", "--yes"),
            ("doctor", "--json"),
            stdin=A_LINE,
            preexec_fn=_bound_by_permissions,
        )
        assert read.stdout == before
        for refused in written:
            assert (refused.returncode, refused.stdout) == (1, ""), refused
            (said,) = refused.stderr.splitlines()
            assert "make it writable for this user, or use another warehouse; nothing was changed" in said
        assert looked.returncode == 3
        checks = {check["name"]: check for check in json.loads(looked.stdout)["checks"]}
        assert "cannot be written: Permission denied" in checks["warehouse"]["detail"]
    finally:
        for place, mode in zip(places, modes, strict=True):
            place.chmod(mode)
    assert orders("consume", "orders").out == before


def _bound_by_permissions() -> None:
    """Without root's right to write what is read-only, if it is root who tests."""
    drop_from_bounding_set, cap_dac_override = 24, 1
    ctypes.CDLL(None).prctl(drop_from_bounding_set, cap_dac_override, 0, 0, 0)


def test_a_full_warehouse_loses_nothing(orders):
    """A limit on the size of files stands for a full disk: the write fails half-way."""
    before = orders("consume", "orders").out

    def small_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    noise = "".join(json.dumps({"key": os.urandom(16).hex(), "value": os.urandom(64).hex()}) + "\n" for _ in range(999))
    full = subprocess.run(
        [*PROGRAM, "produce", "orders", "--json"],
        input=noise,
        capture_output=True,
        text=True,
        preexec_fn=small_files,
        check=False,
    )
    assert full.returncode == 1, full
    assert len(full.stderr.splitlines()) == 1
    assert "nothing was lost; nothing was written" in full.stderr
    assert json.loads(full.stdout)["records"] == 0
    assert orders("consume", "orders").out == before
    orders("produce", "orders", stdin=noise)
    assert len(orders("consume", "orders").lines) == 3 + 999


def test_a_catalog_that_is_down(own_process):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and no server listens
        uri = f"http://127.0.0.1:{taken.getsockname()[1]}"
        failed = own_process("topic", "list", "--catalog", "down", PYICEBERG_CATALOG__DOWN__URI=uri)
    assert (failed.returncode, failed.stdout) == (1, "")
    (said,) = failed.stderr.splitlines()
    assert said.startswith("error[Warehouse]: catalog down cannot be reached: ")
    assert "Connection refused" in said
    assert said.endswith("(check that it runs, and check its configuration; then try again)")


def test_a_newer_format_is_neither_read_nor_written(orders):
    from pyiceberg.catalog.sql import SqlCatalog

    from lithify.store.iceberg.state.topic_codec import NEWEST_FORMAT

    catalog = SqlCatalog("lithify", uri=f"sqlite:///{orders.warehouse}/catalog.db")
    table = catalog.load_table(("default", "orders"))
    with table.transaction() as change:
        change.set_properties({"lithify.format-version": str(NEWEST_FORMAT + 1)})
    catalog.close()
    for command in (("consume", "orders"), ("produce", "orders"), ("status", "orders"), ("compact", "orders")):
        said = orders.error(*command, stdin=A_LINE, code=1)
        assert f"written in format {NEWEST_FORMAT + 1}" in said


def test_debug_shows_where(orders):
    failed = orders("topic", "info", "nope", "--debug", code=2)
    assert failed.err.startswith("Traceback (most recent call last):")
    assert failed.err.splitlines()[-1].startswith("error[UnknownTopic]: nope: no such topic")


def test_a_defect_is_one_line_as_well(orders, monkeypatch):
    import lithify.api.lake

    def broken(self: object) -> None:
        raise ZeroDivisionError("a first line\nand a second")

    monkeypatch.setattr(lithify.api.lake.Topic, "info", broken)
    assert orders.error("topic", "info", "orders", code=1) == (
        "ZeroDivisionError: a first line and a second (add `--debug` to see where)"
    )


def test_no_spark_where_none_is_needed(orders, tmp_path):
    """Neither PySpark nor a process of its own: reading, writing and looking start no JVM."""
    file = tmp_path / "more.jsonl"
    file.write_text(A_LINE)
    commands = [
        ["produce", "orders", str(file)],
        ["consume", "orders"],
        ["table", "orders"],
        ["status"],
        ["topic", "list"],
        ["topic", "info", "orders"],
        ["history", "orders"],
        ["topic", "alter", "orders", "--config", "cleanup.policy=compact,delete"],
        ["retain", "orders"],
        ["delete-records", "orders", "--before", "1", "--yes"],
        ["truncate", "orders", "--to", "2", "--yes"],
        ["versions", "orders"],
        ["sweep", "orders", "--yes"],
    ]
    program = (
        "import os, sys; from lithify.cli.main import run; "
        f"codes = [run(command) for command in {commands!r}]; "
        "children = open(f'/proc/{os.getpid()}/task/{os.getpid()}/children').read(); "
        "print(codes, 'pyspark' in sys.modules, repr(children), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[-1] == f"{[0] * len(commands)} False ''"


def test_a_reader_that_has_seen_enough_is_no_failure(orders):
    orders("produce", "orders", stdin=A_LINE * 20_000)
    with subprocess.Popen([*PROGRAM, "consume", "orders"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as consuming:
        assert consuming.stdout is not None
        assert consuming.stderr is not None
        consuming.stdout.readline()
        consuming.stdout.close()
        assert consuming.stderr.read() == b""
    assert consuming.returncode == 0


def test_following_goes_on_until_it_is_interrupted(orders):
    with subprocess.Popen(
        [*PROGRAM, "consume", "orders", "--from", "2", "--follow"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as following:
        assert following.stdout is not None
        assert following.stderr is not None
        assert json.loads(following.stdout.readline())["offset"] == 2
        orders("produce", "orders", stdin=A_LINE)
        assert json.loads(following.stdout.readline())["offset"] == 3
        time.sleep(0.3)  # while it waits for more
        following.send_signal(signal.SIGINT)
        assert following.stderr.read().strip() == ""
    assert following.returncode == 130


@pytest.mark.parametrize(
    ("verb", "unbuffered"),
    [("topic list", ""), ("topic list", "1"), ("topic list --json", ""), ("--help", "1"), ("", ""), ("topic", "")],
)
def test_a_full_stdout_is_reported_as_what_it_is(lithify, verb, unbuffered):
    """What was done is done: no error of the warehouse, and none without a name."""
    lithify("topic", "create", "t")
    env = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([*PROGRAM, *verb.split()], stdout=full, stderr=subprocess.PIPE, env=env, check=False)
    said = done.stderr.decode()
    assert done.returncode == 1, said
    if "--json" in verb:
        said = "error[{code}]: {message} ({hint})".format(**json.loads(said))
    assert said.startswith(
        "error[UnusableEnvironment]: stdout: the output cannot be written: No space left on device"
    ), said
    assert "free space or print elsewhere" in said
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize("command", [("consume", "orders"), ("consume", "orders", "--group", "g")])
def test_output_that_cannot_be_written_is_said_and_not_committed(orders, own_process, command):
    environment = {**os.environ, "LITHIFY_WAREHOUSE": str(orders.warehouse)}
    with Path("/dev/full").open("w") as full:
        failed = subprocess.run(
            [*PROGRAM, *command], stdout=full, stderr=subprocess.PIPE, text=True, env=environment, check=False
        )
    assert failed.returncode == 1
    (said,) = failed.stderr.splitlines()
    assert said.startswith("error[UnusableEnvironment]: stdout: the output cannot be written: No space left")
    assert "free space or print elsewhere; changes that the command has made remain" in said
    if "--group" in command:
        assert orders("group", "list", "--json").lines == []


def test_a_signal_while_it_is_loaded_ends_it_without_a_traceback():
    """The moment is that of an import: the first one below the command line sends the signal."""
    interrupted = subprocess.run(
        [
            sys.executable,
            "-c",
            "import os, signal, sys\n"
            "class Finder:\n"
            "    def find_spec(self, name, path=None, target=None):\n"
            "        if name == 'lithify.cli.main':\n"
            "            try: os.kill(os.getpid(), signal.SIGINT)\n"
            "            except KeyboardInterrupt: print('lost')\n"
            "sys.meta_path.insert(0, Finder())\n"
            "from lithify.cli.program import main\n"
            "sys.argv = ['lithify', '--version']\n"
            "main()",
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (interrupted.returncode, interrupted.stdout, interrupted.stderr) == (-signal.SIGINT, "", "")


def test_a_shell_that_has_it_ignore_interrupts_is_obeyed():
    ignoring = subprocess.run(
        [*PROGRAM, "--version"],
        capture_output=True,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
        check=False,
    )
    assert (ignoring.returncode, ignoring.stderr) == (0, "")


@pytest.mark.parametrize(
    "command",
    [
        ("replica", "add", "orders", "--to", "./b", "--throttle", "99999999999999TB/s"),
        ("replica", "run", "--once", "--interval", "99999999999999d"),
        ("consume", "orders", "--group", "g", "--lease", "36501d"),
        ("cleaner", "run", "--once", "--lease", "999ms"),
        ("replica", "run", "--once", "--lease", "1ms"),
        ("produce", "orders", "--linger", "99999999999999d"),
        ("throttle", "--read-rate", "9223372036854775808"),
    ],
    ids=" ".join,
)
def test_no_duration_or_rate_is_longer_than_clocks_and_databases_take(orders, command):
    assert re.search("at most a hundred years|more than 64 bits|at least 1.0 s", orders.error(*command))
