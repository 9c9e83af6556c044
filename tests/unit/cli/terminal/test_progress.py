"""Bars on a terminal and what is said instead of them in pipes."""

from __future__ import annotations

import io
import re
import sys

import pytest

from lithify.cli.ingests import telling
from lithify.cli.invocation import Invocation
from lithify.cli.terminal import progress
from lithify.cli.terminal.output import say, show
from lithify.ports.engine import COMMIT, OVER, START_SPARK, WAITS
from lithify.reports.ingest import IngestBatch, IngestedLog, IngestNote


class Terminal(io.StringIO):
    """A terminal in place of stderr, within `with`, as pytest puts its own there before a test begins."""

    def __enter__(self) -> Terminal:
        self._before, sys.stderr = sys.stderr, self
        return self

    def __exit__(self, *_error: object) -> None:
        sys.stderr = self._before

    def isatty(self) -> bool:
        return True

    @property
    def text(self) -> str:
        """What it shows, without escapes."""
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.getvalue())


@pytest.fixture
def terminal(monkeypatch) -> Terminal:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("TERM", "xterm")
    return Terminal()


@pytest.fixture
def seconds(monkeypatch) -> list[float]:
    """The clock: its only element."""
    now = [100.0]
    monkeypatch.setattr(progress, "monotonic", lambda: now[0])
    return now


def test_a_phase_in_bytes_has_a_share_and_a_rate(terminal, seconds):
    with terminal, progress.phase_progress(Invocation().note) as advance:
        advance("rewrite", 0, 100 * 2**20)
        seconds[0] += 4
        advance("rewrite", 46 * 2**20, 100 * 2**20)
    assert re.search(r"rewrite +━.*46% +46\.0 MiB of 100 MiB +11\.5 MiB/s", terminal.text)


def test_until_something_is_done_there_is_no_rate(terminal, seconds):
    with terminal, progress.phase_progress(Invocation().note) as advance:
        advance("key_pass", 0, 2**20)
    assert "1.00 MiB" in terminal.text
    assert "%" not in terminal.text and "/s" not in terminal.text


def test_steps_are_counted(terminal, seconds):
    with terminal, progress.phase_progress(Invocation().note) as advance:
        advance(COMMIT, 1, 4)
    assert re.search(r"commit +━.* 25% +1 of 4", terminal.text)


@pytest.mark.parametrize("as_json", [False, True])
def test_in_a_pipe_only_the_start_of_spark_is_said(capsys, seconds, as_json):
    with progress.phase_progress(Invocation(json=as_json).note) as advance:
        seconds[0] += 60  # before Spark is needed
        advance(START_SPARK, 0, 1)
        seconds[0] += 5.2
        advance(START_SPARK, 1, 1)
        advance("rewrite", 1, 2)
    lines = [
        "starting Spark: its JVM takes some seconds",
        "Spark started in 5.2 s; its Python workers start with the first job",
    ]
    if as_json:
        lines = [
            f'{{"event": "starting_spark", "text": "{lines[0]}"}}',
            f'{{"event": "spark_started", "text": "{lines[1]}"}}',
        ]
    assert capsys.readouterr().err.splitlines() == lines


@pytest.mark.parametrize("as_json", [False, True])
def test_a_wait_for_executors_is_said_during_a_round_and_not_after_it(capsys, as_json):
    with progress.phase_progress(Invocation(json=as_json).note):
        WAITS.warning("waiting for executors: %s", "spark://h:7077")
        WAITS.info("executors have registered", extra=OVER)
    WAITS.info("nobody is told of this")
    said = [("waiting", "waiting for executors: spark://h:7077"), ("waited", "executors have registered")]
    expected = [f'{{"event": "{event}", "text": "{text}"}}' if as_json else text for event, text in said]
    shown = capsys.readouterr()
    assert (shown.err.splitlines(), shown.out) == (expected, "")
    assert not WAITS.handlers and WAITS.propagate


def test_on_a_terminal_a_bar_says_that_spark_starts_and_a_line_how_long_it_took(terminal, seconds):
    with terminal, progress.phase_progress(Invocation().note) as advance:
        advance(START_SPARK, 0, 1)
        seconds[0] += 5.2
        advance(START_SPARK, 1, 1)
    assert "starting Spark ━" in terminal.text
    assert "starting Spark:" not in terminal.text
    assert "Spark started in 5.2 s; its Python workers" in terminal.text


def test_results_stay_on_stdout_while_there_are_bars(terminal, seconds, capfd):
    with terminal, progress.record_progress("appending") as advance:
        advance(1)
        show(["a result"])
        say("a remark")
    assert capfd.readouterr().out == "a result\n"
    assert "a remark\n" in terminal.text and "a result" not in terminal.text


def begins(lag: int, topic: str = "orders") -> IngestNote:
    return IngestNote("begins", f"{topic}: begins", topic, topic, (IngestedLog(0, 0, lag, 0),))


def batch(end: int, source_end: int, records: int) -> IngestBatch:
    return IngestBatch("orders", "orders", 1, (IngestedLog(0, end, source_end, records),), 10)


def test_an_ingest_shows_how_much_of_what_there_was_is_copied(terminal, seconds):
    """The records of a compacted topic are fewer than its offsets."""
    with terminal, telling(Invocation(), continuous=False) as says:
        says.note(begins(1_000))
        seconds[0] += 2
        says.batch(batch(500, 1_000, 300))
    assert re.search(r"copying +━.* 50% +300 records +150 records/s", terminal.text)


def test_one_that_has_no_end_shows_no_share(terminal, seconds):
    with terminal, telling(Invocation(), continuous=True) as says:
        says.note(begins(1_000))
        seconds[0] += 1
        says.batch(batch(500, 1_000, 1))
    assert "1 record  1 records/s" in terminal.text
    assert "%" not in terminal.text
