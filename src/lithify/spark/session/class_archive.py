"""An archive of the classes of Spark's JVM, which maps them instead of loading each anew (decision 33).

    first start ──► <home>/<pid>.loaded ──► as the program ends: a process of its own ──► <home>/spark.jsa
    next starts ──► the wrapper in <home> (`java_home.py`) names it, and the JVM compares it with itself and its jars

It takes a third of the processor time from a first small round. Making one takes 20 s of processor time, at the lowest
priority, and begins when the JVM has ended: nothing waits for it, and nothing but a later start depends on it. A JVM
that an archive does not fit loads its classes as always.
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Event
from zlib import crc32

from filelock import FileLock, Timeout

from lithify.spark.session.java_home import ARCHIVE, LOADED, MADE, class_path
from lithify.waits.deadline import Deadline

JVM_ENDS_WITHIN_S = 60.0
MAKE_S = 600.0
LEAST_FREE_BYTES = 2**30
"""An archive has 160 MB, and a cache is nothing to fill a disk with."""
AGAIN_S = 86400.0
"""After a dump that failed, or was killed, the next one: its reason may have been a lack of memory or space."""
MOST_KEPT = 4
"""Archives of a user, the least recently used are deleted first: each PySpark and Java has one."""
_OF_A_JOB = b"org/apache/spark/api/python/BasePythonRunner"
"""Only a JVM that loaded it has run a job of Lithify."""
_SHARING = ("-Xshare", "SharedArchiveFile", "DumpLoadedClassList", "ArchiveClassesAtExit")
_MAKE = "import sys; from lithify.spark.session import class_archive as a; a.make_aside(*map(a.Path, sys.argv[1:]))"
_OPTIONS_OF_USERS = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")


def discard_outdated(home: Path, java: Path) -> None:
    """Deletes an archive of another Java, of other jars, or one that is cut, so that this start makes a new one.

    After that, an archive that could not be made is tried again.
    """
    with suppress(OSError):  # a cache that can only be read
        made, archive = home / MADE, home / ARCHIVE
        if made.exists() or archive.exists():
            is_known = made.exists() and made.read_bytes() == _note(_made_of(home, java), archive)
            if is_known and archive.exists():
                os.utime(made)  # it is in use
            elif not is_known or _now_s(home) - made.stat().st_mtime > AGAIN_S:
                archive.unlink(missing_ok=True)
                made.unlink()


def make_at_exit(home: Path, java: Path, pid: int, options: str) -> None:
    """As this process ends, has another one make an archive of what the JVM `pid` has loaded, unless there is one.

    Not if `options` of the JVM say how it shares classes.
    """
    if not (home / MADE).exists():
        with suppress(OSError):
            _delete_leftovers(home)
        is_wanted = not any(name in options for name in _SHARING)
        atexit.register(_begin, home, java, home / f"{pid}{LOADED}", is_wanted)


def _begin(home: Path, java: Path, loaded: Path, is_wanted: bool) -> None:
    if not loaded.exists():
        return
    silent = subprocess.DEVNULL
    with suppress(OSError):
        if not is_wanted:
            loaded.unlink()
            return
        subprocess.Popen(
            [sys.executable, "-c", _MAKE, home, java, loaded],
            stdin=silent,
            stdout=silent,
            stderr=silent,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            start_new_session=True,
        )


def make_aside(home: Path, java: Path, loaded: Path) -> None:
    """`make` in a process of its own."""
    os.chdir(home)  # the folder that its program ran in may have to be unmounted
    os.nice(19)
    make(home, java, loaded)


def make(home: Path, java: Path, loaded: Path) -> None:
    """Makes the archive of `home`, once the JVM that writes `loaded` has ended. Only one is made at a time."""
    try:
        _await_end(int(loaded.name.removesuffix(LOADED)))
        with FileLock(home.parent / "spark.jsa.lock", timeout=0):
            (home / f"{ARCHIVE}.making").unlink(missing_ok=True)  # of a maker that was killed
            if not (home / MADE).exists() and _OF_A_JOB in loaded.read_bytes():
                _dump(home, java, loaded)
    except Timeout:  # another one is being made
        pass
    finally:
        loaded.unlink(missing_ok=True)


def _await_end(pid: int) -> None:
    """Raises `TimeoutError` if the JVM continues: what it loaded is written as it ends."""
    deadline, pause = Deadline(JVM_ENDS_WITHIN_S), Event()
    while _runs(pid):
        pause.wait(min(0.1, deadline.left_s()))


def _runs(pid: int) -> bool:
    """Not one that has ended and whose end no process has read, as in a container without an init process."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] != b"Z"
    except ProcessLookupError:
        return False
    except OSError:  # a system without /proc, or a process of another user
        return True


def _dump(home: Path, java: Path, loaded: Path) -> None:
    """Raises `TimeoutExpired` where it takes too long; the next start tries it again then."""
    if shutil.disk_usage(home).free < LEAST_FREE_BYTES:
        return
    made, of = home / f"{ARCHIVE}.making", _made_of(home, java)
    options = ("-Xshare:dump", f"-XX:SharedClassListFile={loaded}", f"-XX:SharedArchiveFile={made}", "-Xlog:disable")
    command: list[str | Path] = [java, *options, "-cp", class_path(home)]
    silent = subprocess.DEVNULL
    env = {name: value for name, value in os.environ.items() if name not in _OPTIONS_OF_USERS}
    try:
        done = subprocess.run(command, stdin=silent, stdout=silent, stderr=silent, env=env, timeout=MAKE_S, check=False)
        if done.returncode == 0 and made.exists():
            with made.open("rb") as file:
                os.fsync(file.fileno())
            made.replace(home / ARCHIVE)
        # Also of a Java that can make none, so that it is not asked at every start.
        (home / MADE).write_bytes(_note(of, home / ARCHIVE))
        _delete_unused(home)
    finally:
        made.unlink(missing_ok=True)


def _delete_leftovers(home: Path) -> None:
    """Lists of JVMs whose program was killed."""
    now_s = _now_s(home)
    for path in home.glob(f"*{LOADED}"):
        if now_s - path.stat().st_mtime > MAKE_S and not _runs(int(path.name.removesuffix(LOADED))):
            path.unlink(missing_ok=True)


def _delete_unused(home: Path) -> None:
    kept = sorted(home.parent.glob(f"java-*/{MADE}"), key=lambda made: made.stat().st_mtime, reverse=True)
    for made in kept[MOST_KEPT:]:
        made.with_name(ARCHIVE).unlink(missing_ok=True)
        made.unlink(missing_ok=True)


def _now_s(home: Path) -> float:
    """By the clock that gives files of this cache their times."""
    os.utime(home)
    return home.stat().st_mtime


def _note(of: int, archive: Path) -> bytes:
    return b"%d %d" % (of, archive.stat().st_size if archive.exists() else 0)


def _made_of(home: Path, java: Path) -> int:
    """A sign of what a JVM compares an archive with: its build, and the jars."""
    return crc32(os.fsencode("\n".join(_stamps(home, java))))


def _stamps(home: Path, java: Path) -> Iterator[str]:
    real = java.resolve()
    for path in (real, real.parent.parent / "lib" / "modules", *sorted((home / "spark" / "jars").iterdir())):
        if path.exists():
            status = path.stat()
            yield f"{path} {status.st_size} {status.st_mtime_ns}"
