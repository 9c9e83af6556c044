"""The programs of the page on decoding values, as they stand there, on values as producers with a registry write them.

The values are encoded by hand here, so that what the page decodes with is not what made them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

import lithify
from support.kafka.jars import Module, fetched
from support.pages.text import programs

ROOT = Path(__file__).resolve().parents[2]
PAGE = "docs/data-out/typed-table.md"
# Of a version that the repository has: 4.2.0 of this one is not published everywhere.
SPARK_AVRO = Module("org.apache.spark", "spark-avro_2.13", "4.1.1", alone=True)
FIRST, SECOND = 7, 70_000
"""Ids of the schemas: of the first version, and of the second, which has the price as well."""
STATUS = {"name": "status", "type": "string"}
CENTS = {"name": "cents", "type": "long", "default": 0}
SCHEMAS = {
    FIRST: {"type": "record", "name": "Order", "fields": [STATUS]},
    SECOND: {"type": "record", "name": "Order", "fields": [CENTS, STATUS]},
}
PROTO = 'syntax = "proto3"; message Order { string status = 1; int64 cents = 2; }'
QUICK = "--conf spark.ui.enabled=false --conf spark.sql.shuffle.partitions=2"
Encode = Callable[[str, int], bytes]


def varint(number: int) -> bytes:
    return bytes([number]) if number < 0x80 else bytes([number & 0x7F | 0x80]) + varint(number >> 7)


def framed(schema_id: int, body: bytes) -> bytes:
    return b"\0" + schema_id.to_bytes(4, "big") + body


def text(value: str) -> bytes:
    return varint(2 * len(value)) + value.encode()


def as_json(status: str, cents: int) -> bytes:
    return json.dumps({"status": status, "cents": cents}).encode()


def as_avro(status: str, cents: int) -> bytes:
    """Free orders are written by the first version, which knows no price."""
    return framed(SECOND, varint(2 * cents) + text(status)) if cents else framed(FIRST, text(status))


def as_protobuf(status: str, cents: int) -> bytes:
    """Free orders are of the first message of their file, which has the short form; others of one within another."""
    indexes = varint(2 * 2) + varint(2 * 1) + varint(2 * 70) if cents else b"\0"
    message = b"\x0a" + varint(len(status)) + status.encode() + b"\x10" + varint(cents)
    return framed(FIRST, indexes + message)


class _Registry(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        known: dict[str, Any] = {f"/schemas/ids/{i}": {"schema": json.dumps(s)} for i, s in SCHEMAS.items()}
        known["/subjects/orders-value/versions/latest"] = {"id": SECOND, "schema": json.dumps(SCHEMAS[SECOND])}
        content = json.dumps(known.get(self.path, {"error_code": 40403})).encode()
        self.send_response(200 if self.path in known else 404)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def registry() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Registry) as server:
        thread = Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


WAIT = "query.processAllAvailable()"
APPEND = """
import lithify
topic = lithify.open("./lithify-warehouse").topic("orders")
topic.append([lithify.Record(b"o-3", None), lithify.Record(b"o-4", value)])
"""
SHOW = """
print("TABLE", [tuple(row.values()) for row in table.refresh().scan().to_arrow().sort_by("order_id").to_pylist()])
"""


@pytest.mark.spark
@pytest.mark.parametrize(
    ("anchor", "encode"),
    [
        ("json", as_json),
        ("avro-with-a-schema-registry", as_avro),
        ("protobuf-with-a-schema-registry", as_protobuf),
    ],
)
def test_a_topic_becomes_a_typed_table(
    anchor: str, encode: Encode, registry: str, tmp_path: Path, run: Callable[[str], list[str]]
) -> None:
    topic = lithify.open(str(tmp_path / "lithify-warehouse")).create_topic("orders")
    topic.append([lithify.Record(b"o-1", encode("placed", 0)), lithify.Record(b"o-2", encode("placed", 0))])
    topic.append([lithify.Record(b"o-1", encode("paid", 1250)), lithify.Record(b"o-2", None)])
    topic.append([lithify.Record(b"o-3", encode("placed", 0))])
    definitions, batch, stream = programs(PAGE, "batch-and-stream")
    parts = [*programs(PAGE, anchor), *programs(PAGE, "the-table"), definitions, batch, SHOW]
    parts += [stream, WAIT, SHOW, f"value = {encode('placed', 99)!r}", APPEND, WAIT, SHOW, "query.stop()"]
    source = "\n".join(parts).replace("http://localhost:8081", registry)
    for relative, absolute in {
        "./lithify-warehouse": f"{tmp_path}/lithify-warehouse",
        "sqlite:///lithify-warehouse": f"sqlite:///{tmp_path}/lithify-warehouse",
        "checkpoints/orders": f"{tmp_path}/checkpoints",
        "/data/tables": f"{tmp_path}/tables",
    }.items():
        source = source.replace(relative, absolute)

    shown = run(source)

    before = [("o-1", "paid", 1250, 2), ("o-3", "placed", 0, 4)]
    assert shown == [str(before), str(before), str([before[0], ("o-4", "placed", 99, 6)])]


ONE_AFTER_ANOTHER = """
import json, sys
for line in sys.stdin:
    exec(json.loads(line), {"__name__": "__main__"})
    print("END", flush=True)
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], list[str]]]:
    """Runs programs in one process, as each would start a Spark of its own: the tables that a program shows."""
    folder = tmp_path_factory.mktemp("programs")
    (folder / "orders.proto").write_text(PROTO)
    protoc = [sys.executable, "-m", "grpc_tools.protoc", "-I.", "--python_out=.", "orders.proto"]
    subprocess.run(protoc, cwd=folder, check=True)
    jars = ",".join(map(str, fetched("spark-avro-4.1.1", [SPARK_AVRO]).glob("*.jar")))
    environment: Mapping[str, str] = {
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_SUBMIT_ARGS": f"--master local[2] --jars {jars} {QUICK} pyspark-shell",
        "PYTHONPATH": os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]),
    }
    errors = folder / "errors"

    def shown(source: str) -> list[str]:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(f"{json.dumps(source)}\n")
        process.stdin.flush()
        lines = []
        while (line := process.stdout.readline()) != "END\n":
            assert line, errors.read_text()[-3000:]
            lines.append(line.rstrip("\n"))
        return [line.removeprefix("TABLE ") for line in lines if line.startswith("TABLE ")]

    with errors.open("w") as said:
        process = subprocess.Popen(
            [sys.executable, "-c", ONE_AFTER_ANOTHER],
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
        )
        with process:
            yield shown
