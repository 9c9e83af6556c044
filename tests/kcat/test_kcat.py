"""kcat prints of a lake what it prints of a broker with the same records, and shares a group."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

import lithify
from support.kafka.broker import KafkaBroker, a_broker
from support.kafka.lake import send
from support.kafka.listening import listening
from support.kafka.readers import SINCE_MS, WAIT_S, some_records
from support.kafka.served import ServedLake, serving_groups
from support.servers.certificates import a_certificate

NAME = "shop.orders"
Prints = Callable[..., str]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedLake]:
    lake = lithify.open(str(tmp_path_factory.mktemp("kcat") / "lake"))
    lake.create_topic("shop/orders", 2, config={"cleanup.policy": "delete"}).append(some_records())
    with serving_groups(lake) as one:
        yield one


@pytest.fixture(scope="module")
def broker() -> Iterator[KafkaBroker]:
    with a_broker() as one:
        topic, producer = one.make_topic(2, NAME, retention_ms="-1"), one.producer(enable_idempotence=True)
        send(producer, topic, some_records())
        assert producer.flush(WAIT_S) == 0
        yield one


@pytest.fixture(scope="module")
def kcat() -> Prints:
    """Debian's."""
    program = shutil.which("kcat")
    assert program, "the section `kcat` needs kcat: apt-get install kcat"

    def prints(address: str, *arguments: str, fails: bool = False) -> str:
        ended = subprocess.run(
            [program, "-b", address, *arguments], input=b"", capture_output=True, timeout=WAIT_S, check=False
        )
        assert (ended.returncode != 0) == fails, ended.stderr
        return (ended.stderr if fails else ended.stdout).decode()

    return prints


FORMAT = r"%t %p %o %T %K %k %S %s %h\n"


@pytest.mark.parametrize("start", ["beginning", "40", "-7", f"s@{SINCE_MS}"])
def test_kcat_prints_what_it_prints_of_a_broker(start, served, broker, kcat):
    shown = ("-C", "-t", NAME, "-o", start, "-e", "-q", "-f", FORMAT, "-X", "check.crcs=true")
    lake, kafka = (sorted(kcat(address, *shown).splitlines()) for address in (served.bootstrap, broker.address))
    assert lake == kafka
    assert len(lake) == {"beginning": 200, "40": 120, "-7": 14}.get(start, len(kafka)) > 0


def test_kcat_finds_offsets_and_partitions(served, broker, kcat):
    times = [option for partition in (0, 1) for option in ("-t", f"{NAME}:{partition}:{SINCE_MS}")]
    assert kcat(served.bootstrap, "-Q", *times) == kcat(broker.address, "-Q", *times)
    assert f'topic "{NAME}" with 2 partitions:' in kcat(served.bootstrap, "-L")


def test_kcat_reads_as_a_group_and_commits_the_lake_s_positions(served, kcat):
    read = ("-q", "-c", "200", "-f", r"%p %o\n", "-X", "auto.offset.reset=earliest", "-G", "kcat", NAME)
    assert len(kcat(served.bootstrap, *read).splitlines()) == 200
    assert [one.position for one in served.lake.group("kcat").describe()] == [100, 100]


def test_kcat_is_told_that_nothing_is_taken(served, kcat, tmp_path: Path):
    (tmp_path / "value").write_bytes(b"x")
    told = kcat(served.bootstrap, "-P", "-t", NAME, str(tmp_path / "value"), fails=True)
    assert "Topic authorization failed" in told


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_kcat_logs_in_over_tls(mechanism, kcat, tmp_path: Path):
    """Its librdkafka finds SASL by a version that no client uses, and repeats its nonce of SCRAM."""
    lake = lithify.open(str(tmp_path / "lake"))
    lake.create_topic("shop/orders", 1).append([lithify.Record(b"k", b"v")])
    token = lake.tokens().create("alice", ["consume:shop"])
    files = a_certificate(tmp_path, "gateway", datetime.now(UTC))
    login = {"security.protocol": "SASL_SSL", "ssl.ca.location": files.certificate, "sasl.mechanism": mechanism}
    login |= {"sasl.username": token.id, "sasl.password": token.token}
    options = [part for name, value in login.items() for part in ("-X", f"{name}={value}")]
    with listening(lake, [], files, needs_token=True) as gateway:
        read = ("-C", "-t", NAME, "-o", "beginning", "-e", "-q", "-f", r"%o %k %s\n")
        assert kcat(gateway.address, *options, *read) == "0 k v\n"
