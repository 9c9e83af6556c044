"""The Python of Spark's executors: this one in local sessions, else what Spark's own settings name.

    spark-submit                  spark.pyspark.python ─► PYSPARK_PYTHON ─► python3 of the PATH
    a session in one's own program                        PYSPARK_PYTHON ─► python3 of the PATH

Only a Python that is named and is here can be wrong: another machine, or an archive that is sent along, has its own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from lithify import __version__
from lithify.cli.doctor.check import Check

NAME = "executors"
VARIABLE, SETTING = "PYSPARK_PYTHON", "spark.pyspark.python"
DEFAULT = "python3"
ANSWER_S = 20.0
_ASK = """
import sys
try:
    from lithify import __version__ as lithify
except Exception:
    lithify = ""
print(*sys.version_info[:2], lithify or "-")
"""
_HERE = f"{sys.version_info.major}.{sys.version_info.minor}"
_OWN = "this Python in local sessions; in a session of your own"


@dataclass(frozen=True, slots=True)
class _Python:
    """What a Python says of itself. `lithify` is empty if it has none."""

    version: str
    lithify: str

    def __str__(self) -> str:
        return f"Python {self.version} {f'with Lithify {self.lithify}' if self.lithify else 'without Lithify'}"

    @property
    def fits(self) -> bool:
        return (self.version, self.lithify) == (_HERE, __version__)


def executors() -> Check:
    """What runs the tasks of a session. Starts each Python that is named once, for its version."""
    named, origin = _named()
    if named is None:
        return _unnamed()
    name, python = f"{origin}={named}", _asked(named)
    if not os.path.isabs(named) and os.sep in named:  # noqa: PTH117 - as in an archive that is sent along
        return Check(NAME, True, f"{_OWN} {name}, a path in the folder of each executor, not checked")
    if python is None:
        return Check(NAME, True, f"{_OWN} {name}, which does not run on this machine and is not checked")
    if python.fits:
        return Check(NAME, True, f"{_OWN} {name}, {python}")
    hint = f"install Lithify {__version__} on Python {_HERE} there, or choose another Python: rounds refuse this one"
    return Check(NAME, False, f"{name} is {python}, but this is Python {_HERE} with Lithify {__version__}", hint)


def _unnamed() -> Check:
    python = _asked(DEFAULT)
    others = f"{_OWN} {shutil.which(DEFAULT) or DEFAULT}, since {VARIABLE} is not set"
    if python is None:
        return Check(NAME, True, f"{others}, but that is not there: set it before you start a session of your own")
    if python.fits:
        return Check(NAME, True, f"{others}: {python}")
    return Check(NAME, True, f"{others}: {python}, so set it before you start a session of your own")


def _named() -> tuple[str | None, str]:
    """The Python that Spark's settings name, and the setting."""
    defaults = _defaults().get(SETTING)
    if defaults:
        return defaults, SETTING  # spark-submit prefers it
    return os.environ.get(VARIABLE) or None, VARIABLE


def _defaults() -> dict[str, str]:
    """The settings in `spark-defaults.conf`."""
    home = os.environ.get("SPARK_HOME")
    folder = os.environ.get("SPARK_CONF_DIR") or (f"{home}/conf" if home else None)
    settings = {}
    with suppress(OSError, UnicodeError):
        for line in (Path(folder) / "spark-defaults.conf").read_text().splitlines() if folder else ():
            name, _, value = line.strip().replace("=", " ", 1).partition(" ")
            settings[name] = value.strip()
    return settings


def _asked(python: str) -> _Python | None:
    """None if it does not run here."""
    try:
        answer = subprocess.run(
            [python, "-c", _ASK], capture_output=True, text=True, timeout=ANSWER_S, check=True, stdin=subprocess.DEVNULL
        )
        major, minor, lithify = answer.stdout.split()
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return _Python(f"{major}.{minor}", lithify.removeprefix("-"))
