"""The folders that a start of Spark makes for itself, and what it finds of earlier ones."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from lithify.errors import EngineUnavailableError
from lithify.spark.session import launch
from lithify.spark.session.java import Java
from lithify.spark.session.java_home import java_home


@pytest.fixture
def temporary(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Where temporary files go, with a comma in its name, and Java's wrappers."""
    folder = tmp_path / "one,two"
    folder.mkdir()
    for name, value in {"TMPDIR": folder, "XDG_CACHE_HOME": tmp_path / "cache"}.items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.delenv("SPARK_LOCAL_DIRS", raising=False)
    monkeypatch.setattr("tempfile.tempdir", None)
    return folder


def test_a_temporary_folder_that_spark_takes_for_two_is_refused(temporary: Path) -> None:
    launch.begin_early({})
    with pytest.raises(EngineUnavailableError, match=f"^{temporary}: Spark reads a folder with a comma"):
        launch.launched({})
    assert list(temporary.iterdir()) == []


def test_what_was_left_before_spark_had_started_goes_at_a_later_start(temporary: Path, tmp_path: Path) -> None:
    """Not a folder with files, as Spark's have, nor a new one, whose Spark may be starting."""
    places = [tmp_path / "a", tmp_path / "b"]
    old, new = [], []
    for place in places:
        for name, is_old in {"old": True, "used": True, "new": False}.items():
            folder = place / f"lithify-spark-{name}"
            folder.mkdir(parents=True)
            if name == "used":
                (folder / "blockmgr").mkdir()
            if is_old:
                at_s = folder.stat().st_mtime - launch.LEFT_S - 1
                os.utime(folder, (at_s, at_s))
            (old if name == "old" else new).append(folder)
    made = launch._private_folders({launch.LOCAL_FOLDERS: ",".join(map(str, places))})
    there = {folder for place in places for folder in place.iterdir()}
    assert there == {*map(Path, made), *new} and not there.intersection(old)
    assert list(temporary.iterdir()) == []


def a_java(folder: Path) -> Java:
    folder.mkdir()
    executable = folder / "java"
    executable.write_text("#!/bin/sh")
    executable.chmod(0o755)
    return Java(executable, 21, "PATH")


def test_a_home_of_a_java_or_a_pyspark_that_is_gone_goes_when_another_is_made(temporary: Path, tmp_path: Path) -> None:
    javas = [a_java(tmp_path / f"java{number}") for number in range(4)]
    kept, without_java, without_spark = map(java_home, javas[:3])
    for home, spark in ((kept, tmp_path), (without_java, tmp_path), (without_spark, tmp_path / "gone")):
        (home / "spark").mkdir()
        (home / "spark" / "jars").symlink_to(spark)
    shutil.rmtree(javas[1].executable.parent)
    assert java_home(javas[0]) == kept
    assert without_java.exists()  # nothing is looked for at every start
    another = java_home(javas[3])
    assert set(kept.parent.iterdir()) == {kept, another}
