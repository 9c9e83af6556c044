"""Pulsar's jars, fetched once by Maven, which keeps the versions together that Pulsar was built with.

    .venv/jars/pulsar-<version>/*.jar       kept, so that later runs ask for nothing

A folder is recreated when its `pom.xml` has changed.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

from filelock import FileLock

JARS = Path(sys.prefix) / "jars"
POM = Path(__file__).with_name("pom.xml")
FETCH_S = 600.0
ATTEMPTS = 3


def pulsar_jars() -> Path:
    """The folder with the jars of a broker, as `--jars` takes it."""
    return jars_of("pulsar", POM)


def broker_archive() -> Path:
    """Of a broker's classes; see `support/processes/class_archive.py`."""
    jars = pulsar_jars()
    return jars.with_name(f"{jars.name}.jsa")


def ledgers_archive() -> Path:
    """Of the classes of a JVM that speaks to BookKeeper."""
    jars = pulsar_jars()
    return jars.with_name(f"{jars.name}-ledgers.jsa")


def jars_of(name: str, pom: Path) -> Path:
    """The folder with what a `pom.xml` names, for the version of Pulsar that it names first."""
    text = pom.read_text()
    version = re.findall(r"<version>([\d.]{3,})</version>", text)[0]
    folder = JARS / f"{name}-{version}"
    JARS.mkdir(exist_ok=True)
    with FileLock(JARS / f"{name}-{version}.lock"):
        done = folder / "pom.xml"
        if not (done.exists() and done.read_text() == text):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            _fetch(pom, folder)
            done.write_text(text)
    return folder


def _fetch(pom: Path, folder: Path) -> None:
    maven = shutil.which("mvn")
    assert maven, "Maven is needed to fetch Pulsar's jars, and there is no `mvn` on the PATH"
    command = [maven, "-q", "-B", "-f", str(pom), "dependency:copy-dependencies", f"-DoutputDirectory={folder}"]
    for attempt in range(1, ATTEMPTS + 1):
        ended = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_S, check=False)
        if ended.returncode == 0 and any(folder.glob("*.jar")):
            return
        assert attempt < ATTEMPTS, f"Maven could not fetch Pulsar's jars:\n{ended.stdout[-3000:]}{ended.stderr[-1000:]}"


if __name__ == "__main__":
    print(pulsar_jars())
