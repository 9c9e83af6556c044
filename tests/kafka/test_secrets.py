"""What a client of Kafka has to keep to itself is on no command line, in no log and in nothing that Spark leaves."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest

from lithify.errors import InvalidSettingError
from lithify.kafka_client.client import Cluster
from lithify.model.sources.source import IngestRequest
from lithify.spark.kafka.connector import connector_conf
from lithify.spark.session.launch import JAVA_OPTIONS
from support.kafka.broker import KafkaBroker
from support.kafka.ingest import COPIED_S, SOON, alive, connector_jars, ingest_program, wait_for_batches
from support.kafka.secured import SecuredBroker
from support.processes.in_process import Program
from support.processes.programs import SHORT_LIVED, start
from support.servers.s3_endpoint import S3Endpoint, an_s3_endpoint
from support.servers.tcp_proxy import HttpError, a_proxy, wait_until

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


def test_an_ingest_shows_its_secrets_nowhere_and_a_supervisor_may_end_all_its_processes(
    tmp_path: Path, broker: KafkaBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """systemd and `timeout` signal the JVM as well, which was a defect with a traceback."""
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
    wait_until(lambda: "waiting" in (tmp_path / "err").read_text(), "it does not wait for records", COPIED_S)
    shown = list(command_lines())
    os.killpg(process.pid, signal.SIGTERM)
    assert process.wait(timeout=60) == 0, (tmp_path / "err").read_text()
    assert '"error"' not in (tmp_path / "err").read_text()
    wait_until(lambda: not alive(process.pid), "something of it goes on")
    assert any(b"spark.eventLog.enabled" in line for line in shown), "the program is among them"
    shown += [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and path.name != "client.properties"]
    assert any(b"SparkListenerJobStart" in text for text in shown), "and so is the event log"
    assert [text[:200] for text in shown for secret in (PASSWORD, KEY_PASSWORD) if secret.encode() in text] == []


def test_a_secret_after_a_flag_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    command = ["--warehouse", tmp_path, "kafka", "ingest", "--bootstrap-servers", "127.0.0.1:1", "--topic", "t"]
    refused = Program(tmp_path).error(*command, "--kafka-conf", f"sasl.password={PASSWORD}")
    assert "--kafka-conf sasl.password: all users of the machine can see a secret" in refused
    assert "--kafka-conf-file FILE" in refused
    assert PASSWORD not in refused


def test_neither_reprs_nor_errors_have_one() -> None:
    conf = {"bootstrap.servers": "127.0.0.1:1", "sasl.password": PASSWORD}
    assert PASSWORD not in repr(IngestRequest(conf, topics=("orders",))) + repr(Cluster(conf))
    for name, said in (
        ("sasl.mechanisms", "refuses a setting"),
        ("security.protocol", "not a protocol of Kafka's clients"),
    ):
        with pytest.raises(InvalidSettingError, match=said) as refused:
            Cluster({"security.protocol": "SASL_SSL", **conf, name: PASSWORD}).consumer()
        assert PASSWORD not in str(refused.value)


S3_KEY, TOKEN, DATABASE, LOGIN = (f"Qz7 {of}/two+three%" for of in ("store", "catalog", "database", "kafka"))
LOGS = """
appender.file.type = File
appender.file.name = file
appender.file.fileName = {file}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %p %c %m%n%ex
rootLogger.level = info
rootLogger.appenderRef.file.ref = file
"""


SECRETS = re.compile(r"Qz7|two.{0,6}three")


def test_no_face_of_a_failure_on_a_session_has_one(tmp_path: Path, secured: SecuredBroker) -> None:
    """Of a store, catalogs and clusters that refuse or are gone, with all that Spark logs if a person wants it."""
    given = {"session": session_that_logs(tmp_path), **clients_of(tmp_path, secured)}
    with an_s3_endpoint() as endpoint, a_proxy("127.0.0.1", endpoint.port) as wire:
        environment = catalogs_at(tmp_path, endpoint, wire.port)
        program = start(str(Path(__file__).with_name("every_face.py")), env=environment, stdin=subprocess.PIPE)
        assert program.stdin is not None and program.stdout is not None
        program.stdin.write(f"{json.dumps(given)}\n")
        program.stdin.flush()
        program.stdout.readline()
        wire.on_request = lambda request: wire.answer(*refused(request))
        out, err = program.communicate("\n", timeout=300)
    assert program.returncode == 0, err[-5000:]
    log = (tmp_path / "log").read_text()
    assert "AdminClientConfig" in log, "the settings of clients are there"
    assert "ERROR org.apache.spark.executor.Executor" in log, "and errors of tasks"
    shown = {**json.loads(out), "stderr": err, "Spark's log": log}
    assert any("no such key: ***" in text for text in shown.values()), "and what was repeated"
    leaks = [(face, text, found.start()) for face, text in shown.items() if (found := SECRETS.search(text))]
    assert [(face, text[max(0, at - 300) : at + 50]) for face, text, at in leaks] == []


def session_that_logs(folder: Path) -> dict[str, str]:
    (folder / "log4j2.properties").write_text(LOGS.format(file=folder / "log"))
    options = (*SHORT_LIVED, f"-Dlog4j2.configurationFile={(folder / 'log4j2.properties').as_uri()}")
    return connector_conf(str(connector_jars()), {"spark.master": "local[1]", JAVA_OPTIONS: " ".join(options)})


def clients_of(folder: Path, secured: SecuredBroker) -> dict[str, object]:
    """Of clusters that refuse or are gone, and a file for the command line."""
    login = secured.of_user("alice", LOGIN) | SOON
    clients = {"refused": login, "gone": login | {"bootstrap.servers": "127.0.0.1:1"}}
    (folder / "refused").write_text("".join(f"{name}={value}\n" for name, value in login.items()))
    return {"kafka": clients, "file": str(folder / "refused")}


def catalogs_at(folder: Path, endpoint: S3Endpoint, port: int) -> dict[str, str]:
    """As variables: one whose files are behind the port, one that is gone, and one that refuses."""
    password = quote(DATABASE, safe="")
    store = {**endpoint.properties(port), "s3.secret-access-key": S3_KEY, "warehouse": f"s3://{endpoint.make_bucket()}"}
    described = {
        "prod": {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", **store},
        "gone": {"type": "sql", "uri": f"postgresql+psycopg2://me:{password}@127.0.0.1:1/db"},
        "refusing": {"type": "rest", "uri": f"http://me:{password}@127.0.0.1:{port}", "token": TOKEN},
    }
    return {
        f"PYICEBERG_CATALOG__{catalog}__{name.replace('-', '_').replace('.', '__')}".upper(): value
        for catalog, settings in described.items()
        for name, value in settings.items()
    }


def refused(request: bytes) -> tuple[int, HttpError]:
    """As services do that repeat what they were sent: reads of segments, and all that a catalog is asked."""
    line = request.partition(b"\r\n")[0]
    repeated = [TOKEN, DATABASE] if b" /v1/" in line else [S3_KEY] if b".parquet" in line else []
    said = " ".join(f"no such key: {form(secret)}!" for secret in repeated for form in (str, quote, quote_plus, repr))
    return int(line.startswith(b"GET ") and bool(repeated)), HttpError(403, "AccessDenied", said)
