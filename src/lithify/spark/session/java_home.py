"""A JAVA_HOME for Spark, whose `java` starts the real one with other arguments.

    <cache>/java-<hash>/      of one Java and one PySpark; only this user can change what is in it
        bin/java              the wrapper
        spark/                a SPARK_HOME (`spark_home.py`)
        spark.jsa             an archive of the classes of that PySpark (`class_archive.py`)

Spark starts its JVM with `--add-modules=jdk.incubator.vector`. The packaged Java lacks that module and would
not start; others print a warning at each start. So the wrapper drops this argument. Spark uses the module only for
linear algebra, which Lithify does not need.

It also names the archive, where Spark runs on the SPARK_HOME beside it and nothing else is on the class path. A class
path has to name each jar once, else an archive does not fit it: Spark's is `conf:jars/slf4j-api.jar:jars/*`.
"""

from __future__ import annotations

import atexit
import hashlib
import locale
import os
import shlex
import shutil
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from platformdirs import user_cache_path

from lithify.errors import JavaNotFoundError
from lithify.spark.session.java import Java
from lithify.spark.session.spark_home import installed_spark

ARCHIVE = "spark.jsa"
MADE = "spark.jsa.of"
"""A sign of what an archive was made of, or could not be made of."""
CHECKED = "-XX:+VerifySharedSpaces"
"""A JVM that maps a damaged archive crashes. To check it takes 0.06 s of processor time, and such a one is left out."""
LOADED = ".loaded"
"""After the id of a process: the names of the classes that its JVM loaded, as there was no archive."""
QUIET = "-Xlog:cds*=off"
"""Nothing is said of an archive that does not fit: that would be on stdout."""

_FIRST = "slf4j-api-"
_TEMPORARY = "lithify-java-"
_WRAPPER = """#!/bin/sh
for argument do
  shift
  case $argument in
    --add-modules=jdk.incubator.vector) ;;
    {wildcards})
      set -- "$@" {jars}
      if [ -f {home}/{archive} ]; then
        set -- "$@" -XX:SharedArchiveFile={home}/{archive} {checked} {quiet}
      elif [ ! -f {home}/{made} ] && (: > {home}/$${loaded}) 2> /dev/null; then
        set -- "$@" -XX:DumpLoadedClassList={home}/$${loaded} {quiet}
      fi ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec {java} "$@"
"""


def java_home(java: Java) -> Path:
    """A JAVA_HOME for Spark with a wrapper of this Java, in the user's cache or a new temporary folder.

    Lithify executes its files, so no other user may be able to replace them.
    """
    name = f"java-{_hash(_WRAPPER, os.fspath(java.executable), os.fspath(installed_spark()), *_jars())}"
    for make_folder in (_cache_folder, _temporary_folder):
        try:
            folder = make_folder().resolve()
            os.fspath(folder).encode(locale.getencoding())  # a Java with LC_ALL=C finds nothing in a folder é
            if not _is_private(folder) or not _is_private((home := _written_home(folder / name, java)) / "bin"):
                continue
            if os.access(home / "bin" / "java", os.X_OK):  # not on a disk that is mounted noexec
                return home
        except (OSError, RuntimeError, UnicodeEncodeError):  # a user without a home has no cache
            continue
    raise JavaNotFoundError(
        f"Java {java.executable} needs a writable folder that other users cannot change, and there is none",
        hint="set XDG_CACHE_HOME or TMPDIR to your own folder on a disk with free space, not mounted noexec; or give "
        "it mode 700, and its parents mode 755",
    )


def is_kept(home: Path) -> bool:
    """Whether it is in the user's cache, and not removed when this process ends."""
    return not home.parent.name.startswith(_TEMPORARY)


def class_path(home: Path) -> str:
    """The class path of Spark on the SPARK_HOME in `home`, which names each jar once."""
    return os.pathsep.join(f"{home}/spark/{part}" for part in ("conf", *(f"jars/{jar}" for jar in _jars())))


def _jars() -> list[str]:
    """In one order on all machines: first the one that Spark puts first, then the large ones.

    A class is looked for in one after the other, and most are in the large ones. By name, an archive took 44 s of
    processor time to make, instead of 27.
    """
    jars = (installed_spark() / "jars").glob("*.jar")
    in_order = sorted((not jar.name.startswith(_FIRST), -jar.stat().st_size, jar.name) for jar in jars)
    return [name for _, _, name in in_order]


def _wildcards(home: Path) -> str:
    """The same as Spark's own scripts give it."""
    first = (f"jars/{jar}" for jar in _jars() if jar.startswith(_FIRST))
    return os.pathsep.join(f"{home}/spark/{part}" for part in ("conf", *first, "jars/*"))


def _hash(*texts: str) -> str:
    return hashlib.sha256(os.fsencode("\0".join(texts))).hexdigest()[:12]


def _cache_folder() -> Path:
    folder = user_cache_path("lithify")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def _temporary_folder() -> Path:
    """A folder for this process: other users could create one with a predictable name first."""
    folder = tempfile.mkdtemp(prefix=_TEMPORARY)
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


def _written_home(home: Path, java: Java) -> Path:
    """Creates `home` with its wrapper, which is renamed into place, so that it is never seen half written."""
    executable = home / "bin" / "java"
    wrapper = os.fsencode(
        _WRAPPER.format(
            home=shlex.quote(str(home)),
            java=shlex.quote(str(java.executable)),
            wildcards=shlex.quote(_wildcards(home)),
            jars=shlex.quote(class_path(home)),
            checked=CHECKED,
            quiet=shlex.quote(QUIET),
            archive=ARCHIVE,
            made=MADE,
            loaded=LOADED,
        )
    )
    if not (executable.is_file() and executable.read_bytes() == wrapper):
        _delete_dead(home.parent)
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


def _delete_dead(cache: Path) -> None:
    """Deletes homes that nothing can start from any more: their Java is gone, or the PySpark that they link to."""
    for wrapper in cache.glob("java-*/bin/java"):
        home = wrapper.parent.parent
        jars = home / "spark" / "jars"
        with suppress(OSError, ValueError):
            java = Path(shlex.split(wrapper.read_text().splitlines()[-1])[1])
            if (java.is_absolute() and not java.exists()) or (jars.is_symlink() and not jars.exists()):
                shutil.rmtree(home, ignore_errors=True)
