"""Jars that tests need and that no Python package brings, fetched once by the Ivy that comes with PySpark.

    .venv/jars/<name>/*.jar       kept, so that later runs ask for nothing

A folder is recreated when its list of jars has changed.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyspark
from filelock import FileLock

from lithify.spark.session.java import find_java
from support.processes.truststore import trusting

JARS = Path(sys.prefix) / "jars"
FETCH_S = 300.0
ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class Module:
    """As Maven names it. `alone` leaves out what it depends on."""

    organisation: str
    name: str
    version: str
    alone: bool = False


def fetched(name: str, modules: Sequence[Module]) -> Path:
    """The folder with their jars."""
    JARS.mkdir(exist_ok=True)
    text = _ivy_file(name, modules)
    folder = JARS / name
    with FileLock(JARS / f"{name}.lock"):
        done = folder / "ivy.xml"
        if not (done.exists() and done.read_text() == text):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            _fetch(text, folder)
            done.write_text(text)
    return folder


def _fetch(text: str, folder: Path) -> None:
    (ivy,) = (Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar")
    with tempfile.TemporaryDirectory() as scratch:
        wanted = Path(scratch) / "ivy.xml"
        wanted.write_text(text)
        java = find_java()
        command = [str(java.executable), *trusting(java, Path(scratch)), "-jar", str(ivy)]
        command += ["-ivy", str(wanted), "-cache", str(JARS / "cache")]
        command += ["-retrieve", f"{folder}/[artifact]-[revision].[ext]", "-types", "jar", "bundle"]
        for attempt in range(1, ATTEMPTS + 1):
            ended = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_S, check=False)
            if ended.returncode == 0 and any(folder.glob("*.jar")):
                return
            assert attempt < ATTEMPTS, f"Ivy could not fetch the jars:\n{ended.stdout[-3000:]}{ended.stderr[-1000:]}"


def _ivy_file(name: str, modules: Sequence[Module]) -> str:
    dependencies = "".join(
        f'    <dependency org="{m.organisation}" name="{m.name}" rev="{m.version}" '
        f'transitive="{"false" if m.alone else "true"}" conf="default->master,runtime"/>\n'
        for m in modules
    )
    return (
        '<ivy-module version="2.0">\n'
        f'  <info organisation="lithify" module="{name}"/>\n'
        f"  <dependencies>\n{dependencies}  </dependencies>\n"
        "</ivy-module>\n"
    )
