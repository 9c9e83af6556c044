"""What a small command imports is a budget: its processor time is that of its imports.

The numbers are what each took when it was last made less, rounded up; lower them when it gets less again. A time
would say little on a shared machine.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from lithify.testing import memory_lake
from support.servers.gateways import serving_gateway

COUNTED = """
import json, sys
from lithify.cli.main import run
code = run(sys.argv[1:])
sys.stderr.write("\\n" + json.dumps([code, sorted(sys.modules)]))
"""
ROOMS = (
    "spark",
    "spark_source",
    "kafka",
    "kafka_client",
    "pulsar_consumer",
    "replicas",
    "hydration",
    "proof",
    "metrics",
)
"""Those of which no small command has a module."""


def modules(*arguments: str) -> list[str]:
    """What there is after a command has ended."""
    ran = subprocess.run([sys.executable, "-c", COUNTED, *arguments], capture_output=True, text=True, check=True)
    code, found = json.loads(ran.stderr.splitlines()[-1])
    assert code == 0, ran.stderr
    return [name for name in found if name != "sitecustomize"]  # a distribution's own Python may have one


@pytest.mark.parametrize(
    ("command", "own", "all_of_them"),  # but for Python's own
    [
        ("--version", 41, 57),
        ("--help", 124, 152),
        ("compact --help", 70, 88),
        ("topic list", 208, 240),
        ("topic describe orders", 209, 241),
        ("status", 216, 247),
        ("consume orders", 216, 530),
        ("versions orders", 209, 241),
        ("history orders", 209, 241),
        ("compact orders --plan", 234, 351),
        ("group list", 237, 602),
        ("produce orders /dev/null", 216, 247),
    ],
)
def test_a_small_command_imports_little(lithify, command, own, all_of_them):
    lithify("topic", "create", "orders")
    found = [name for name in modules(*command.split()) if name.partition(".")[0] not in sys.stdlib_module_names]
    ours = [name for name in found if name.partition(".")[0] == "lithify"]
    assert len(ours) <= own and len(found) <= all_of_them, (len(ours), len(found))
    assert [name for name in ours if name.startswith(tuple(f"lithify.{room}." for room in ROOMS))] == []
    assert {"pyspark", "duckdb", "confluent_kafka"}.isdisjoint(found)


@pytest.mark.parametrize(
    ("command", "own", "all_of_them"),
    [
        ("topic list", 66, 95),
        ("status", 78, 107),
        ("topic create new", 71, 100),
        ("compact orders", 92, 121),
        ("consume orders", 81, 109),
        ("produce orders /dev/null", 99, 127),
    ],
)
def test_a_command_through_a_gateway_imports_neither_a_catalog_nor_a_server(command, own, all_of_them):
    lake = memory_lake()
    lake.create_topic("orders")
    with serving_gateway(lake) as url:
        there = modules("--gateway", url, *command.split())
    found = [name for name in there if name.partition(".")[0] not in sys.stdlib_module_names]
    ours = [name for name in found if name.partition(".")[0] == "lithify"]
    assert len(ours) <= own and len(found) <= all_of_them, (len(ours), len(found))
    heavy = {"pyiceberg", "pyarrow", "pyspark", "numpy", "sqlalchemy", "starlette", "uvicorn", "requests", "duckdb"}
    assert heavy.isdisjoint(found)
    assert [name for name in ours if name.startswith(("lithify.api", "lithify.gateway.server"))] == []
