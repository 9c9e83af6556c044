"""What `deploy/compose.yaml` starts works together, by the settings in that file: Kafka, a store, PostgreSQL, Lithify.

The programs run without containers here, so another S3 endpoint is the store, and names of services become addresses.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
import yaml

import lithify
from support.kafka.broker import KafkaBroker
from support.kafka.ingest import connector_jars
from support.processes.programs import PROGRAM, end
from support.servers.postgres import PASSWORD, Postgres, a_postgres
from support.servers.s3_endpoint import S3Endpoint, an_s3_endpoint
from support.servers.tcp_proxy import free_port, wait_until

COMPOSE = yaml.safe_load((Path(__file__).parents[2] / "deploy" / "compose.yaml").read_text("utf-8"))
SERVICES: Mapping[str, Mapping[str, Any]] = COMPOSE["services"]
DUCKDB_PYTHON = Path(sys.prefix) / "engines" / "bin" / "python"
EXTENSIONS = """
import sys, duckdb
from importlib.util import find_spec
from pathlib import Path

connection = duckdb.connect()
for extension in ("httpfs", "postgres_scanner", "avro", "iceberg"):
    package = find_spec(f"duckdb_extension_{extension}").submodule_search_locations[0]
    connection.load_extension(str(next(Path(package).rglob("*.duckdb_extension"))))
connection.execute(sys.stdin.read())
for row in connection.sql("SELECT partition, \\"offset\\", key, value FROM orders_latest").fetchall():
    print(*row)
"""
WAIT_S = 240.0


@dataclass(frozen=True, slots=True)
class Trial:
    """The servers of the file, and where what is in containers there can be reached here."""

    broker: KafkaBroker
    gateway_port: int
    places: Mapping[str, str]

    def here(self, text: str) -> str:
        for place, address in self.places.items():
            text = text.replace(place, address)
        return text

    def environment(self, service: str) -> dict[str, str]:
        return {name: self.here(value) for name, value in SERVICES[service].get("environment", {}).items()}

    @contextmanager
    def running(self, service: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
        """A service of Lithify's image, with its command and its environment."""
        command = [self.here(word) for word in SERVICES[service]["command"]]
        more = {"LITHIFY_JARS": str(connector_jars())}  # a container fetches them
        with (folder / f"{service}.log").open("wb") as log:
            environment = {**os.environ, **more, **self.environment(service)}
            process = subprocess.Popen(
                [*PROGRAM, *command], stdout=log, stderr=log, start_new_session=True, env=environment
            )
        try:
            yield process
        finally:
            end(process)  # type: ignore[arg-type]
            process.wait(WAIT_S)


@pytest.fixture
def trial() -> Iterator[Trial]:
    with a_postgres() as postgres, an_s3_endpoint() as s3, tempfile.TemporaryDirectory(prefix="kafka") as folder:
        prepare(postgres, s3)
        inside, gateway = free_port(), free_port()
        settings = {
            name.removeprefix("KAFKA_").replace("_", ".").lower(): value.replace(":19092", f":{inside}")
            .replace(":9092", ":{port}")
            .replace(":9093", ":{controller}")
            .replace("//kafka:", "//localhost:")
            for name, value in SERVICES["kafka"]["environment"].items()
            if name != "KAFKA_LOG_DIRS"
        }
        broker = KafkaBroker(Path(folder), settings)
        places = {
            "@postgres/": f"@127.0.0.1:{postgres.port}/",
            "s3:7070": f"127.0.0.1:{s3.port}",
            "kafka:19092": f"localhost:{inside}",
            "0.0.0.0:7660": f"127.0.0.1:{gateway}",
            "localhost:7660": f"127.0.0.1:{gateway}",
        }
        try:
            yield Trial(broker, gateway, places)
        finally:
            broker.kill()


def prepare(postgres: Postgres, s3: S3Endpoint) -> None:
    """The database, its user and the bucket, as the images make them."""
    wanted = SERVICES["postgres"]["environment"]
    assert postgres.uri(wanted["POSTGRES_DB"]).startswith(f"postgresql+psycopg2://{wanted['POSTGRES_USER']}:")
    postgres.run(f"CREATE DATABASE {wanted['POSTGRES_DB']}")
    assert wanted["POSTGRES_PASSWORD"] != PASSWORD
    postgres.run(f"ALTER ROLE {wanted['POSTGRES_USER']} PASSWORD '{wanted['POSTGRES_PASSWORD']}'")
    folder = SERVICES["s3"]["command"][-1]
    (bucket,) = (volume.partition(f":{folder}/")[2] for volume in SERVICES["s3"]["volumes"])
    with urlopen(Request(f"http://127.0.0.1:{s3.port}/{bucket}", method="PUT"), timeout=10):
        pass


def is_healthy(trial: Trial) -> bool:
    """As the health check of the gateway finds it."""
    _, program, *arguments = (trial.here(word) for word in SERVICES["gateway"]["healthcheck"]["test"])
    assert program == "python"
    return subprocess.run([sys.executable, *arguments], capture_output=True, check=False).returncode == 0


def answer(trial: Trial, path: str) -> Any:
    """Of the gateway."""
    with urlopen(f"http://127.0.0.1:{trial.gateway_port}{path}", timeout=30) as response:
        return json.loads(response.read())


def latest_in_duckdb(trial: Trial) -> list[str]:
    """What the view of the file's queries has; the extensions are not fetched here."""
    views = re.sub(r"^(?:INSTALL|SET extension_directory).*\n", "", COMPOSE["configs"]["views"]["content"], flags=re.M)
    done = subprocess.run(
        [DUCKDB_PYTHON, "-c", EXTENSIONS], input=trial.here(views), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def produce(trial: Trial, *records: tuple[str, str]) -> None:
    producer = trial.broker.producer()
    for key, value in records:
        producer.produce("orders", key=key, value=value)
    producer.flush()


@pytest.mark.timeout(900)
def test_a_topic_of_kafka_is_copied_compacted_and_queried(
    trial: Trial, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in trial.environment("gateway").items():
        monkeypatch.setenv(name, value)
    with trial.running("ingest", tmp_path) as ingest, trial.running("gateway", tmp_path) as gateway:

        def lives() -> bool:
            logs = [(tmp_path / f"{name}.log").read_text()[-3000:] for name in ("ingest", "gateway")]
            assert (ingest.poll(), gateway.poll()) == (None, None), logs
            return True

        wait_until(lambda: lives() and is_healthy(trial), "no gateway listens", WAIT_S)
        trial.broker.make_topic(name="orders", cleanup_policy="compact")  # after the ingest has begun
        produce(trial, ("o-1", "placed"), ("o-2", "placed"), ("o-1", "paid"))
        lake = lithify.open()
        wait_until(lambda: lives() and [t.name for t in lake.topics()] == ["orders"], "it is not copied", WAIT_S)
        topic = lake.topic("orders")
        wait_until(lambda: lives() and topic.history() != (), "no round runs", WAIT_S)
        assert [(r.offset, r.key, r.value) for r in topic.reader()] == [(1, b"o-2", b"placed"), (2, b"o-1", b"paid")]
        assert latest_in_duckdb(trial) == ["0 2 o-1 paid", "0 1 o-2 placed"]
        (shown,) = answer(trial, "/api/v1/status")["topics"]
        assert (shown["topic"], shown["records"]) == ("orders", 2)
        for process in (ingest, gateway):
            process.send_signal(signal.SIGTERM)
        codes = [process.wait(WAIT_S) for process in (ingest, gateway)]
        assert codes == [0, 0], [(tmp_path / f"{name}.log").read_text()[-3000:] for name in ("ingest", "gateway")]
