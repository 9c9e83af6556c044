"""A Python that is too old is named, by the package and by `scripts/setup`; what that installs is added to."""

from __future__ import annotations

import importlib
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import lithify

ROOT = Path(__file__).resolve().parents[2]
PYTHON = """#!/bin/sh
case "$1$2" in
    -cimport*) [ {fits} = yes ] ;;
    --version) echo Python {version} ;;
    -mvenv)
        for folder; do :; done
        mkdir -p "$folder/bin"
        cmp -s "$0" "$folder/bin/python" || cp "$0" "$folder/bin/python"
        cp "$0" "$folder/bin/pip" ;;
    -mpip) [ -x "${{0%/*}}/pip" ] || exit 1
        echo "$@" >> pip.log ;;
esac
"""


def test_the_package_names_a_python_that_is_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 9, 2))
    monkeypatch.setattr(sys, "version", "3.9.2 (main)")
    with pytest.raises(ImportError, match=r"Lithify needs Python 3\.11, 3\.12 or 3\.13, and .* is Python 3\.9\.2$"):
        importlib.reload(lithify)


class Checkout:
    """A checkout with lock files and a Python that notes what it is to install."""

    def __init__(self, folder: Path, version: str, *, fits: bool) -> None:
        self.folder = folder
        (folder / "scripts").mkdir()
        for name in ("scripts/setup", "pyproject.toml", *(file.name for file in ROOT.glob("requirements*.lock"))):
            shutil.copy(ROOT / name, folder / name)
        self.python = folder / "python"
        self.python.write_text(PYTHON.format(version=version, fits="yes" if fits else "no"))
        self.python.chmod(0o755)

    def setup(self, *words: str) -> subprocess.CompletedProcess[str]:
        command, environment = ["sh", "scripts/setup", *words], {"PATH": "/usr/bin:/bin", "PYTHON": str(self.python)}
        return subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False)

    def installed(self) -> list[str]:
        """The lock files that were installed since the last call: PySpark beside the others of each."""
        log = self.folder / "pip.log"
        text = log.read_text() if log.exists() else ""
        log.unlink(missing_ok=True)
        files = [Path(word) for word in text.split() if word.endswith(".lock") and "build" not in word]
        parts = sorted(file.name for file in files if file.parent.name == ".venv")
        if parts:
            self._check_split(parts)
        return [file.name for file in files if file.name != "pyspark.lock"]

    def _check_split(self, parts: Sequence[str]) -> None:
        """Nothing of the lock file is left out or installed twice."""
        pyspark, lock = parts
        assert pyspark == "pyspark.lock"
        lines = [line for part in parts for line in (self.folder / ".venv" / part).read_text().splitlines()]
        assert sorted(lines) == sorted((self.folder / lock).read_text().splitlines())
        assert sum("==" in line for line in (self.folder / ".venv" / pyspark).read_text().splitlines()) == 1


def test_the_setup_names_a_python_that_is_too_old(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path, "3.9.2", fits=False)
    done = checkout.setup()
    assert done.returncode == 1
    assert f"needs Python 3.11, 3.12 or 3.13; there is only Python 3.9.2 at {checkout.python}" in done.stderr
    assert checkout.setup("kafak").returncode == 2


def test_what_was_asked_for_before_stays(tmp_path: Path) -> None:
    checkout, deploy = Checkout(tmp_path, "3.12.1", fits=True), ["requirements-deploy.lock"]
    steps = [
        ([], ["requirements.lock"]),
        (["kafka"], deploy),
        (["kafka", "postgres"], []),
        ([], []),
        (["dev"], ["requirements-dev.lock", "requirements-engines.lock"]),
        (["postgres"], []),
    ]
    for words, installed in steps:
        done = checkout.setup(*words)
        assert done.returncode == 0, done.stderr
        assert checkout.installed() == installed, words


@pytest.mark.parametrize("folder", [".venv", ".venv/engines"])
def test_an_environment_that_was_half_made_is_made_whole(tmp_path: Path, folder: str) -> None:
    """A setup was killed there, or Debian's python3-venv was missing."""
    checkout = Checkout(tmp_path, "3.12.1", fits=True)
    assert checkout.setup("dev").returncode == 0
    (tmp_path / ".venv" / "set-up").unlink()
    (tmp_path / folder / "bin" / "pip").unlink()
    done = checkout.setup("dev")
    assert done.returncode == 0, done.stderr
