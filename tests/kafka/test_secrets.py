"""What a client of Kafka has to keep to itself is on no command line, in no log and in nothing that Spark leaves."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from lithify.errors import InvalidSettingError
from lithify.kafka_client.client import Cluster
from lithify.model.source import IngestRequest
from support.kafka.broker import KafkaBroker
from support.kafka.ingest import ingest_program, wait_for_batches
from support.processes.programs import PROGRAM

PASSWORD, KEY_PASSWORD = "hunter2hunter2", "from-the-environment"
FILE = f"""
security.protocol=PLAINTEXT
sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \\
    username="bob" password="{PASSWORD}";
ssl.key.password=${{env:LITHIFY_TEST_KEY_PASSWORD}}
"""


def command_lines() -> Iterator[bytes]:
    for process in Path("/proc").glob("[0-9]*"):
        try:
            yield (process / "cmdline").read_bytes()
        except OSError:
            continue


def test_an_ingest_shows_its_secrets_nowhere(
    tmp_path: Path, broker: KafkaBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LITHIFY_TEST_KEY_PASSWORD", KEY_PASSWORD)
    topic = broker.make_topic(1)
    producer = broker.producer()
    producer.produce(topic, key=b"k", value=b"v")
    producer.flush()
    (tmp_path / "client.properties").write_text(FILE)
    (tmp_path / "events").mkdir()
    log = {"enabled": "true", "compress": "false", "dir": (tmp_path / "events").as_uri()}
    spark = {f"spark.eventLog.{name}": value for name, value in log.items()}
    more = [word for name, value in spark.items() for word in ("--spark-conf", f"{name}={value}")]
    how = ("--kafka-conf-file", str(tmp_path / "client.properties"), "--checkpoint", str(tmp_path / "notes"))
    process = ingest_program(tmp_path, broker, "--topic", topic, "--continuous", *how, *more)
    wait_for_batches(tmp_path, process, 1)
    shown = list(command_lines())
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=30) == 0
    assert any(b"spark.eventLog.enabled" in line for line in shown), "the program is among them"
    shown += [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and path.name != "client.properties"]
    assert any(b"SparkListenerJobStart" in text for text in shown), "and so is the event log"
    assert [text[:200] for text in shown for secret in (PASSWORD, KEY_PASSWORD) if secret.encode() in text] == []


def test_a_secret_after_a_flag_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    command = ["--warehouse", str(tmp_path), "kafka", "ingest", "--bootstrap-servers", "127.0.0.1:1", "--topic", "t"]
    ended = subprocess.run(
        [*PROGRAM, *command, "--kafka-conf", f"sasl.password={PASSWORD}"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 2
    assert "--kafka-conf sasl.password: all users of the machine can see a secret" in ended.stderr
    assert "--kafka-conf-file FILE" in ended.stderr
    assert PASSWORD not in ended.stdout + ended.stderr


def test_neither_reprs_nor_errors_have_one() -> None:
    conf = {"bootstrap.servers": "127.0.0.1:1", "sasl.password": PASSWORD}
    assert PASSWORD not in repr(IngestRequest(conf, topics=("orders",))) + repr(Cluster(conf))
    for name, said in (("sasl.mechanisms", "refuses a setting"), ("security.protocol", "no Kafka client has")):
        with pytest.raises(InvalidSettingError, match=said) as refused:
            Cluster({"security.protocol": "SASL_SSL", **conf, name: PASSWORD}).consumer()
        assert PASSWORD not in str(refused.value)
