"""Fetches Spark's Kafka connector from Maven, once: its jars are kept in a folder of this user.

Spark would fetch it while it starts, and end with a hundred lines of Ivy where it cannot. So it is fetched before, by
`spark-submit` with a program that ends at once; its output is read only for the reason of a failure.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pyspark

from lithify.errors import ConnectorError
from lithify.errors.redaction import one_line
from lithify.spark.session.java import find_java
from lithify.spark.session.java_home import java_home

FETCHED_WITHIN_S = 600.0
_ENDS_AT_ONCE = "org.apache.hadoop.util.VersionInfo"
_IVY = "spark.jars.ivy"
_REASONS = ("Server access error", "SERVER ERROR", "problem while downloading", "Host ", "Exception in thread")
"""How lines with a reason begin, the most telling first."""


def fetched_folder(package: str) -> Path:
    """Where the jars of the package are, once they were fetched."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "lithify" / package.replace(":", "_") / "jars"


def fetch(package: str, conf: Mapping[str, str], tell: Callable[[str], None]) -> Path:
    """The folder with the jars of the package, fetched if necessary; `conf` may name repositories.

    Raises `ConnectorError`, or `JavaNotFoundError`.
    """
    folder = fetched_folder(package)
    done = folder.parent / "complete"
    if done.exists():
        return folder
    tell(f"fetching {package} from Maven")
    command = fetch_command(package, folder.parent, conf)
    env = {**os.environ, "JAVA_HOME": str(java_home(find_java()))}
    try:
        ran = subprocess.run(
            command, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=FETCHED_WITHIN_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _failed(package, type(error).__name__) from error
    if ran.returncode != 0:
        raise _failed(package, reason_of(ran.stderr.decode(errors="replace")))
    done.touch()
    return folder


def fetch_command(package: str, ivy: Path, conf: Mapping[str, str]) -> list[str]:
    """Of `spark-submit`, which fetches the package into the folder `jars` of `ivy`."""
    submit = str(Path(pyspark.__file__).parent / "bin" / "spark-submit")
    settings = {**{name: value for name, value in conf.items() if name.startswith("spark.jars.")}, _IVY: str(ivy)}
    given = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    return [submit, "--master", "local[1]", "--packages", package, *given, "--class", _ENDS_AT_ONCE, "spark-internal"]


def reason_of(output: str) -> str:
    """The most telling reason in the output of Ivy: where no server answered, it also says that nothing was found."""
    lines = [line.strip() for line in output.splitlines()]
    reasons = [line for start in _REASONS for line in lines if line.startswith(start)]
    return one_line((reasons or lines[-1:] or ["no output"])[0], 300)


def _failed(package: str, reason: str) -> ConnectorError:
    ivy = "lithify-kafka"
    command = f"spark-submit --packages {package} --conf {_IVY}=$PWD/{ivy} --class {_ENDS_AT_ONCE} spark-internal"
    return ConnectorError(
        f"Spark's Kafka connector {package} cannot be fetched from Maven: {reason}",
        hint=f"run `{command}` on a machine that can reach Maven, then give the folder {ivy}/jars with --jars",
    )
