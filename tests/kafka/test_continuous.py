"""`publish` and `hydrate` that go on: what comes is taken up, an outage is told and waited out, a signal ends them."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lithify.errors import BrokerError, LogTruncatedError
from lithify.kafka import KafkaNote, PublishReport, hydrate, publish
from lithify.kafka.consumer.live_tail import record_of
from lithify.kafka_client.client import Cluster
from lithify.kafka_client.first_look import look_at
from lithify.model.record import Record
from support.kafka.broker import KafkaBroker, read_all
from support.kafka.lake import KafkaLake, kafka_lake
from support.kafka.secured import SecuredBroker
from support.kafka.tables import expected_table, stored_table
from support.processes.programs import PROGRAM
from support.servers.tcp_proxy import TcpProxy, wait_until

NOW = 1_700_000_000_000
STOP_S = 20.0
"""A program whose broker is silent ends after its `--timeout` of 3 s; on a busy machine that takes a while longer."""
STARTED_S = 120.0


@pytest.fixture
def proxy(behind: tuple[KafkaBroker, TcpProxy]) -> Iterator[TcpProxy]:
    _, proxy = behind
    yield proxy
    proxy.mend()
    proxy.drop()


def a_target(broker: KafkaBroker) -> str:
    """One that Kafka's cleaner leaves alone."""
    return broker.make_topic(2, cleanup_policy="compact", min_cleanable_dirty_ratio="1.0")


def some(first: int, count: int) -> list[Record]:
    return [Record(b"k%d" % (n % 50), b"v%d" % n, NOW + n, partition=n % 2) for n in range(first, first + count)]


def assert_published(both: KafkaLake, to: str, appended: list[Record]) -> None:
    """All that was appended, in order: no round has come by."""
    for partition in both.partitions:
        expected = [(r.key, r.value) for r in appended if r.partition == partition]
        assert [(m.key(), m.value()) for m in read_all(both.broker, to, partition)] == expected


def test_what_is_appended_is_published(broker: KafkaBroker, tmp_path: Path) -> None:
    both, to = kafka_lake(broker, tmp_path, 2), a_target(broker)
    both.topic.append(some(0, 100))
    ended, notes, reports = threading.Event(), list[KafkaNote](), list[PublishReport]()
    how = {"continuous": True, "interval_ms": 100, "stops": ended.is_set, "notes": notes.append}
    follower = threading.Thread(target=lambda: reports.append(publish(both.topic, both.conf, to, **how)))  # type: ignore[arg-type]
    follower.start()
    try:
        wait_until(lambda: "waiting" in [note.event for note in notes], "it does not catch up", 60)
        for batch in range(3):
            both.topic.append(some(100 + 10 * batch, 10))
            wait_until(lambda: len(in_target(broker, to)) == 110 + 10 * batch, "it does not follow", 60)  # noqa: B023
        both.compact()  # nothing more to publish
        both.topic.append(some(130, 10))
        wait_until(lambda: len(in_target(broker, to)) == 140, "it does not follow a round", 60)
    finally:
        ended.set()
        follower.join()
    assert_published(both, to, some(0, 140))
    (report,) = reports
    assert (report.created, report.resumed, report.records) == (False, False, 140)
    assert [(log.start_offset, log.end_offset) for log in report.logs] == [(0, 70), (0, 70)]
    assert [note.event for note in notes][:4] == ["asking", "begins", "published", "waiting"]
    assert notes[1].text == f"{both.topic.name} → {to}: begins, lag 100 offsets"
    again = publish(both.topic, both.conf, to)
    assert (again.resumed, again.records) == (True, 0)


def in_target(broker: KafkaBroker, to: str) -> list[Record]:
    return [record_of(found) for partition in (0, 1) for found in read_all(broker, to, partition)]


def test_deletes_that_are_missed_end_it(broker: KafkaBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """C49: also where it runs all the time, but was held up for too long."""
    both = kafka_lake(broker, tmp_path, delete_retention_ms=0)
    both.topic.append([Record(b"a", b"1", NOW)])
    to = f"{both.name}.out"

    def held_up(note: KafkaNote) -> None:
        if note.event == "waiting":
            both.topic.append([Record(b"a", None, NOW), Record(b"b", b"1", NOW)])
            both.compact()

    with pytest.raises(LogTruncatedError, match="removed deletes"):
        publish(both.topic, both.conf, to, continuous=True, interval_ms=10, notes=held_up)


class Program:
    """A verb that runs, and what it says."""

    def __init__(self, folder: Path, name: str, *arguments: str) -> None:
        self.out, self.err = folder / f"{name}.out", folder / f"{name}.err"
        command = [*PROGRAM, "--warehouse", str(folder / "lake"), "kafka", name, *arguments, "--continuous", "--json"]
        with self.out.open("wb") as out, self.err.open("wb") as err:
            self.process = subprocess.Popen(command, stdout=out, stderr=err, start_new_session=True)

    def said(self) -> list[str]:
        assert self.process.poll() is None, self.err.read_text()
        return [json.loads(line)["event"] for line in self.err.read_text().splitlines() if line.startswith("{")]

    def has_said(self, event: str, times: int = 1) -> Callable[[], bool]:
        return lambda: self.said().count(event) >= times

    def stop(self, number: signal.Signals) -> int:
        begun = time.monotonic()
        self.process.send_signal(number)
        code = self.process.wait(30)
        assert time.monotonic() - begun < STOP_S
        return code


def test_an_outage_is_told_and_waited_out_and_a_signal_in_one_ends_them(
    behind: tuple[KafkaBroker, TcpProxy], tmp_path: Path, proxy: TcpProxy
) -> None:
    """Both at once, as each takes seconds to be sure that the broker is away."""
    both = kafka_lake(behind[0], tmp_path, 2)
    to, table = a_target(both.broker), tmp_path / "t.db"
    servers = ("--bootstrap-servers", proxy.address, "--timeout", "3s")

    def grow(first: int) -> None:
        both.produce(some(first, 100))
        both.take_in()

    grow(0)
    publishing = Program(tmp_path, "publish", both.name, *servers, "--to", to, "--interval", "100ms")
    hydrating = Program(tmp_path, "hydrate", both.name, *servers, "--to", str(table))
    programs = (publishing, hydrating)
    for program in programs:
        wait_until(program.has_said("waiting"), "it does not catch up", STARTED_S)
    proxy.silent = True
    grow(100)
    for program in programs:
        wait_until(program.has_said("outage"), "no outage is told", 60)
    proxy.mend()
    proxy.drop()
    for program in programs:
        wait_until(program.has_said("recovered"), "its end is not told", 60)
    wait_until(lambda: len(in_target(both.broker, to)) == 200, "it does not publish after the outage", 60)
    expected = expected_table(both.all_in_kafka())
    wait_until(lambda: stored_table(table, both.name) == expected, "it does not go on after the outage", 60)

    proxy.silent = True
    grow(200)
    time.sleep(2)  # for both to be in the middle of it
    assert [
        program.stop(number) for program, number in zip(programs, (signal.SIGTERM, signal.SIGINT), strict=True)
    ] == [
        0,
        0,
    ], hydrating.err.read_text() + publishing.err.read_text()
    assert json.loads(publishing.out.read_text())["records"] == 200
    proxy.mend()
    proxy.drop()
    publish(both.topic, both.conf, to)
    assert_published(both, to, some(0, 300))
    hydrate(both.topic, both.conf, str(table))
    assert stored_table(table, both.name) == expected_table(both.all_in_kafka())


def test_what_is_wrong_is_said_first(secured: SecuredBroker, tmp_path: Path) -> None:
    """In seconds, whatever the timeout: a password, and each right that is missing. No others are needed."""
    both = kafka_lake(secured.broker, tmp_path, 1)
    both.produce(some(0, 2)[::2])
    both.take_in()
    to, table = secured.broker.make_topic(1, cleanup_policy="compact"), str(tmp_path / "t.db")
    begun = time.monotonic()
    for conf, wrong in (
        (secured.of_user("alice", "wrong"), "refuses this client its login"),
        (secured.of_user("alice"), "refuses this client access to topic"),
    ):
        with pytest.raises(BrokerError, match=wrong):
            publish(both.topic, conf, to)
        with pytest.raises(BrokerError, match=wrong):
            hydrate(both.topic, conf, table)
    owner = f"lithify.{both.topic.state().identity}.{to}"
    for right in ("DESCRIBE", "READ", "DESCRIBE_CONFIGS"):
        secured.allow("bob", right, "TOPIC", to)
    steps = {
        f"refuses this client access to topic {to}.*give bob the right": ("TOPIC", to, ("WRITE",)),
        f"Transactional Id authorization failed.*{owner}": ("TRANSACTIONAL_ID", owner, ("DESCRIBE", "WRITE")),
        f"Group authorization failed.*{owner}": ("GROUP", owner, ("READ",)),
        "^$": ("TOPIC", both.name, ("DESCRIBE", "READ")),
    }
    for refused, (kind, name, missing) in steps.items():  # a right takes a moment to get around
        wait_until(lambda: re.search(refused, refusal(both, secured, to)) is not None, f"not told: {refused}", 60)  # noqa: B023
        for right in missing:
            secured.allow("bob", right, kind, name)
    both.produce(some(2, 2)[::2])
    wait_until(lambda: cluster_lets(secured, both, "bob"), "all rights do not suffice", 60)
    hydrate(both.topic, secured.of_user("bob"), table)
    assert set(stored_table(Path(table), both.name)) == {(0, b"k0"), (0, b"k2")}
    assert time.monotonic() - begun < 120


def cluster_lets(secured: SecuredBroker, both: KafkaLake, user: str) -> bool:
    """Whether the rights of a user on the topic have got around."""
    try:
        look_at(Cluster(secured.of_user(user), 5), both.name)
    except BrokerError:
        return False
    return True


def refusal(both: KafkaLake, secured: SecuredBroker, to: str) -> str:
    """How it ends for bob, well before the timeout of half a minute."""
    begun = time.monotonic()
    try:
        publish(both.topic, secured.of_user("bob"), to)
    except BrokerError as error:
        assert time.monotonic() - begun < STOP_S
        return str(error)
    return ""
