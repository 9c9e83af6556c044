"""A table that is hydrated from the lake and Kafka: that of a consumer of all of Kafka, whatever happens on the way."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path
from random import Random

import pytest

from lithify.columnar.text.encodings import Encodings
from lithify.columnar.text.lines import format_json
from lithify.errors import ConflictError, LithifyError, LogTruncatedError, RefusedError, SourceWentBackError
from lithify.kafka import HydrateReport, KafkaNote, hydrate
from lithify.model.record import Record
from support.kafka.broker import KafkaBroker
from support.kafka.lake import KafkaLake, kafka_lake
from support.kafka.tables import expected_table, stored_offsets, stored_table, written_table
from support.processes.in_process import Program
from support.processes.programs import PROGRAM
from support.servers.tcp_proxy import free_port, wait_until

NOW = 1_700_000_000_000
STOP_S = 10.0
KINDS = ("db", "duckdb")
LINES = partial(format_json, encodings=Encodings.of("utf-8"), topic="t")


def some_records(count: int, keys: int, seed: int = 1, partitions: int = 2, *, text: bool = False) -> list[Record]:
    luck = Random(seed)
    found = []
    for number in range(count):
        key = luck.randrange(keys)
        value = None if luck.random() < 0.2 else f"v{number}".encode() * luck.randrange(4)
        odd = b"" if text else b"\xff\x00"
        headers = tuple((f"h{n}", luck.choice([None, b"", odd])) for n in range(luck.randrange(3)))
        found.append(Record(b"k%d" % key + odd, value, NOW + number, headers, key % partitions))
    return found


@pytest.fixture
def both(broker: KafkaBroker, tmp_path: Path) -> KafkaLake:
    """A topic whose records are compacted in the lake, in its tail, and only in Kafka."""
    return a_topic(broker, tmp_path)


def a_topic(broker: KafkaBroker, folder: Path, *, text: bool = False, **config: object) -> KafkaLake:
    made = kafka_lake(broker, folder, 2, **config)
    made.produce(some_records(600, 80, text=text))
    made.take_in()
    made.compact()
    made.produce(some_records(100, 80, seed=2, text=text))
    made.take_in()
    made.produce(some_records(100, 80, seed=3, text=text), transactional_id=f"t{made.name}")
    return made


def filled(both: KafkaLake, to: Path, **how: object) -> HydrateReport:
    return hydrate(both.topic, both.conf, str(to), **how)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", KINDS)
def test_the_table_is_that_of_a_consumer_of_all_of_kafka(both: KafkaLake, tmp_path: Path, kind: str) -> None:
    to, told, notes = tmp_path / f"t.{kind}", list[int](), list[KafkaNote]()
    report = filled(both, to, tell=told.append, notes=notes.append)
    expected = expected_table(both.all_in_kafka())
    assert stored_table(to, both.name) == expected
    assert len(expected) > 50
    assert (report.resumed, report.caught_up, report.source) == (False, True, both.name)
    assert report.records == sum(told) < 800, "some were compacted away"
    assert [log.lag for log in report.logs] == [0, 0]
    assert [note.event for note in notes] == ["asking", "begins"]
    assert f"{both.name} → {to}: begins, lag 8" in notes[1].text

    again = filled(both, to)
    assert (again.resumed, again.records) == (True, 0)
    both.produce(some_records(50, 80, seed=4))
    assert filled(both, to).records == 50
    assert stored_table(to, both.name) == expected_table(both.all_in_kafka())


def test_a_file_of_lines_is_replaced_as_a_whole(broker: KafkaBroker, tmp_path: Path) -> None:
    both, to = a_topic(broker, tmp_path, text=True), tmp_path / "table.jsonl"
    to.write_text("{}\n")
    seen: list[str] = []
    report = filled(both, to, lines=LINES, tell=lambda _records: seen.append(to.read_text()))
    assert set(seen) == {"{}\n"}
    assert written_table(to) == expected_table(both.all_in_kafka())
    assert report.caught_up

    whole = to.read_bytes()
    both.produce([Record(b"\xff", b"no text", NOW, partition=0)])
    with pytest.raises(LithifyError, match="is not UTF-8 text"):
        filled(both, to, lines=LINES)
    assert not filled(both, to, lines=LINES, stops=lambda: True).caught_up
    assert to.read_bytes() == whole
    assert [path.name for path in tmp_path.iterdir() if "table.jsonl" in path.name] == ["table.jsonl"]


IN_SMALL_CHANGES = """
import sys, lithify
from lithify.kafka import hydrate
from lithify.hydration import filling
filling.CHANGE_RECORDS = 1
lake, name, servers, to = sys.argv[1:]
hydrate(lithify.open(lake).topic(name), {"bootstrap.servers": servers}, to, tell=lambda n: print(n, flush=True))
"""


@pytest.mark.parametrize("kind", KINDS)
def test_it_goes_on_after_it_was_killed(broker: KafkaBroker, tmp_path: Path, kind: str) -> None:
    """SIGKILL after some changes, anywhere in the next one: rows and position are always of the same moment."""
    both, to = kafka_lake(broker, tmp_path, 4), tmp_path / f"t.{kind}"
    both.produce(some_records(8_000, 2_000, partitions=4))
    both.take_in()
    everything = list(both.all_in_kafka())
    luck, ends = Random(5), []
    for _ in range({"db": 2, "duckdb": 1}[kind]):
        command = [sys.executable, "-c", IN_SMALL_CHANGES, str(tmp_path / "lake"), both.name, broker.address, str(to)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for _ in range(luck.choice((1, 1, 2))):
                assert process.stdout.readline(), "it ended before it was killed"
            os.kill(process.pid, signal.SIGKILL)
        at = stored_offsets(to, both.name)
        ends.append(sum(at.values()))
        below = [r for r in everything if (r.offset or 0) < at.get(r.partition or 0, 0)]
        assert stored_table(to, both.name) == expected_table(below)
        both.produce(some_records(500, 2_000, seed=10 + len(ends), partitions=4))
        everything = list(both.all_in_kafka())
    assert ends == sorted({0, *ends})[1:], "each got further than the one before"
    assert ends[-1] < 8_000, "and was killed on its way"
    both.take_in()
    both.compact()
    assert filled(both, to).resumed
    assert stored_table(to, both.name) == expected_table(both.all_in_kafka())


@pytest.mark.parametrize("kind", KINDS)
def test_a_late_record_loses_to_what_earlier_runs_have_read(broker: KafkaBroker, tmp_path: Path, kind: str) -> None:
    """C10, C11: to a newer value, and to a newer delete, of which the table has no row."""
    both, to = kafka_lake(broker, tmp_path, compaction_strategy="timestamp"), tmp_path / f"t.{kind}"
    both.produce([Record(b"a", b"new", NOW + 9), Record(b"b", b"1", NOW), Record(b"b", None, NOW + 9)])
    both.take_in()
    filled(both, to)
    both.produce([Record(key, b"old", NOW + 5) for key in (b"a", b"b", b"c")])
    filled(both, to)
    assert {key: row[0] for (_, key), row in stored_table(to, both.name).items()} == {b"a": b"new", b"c": b"old"}
    both.produce([Record(b"b", b"newest", NOW + 10)])
    filled(both, to)
    assert stored_table(to, both.name)[0, b"b"][0] == b"newest"


def test_a_table_that_missed_deletes_is_not_continued(broker: KafkaBroker, tmp_path: Path) -> None:
    """What they deleted would stay in it for ever (C49)."""
    both, to = kafka_lake(broker, tmp_path, delete_retention_ms=0), tmp_path / "t.db"
    both.produce([Record(b"a", b"1", NOW), Record(b"b", b"1", NOW)])
    filled(both, to)
    before = stored_table(to, both.name)
    both.produce([Record(b"a", None, NOW), Record(b"c", b"1", NOW)])
    both.take_in()
    both.compact()
    with pytest.raises(LogTruncatedError, match="removed deletes") as missed:
        filled(both, to)
    assert missed.value.hint == f"drop the table {both.name} in {to} and hydrate the topic again"
    assert stored_table(to, both.name) == before
    to.unlink()
    filled(both, to)
    assert stored_table(to, both.name) == expected_table(both.all_in_kafka())


def test_a_table_of_a_topic_that_was_recreated_is_not_continued(both: KafkaLake, tmp_path: Path) -> None:
    to = tmp_path / "t.db"
    filled(both, to)
    before = stored_table(to, both.name)
    both.broker.delete_topic(both.name)
    both.broker.make_topic(2, name=both.name)
    with pytest.raises(SourceWentBackError, match="was deleted and recreated"):
        filled(both, to)
    assert stored_table(to, both.name) == before


def test_of_two_at_once_one_says_so(both: KafkaLake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lithify.hydration.filling.CHANGE_RECORDS", 1)
    to, others = tmp_path / "t.db", list[HydrateReport]()

    def meanwhile(_records: int) -> None:
        if not others:
            others.append(filled(both, to))

    with pytest.raises(ConflictError, match="another run is filling the table"):
        filled(both, to, tell=meanwhile)
    assert stored_table(to, both.name) == expected_table(both.all_in_kafka())


def test_what_cannot_be_done_is_refused_before_anything_else(both: KafkaLake, tmp_path: Path) -> None:
    nowhere = {"bootstrap.servers": f"127.0.0.1:{free_port()}"}
    with pytest.raises(RefusedError, match="cannot be kept up to date"):
        hydrate(both.topic, nowhere, str(tmp_path / "t.jsonl"), lines=LINES, continuous=True)
    with pytest.raises(RefusedError, match=r"the folder .* does not exist"):
        hydrate(both.topic, nowhere, str(tmp_path / "no" / "t.db"))
    assert [path.name for path in tmp_path.iterdir()] == ["lake"]


def test_a_file_of_duckdb_can_be_read_while_it_is_kept_up_to_date(both: KafkaLake, tmp_path: Path) -> None:
    """By other programs, whenever there is nothing to store; one that keeps it open is waited for."""
    to, ended, notes = tmp_path / "t.duckdb", threading.Event(), list[KafkaNote]()
    reports: list[HydrateReport] = []
    how = {"continuous": True, "stops": ended.is_set, "notes": notes.append}
    follower = threading.Thread(target=lambda: reports.append(filled(both, to, **how)))
    follower.start()
    try:
        wait_until(lambda: "waiting" in [note.event for note in notes], "it does not catch up", 60)
        holder = [
            sys.executable,
            "-c",
            "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print(flush=True); sys.stdin.read()",
        ]
        with subprocess.Popen([*holder, str(to)], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None and process.stdout.readline() == b"\n"
            both.produce(some_records(200, 80, seed=5), transactional_id=f"c{both.name}")
            wait_until(lambda: notes[-1].event == "busy", "it does not wait for its turn", 60)
            assert "another program has" in notes[-1].text
        expected = expected_table(both.all_in_kafka())
        wait_until(lambda: reports != [] or read_in_a_process(to, both.name) == len(expected), "it does not go on", 60)
    finally:
        ended.set()
        follower.join()
    assert stored_table(to, both.name) == expected
    assert reports[0].caught_up


def read_in_a_process(path: Path, name: str) -> int:
    """How many rows another program sees; -1 while it cannot open the file."""
    query = "import duckdb, sys; c = duckdb.connect(sys.argv[1], read_only=True); "
    query += "print(c.execute(f'SELECT count(*) FROM {sys.argv[2]}').fetchone()[0])"
    done = subprocess.run([sys.executable, "-c", query, str(path), name], capture_output=True, text=True, check=False)
    return int(done.stdout) if done.returncode == 0 else -1


def test_the_verb_keeps_a_table_up_to_date(both: KafkaLake, tmp_path: Path) -> None:
    """While others read it; SIGTERM ends it in time, with what it has read stored."""
    to, out, err = tmp_path / "t.db", tmp_path / "out", tmp_path / "err"
    process = program(both, to, out, err, "--continuous", "--json")
    wait_until(lambda: "waiting" in events(err, process), "it does not catch up", 120)
    both.produce(some_records(200, 80, seed=5), transactional_id=f"c{both.name}")
    expected = expected_table(both.all_in_kafka())
    wait_until(lambda: stored_table(to, both.name) == expected, "it does not follow", 60)
    both.produce(some_records(200, 80, seed=6))
    process.send_signal(signal.SIGTERM)
    assert process.wait(STOP_S) == 0, err.read_text()
    report = json.loads(out.read_text())
    assert report["caught_up"]
    assert sum(log["offset"] for log in report["logs"]) == sum(stored_offsets(to, both.name).values())
    filled(both, to)
    assert stored_table(to, both.name) == expected_table(both.all_in_kafka())


def program(both: KafkaLake, to: Path, out: Path, err: Path, *more: str) -> subprocess.Popen[bytes]:
    """`lithify kafka hydrate`."""
    command = [*PROGRAM, "--warehouse", str(out.parent / "lake"), "kafka", "hydrate", both.name, "--to", str(to), *more]
    command += [word for pair in both.conf.items() for word in ("--kafka-conf", "=".join(pair))]
    with out.open("wb") as stdout, err.open("wb") as stderr:
        return subprocess.Popen(command, stdout=stdout, stderr=stderr, start_new_session=True)


def events(err: Path, process: subprocess.Popen[bytes]) -> list[str]:
    assert process.poll() is None, err.read_text()
    return [json.loads(line)["event"] for line in err.read_text().splitlines() if line.startswith("{")]


def test_the_verb_says_what_it_did(both: KafkaLake, tmp_path: Path) -> None:
    command = ["--warehouse", tmp_path / "lake", "kafka", "hydrate", both.name, "--encoding", "hex"]
    command += ["--bootstrap-servers", both.broker.address, "--to", tmp_path / "t.jsonl"]
    done = Program(tmp_path / "lake")(*command)
    assert f"querying Kafka at {both.broker.address}" in done.err
    rows = [json.loads(line) for line in (tmp_path / "t.jsonl").read_text().splitlines()]
    expected = expected_table(both.all_in_kafka())
    assert {(row["partition"], bytes.fromhex(row["key"])) for row in rows} == expected.keys()
