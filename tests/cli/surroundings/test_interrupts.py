"""Ctrl-C: what the last line says is true, at whatever moment it comes (C6, C50)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

import lithify as package
from lithify.cli import main
from lithify.store.iceberg.store import IcebergStore
from lithify.testing.oracle_engine import OracleEngine

WAITS = "interrupted: waiting until the commit has ended; Ctrl-C again ends at once"
LOST = "interrupted: orders may have been changed; `lithify {} orders` shows whether it was"

pytestmark = pytest.mark.usefixtures("plain_rounds", "handled")


@pytest.fixture
def handled() -> Iterator[None]:
    """As a program handles it, whatever pytest does."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def orders(lithify):
    """A topic with something to compact, to cut and to undo, at version 3."""
    lithify("topic", "create", "orders", "--config", "cleanup.policy=compact,delete", "--config", "retention.ms=1000")
    lithify("produce", "orders", stdin='{"key":"a","value":"1","timestamp":1}\n{"key":"a","value":"2","timestamp":2}')
    return lithify


def press() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def version(program) -> int:
    return package.open(str(program.warehouse)).topic("orders").state().version


@pytest.fixture
def pressed_in_commits(monkeypatch) -> Callable[[int, int], None]:
    """Presses Ctrl-C so often before and after each swap of a version."""

    def arrange(before: int, after: int) -> None:
        commit = IcebergStore.commit

        def struck(store, base, edit):
            for _ in range(before):
                press()
            done = commit(store, base, edit)
            for _ in range(after):
                press()
            return done

        monkeypatch.setattr(IcebergStore, "commit", struck)

    return arrange


def test_before_the_commit_nothing_has_changed(orders, monkeypatch):
    monkeypatch.setattr(OracleEngine, "open_round", lambda *_: press())
    at = version(orders)
    stopped = orders("compact", "orders", code=130)
    assert stopped.err == "interrupted: the logs of orders are unchanged\n"
    assert (stopped.out, version(orders)) == ("", at)


VERBS = [
    ("compact", "orders"),
    ("retain", "orders"),
    ("delete-records", "orders", "--partition", 0, "--before", 1, "--yes"),
    ("truncate", "orders", "--partition", 0, "--to", 1, "--yes"),
    ("topic", "alter", "orders", "--config", "min.compaction.lag.ms=7"),
]


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb[0])
@pytest.mark.parametrize("moment", [(1, 0), (0, 1)], ids=["before", "after"])
def test_a_commit_ends_before_the_program_does(orders, pressed_in_commits, verb, moment):
    pressed_in_commits(*moment)
    at = version(orders)
    stopped = orders(*verb, code=130)
    first, *_, last = stopped.err.splitlines()
    assert (first, last) == (WAITS, f"interrupted: orders was changed, version {at + 1}")
    assert version(orders) == at + 1
    assert f"version {at + 1}" in stopped.out + stopped.err.rpartition("interrupted")[0]  # it printed what it did


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb[0])
@pytest.mark.parametrize(("moment", "lands"), [((2, 0), False), ((1, 1), True)], ids=["before", "after"])
def test_a_second_one_ends_it_at_once(orders, pressed_in_commits, verb, moment, lands):
    pressed_in_commits(*moment)
    at = version(orders)
    stopped = orders(*verb, code=130)
    assert stopped.err.splitlines() == [WAITS, LOST.format("history" if verb[0] == "compact" else "status")]
    assert version(orders) == at + lands


def test_a_round_that_changed_nothing_says_so(orders, monkeypatch):
    orders("compact", "orders")
    monkeypatch.setattr("lithify.cli.rounds.compact.print_page", lambda _page: press())
    assert orders("compact", "orders", code=130).err.splitlines()[-1] == "interrupted: orders is unchanged"


def test_a_round_that_begins_again_has_committed_some_logs(orders, monkeypatch):
    """Logs that others have changed meanwhile are planned again, after the commit of the rest."""
    from lithify.cli.interruption import interruptible
    from lithify.cli.invocation import Invocation
    from lithify.ports.engine import COMMIT

    invocation = Invocation()
    with pytest.raises(KeyboardInterrupt), interruptible(invocation, "orders", look="`look`") as work:
        report = work.watched(lambda *_: None)
        report(COMMIT, 0, 1)
        press()
        report("key_pass", 0, 1)
        pytest.fail("it goes on")
    assert invocation.standing == "some logs of orders may have been changed; `look` shows which"


def test_with_json_it_is_an_object(orders, pressed_in_commits):
    pressed_in_commits(1, 0)
    told = orders("retain", "orders", "--json", code=130)
    waits, last = map(json.loads, told.err.splitlines())
    assert waits == {"event": "interrupted", "text": WAITS}
    assert last == {
        "code": "Interrupted",
        "message": f"interrupted: orders was changed, version {told.json['version']}",
        "hint": None,
        "exit_code": 130,
        "topic": "orders",
    }


def test_verbs_that_only_read_say_nothing(orders, monkeypatch):
    monkeypatch.setattr("lithify.cli.topics.list.print_page", lambda _page: press())
    assert orders("topic", "list", code=130).err == ""


def test_produce_does_not_claim_that_a_batch_was_not_written(orders, pressed_in_commits):
    pressed_in_commits(1, 1)
    stopped = orders("produce", "orders", stdin='{"key":"b","value":"1"}', code=130)
    assert stopped.err.splitlines() == [
        "interrupted: waiting until this batch is appended; Ctrl-C again ends at once",
        "interrupted: orders: 0 records written, version 2; the next batch may have been written",
    ]


def test_a_program_whose_main_thread_hangs_says_it_as_well():
    """It ends by itself then, after its time."""
    code = """
import os, signal, time
from lithify.cli.invocation import Invocation
from lithify.cli.terminal import stopping
stopping.SILENT_S, stopping.ENDS_WITHIN_S = 0.1, 0.3
invocation = Invocation(standing="it is as it was")
stopping.end_in_time(invocation.say_ending, invocation.say_interrupted)
signal.signal(signal.SIGINT, lambda *_: time.sleep(60))
os.kill(os.getpid(), signal.SIGINT)
time.sleep(60)
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    said = "interrupted: ending, within 10 s\ninterrupted: it is as it was\n"
    assert (ended.returncode, ended.stderr) == (main.INTERRUPTED, said)
