"""Runs the unit tests, those of stored formats, and a demo on the other Pythons that Lithify promises to run on.

    scripts/other_pythons.py          on all that `requires-python` names, but the one that runs this
    scripts/other_pythons.py 3.13     on this one

Syntax, the standard library and the packages differ between Pythons, not what rules make of values: a property has
`EXAMPLES` examples. A version between the oldest and the newest has all that the oldest has, and nothing that the
newest has lost: there a test runs once, whatever its parameters.

Each has an environment of its own in `.venv/pythons`, at the versions of the lock files. A Python is taken from the
PATH, else from pyenv, else uv fetches it; none is left out. `just check-all --pythons` and CI call this.

PySpark is the one of this Python's environment: it comes as source, and takes 20 s of processor and 900 MB of uv's
cache to build for each.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from shutil import which

import pyspark

ROOT = Path(__file__).resolve().parent.parent
UV = ROOT / ".venv" / "bin" / "uv"
EXAMPLES = 10


def other_versions() -> list[str]:
    """Those in `requires-python` of pyproject.toml, `>=3.11,<3.14` being 3.11, 3.12 and 3.13, without that of this."""
    return [version for version in all_versions() if version != f"3.{sys.version_info.minor}"]


def all_versions() -> list[str]:
    required = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    bounds = re.fullmatch(r">=3\.(\d+),<3\.(\d+)", required)
    assert bounds, f"requires-python is {required}, and not of the form >=3.11,<3.14"
    return [f"3.{minor}" for minor in range(int(bounds[1]), int(bounds[2]))]


def environment_of(version: str) -> Path:
    """An environment on Python `version` with all that tests need: its folder. Made, or brought up to date."""
    folder = ROOT / ".venv" / "pythons" / version
    install = (UV, "pip", "install", "--quiet", "--system-certs", "--python", folder, "--no-build-isolation")
    _run(
        UV,
        "venv",
        "--quiet",
        "--system-certs",
        "--allow-existing",
        "--python",
        next(_installed(version), Path(version)),
        folder,
    )
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as excluded:
        excluded.write("pyspark\n")
        excluded.flush()
        for lock in ("requirements-build.lock", "requirements-dev.lock"):  # the first builds packages of the second
            _run(*install, "--require-hashes", "--excludes", excluded.name, "-r", lock)
    _run(*install, "--no-deps", "--editable", ".")
    _link_pyspark(folder)
    return folder


def _link_pyspark(environment: Path) -> None:
    (packages,) = environment.glob("lib/python3.*/site-packages")
    sources = set(Path(pyspark.__file__).resolve().parent.parent.glob("pyspark*"))  # its metadata too
    for link in packages.glob("pyspark*"):
        if link.is_symlink() and link.readlink() not in sources:
            link.unlink()  # of another version, or of a checkout that shared this environment, and may be gone
    for source in sources:
        if not (link := packages / source.name).exists():
            link.symlink_to(source)


def _installed(version: str) -> Iterator[Path]:
    """Pythons of this version on this machine that start: pyenv's names on the PATH are there for some that do not."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    on_path = which(f"python{version}")
    for python in [*([Path(on_path)] if on_path else []), *pyenv.glob(f"versions/{version}.*/bin/python")]:
        if subprocess.run([python, "--version"], capture_output=True, check=False).returncode == 0:
            yield python


def check(version: str) -> None:
    """Raises `CalledProcessError` for the first command that fails."""
    programs = environment_of(version) / "bin"
    with tempfile.TemporaryDirectory() as folder:
        _run(programs / "lithify", "demo", folder=Path(folder))
    options = ["-m", "not long", "--examples", str(EXAMPLES)]
    if version in all_versions()[1:-1]:
        options.append("--first-cases")
    _run(programs / "python", "-m", "pytest", "-q", *options, "tests/unit", "tests/formats")


def _run(*command: Path | str, folder: Path = ROOT) -> None:
    subprocess.run(command, cwd=folder, check=True)


def main(versions: Sequence[str]) -> int:
    for version in versions or other_versions():
        print(f"--- Python {version}", flush=True)
        try:
            check(version)
        except subprocess.CalledProcessError as error:
            print(f"Python {version}: {' '.join(map(str, error.cmd))} ended with {error.returncode}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
