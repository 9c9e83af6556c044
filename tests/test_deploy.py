"""What is in `deploy/` passes the linter of its kind."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from itertools import takewhile
from pathlib import Path

import pytest

import lithify

DEPLOY = Path(__file__).resolve().parent.parent / "deploy"
UNITS = ("systemdlint", "--norootfs", "--messageformat", "{id}: {msg}")
LINTERS = {
    "Containerfile": ("hadolint",),
    "lithify-cleaner.service": UNITS,
    "lithify-kafka-ingest.service": UNITS,
    "lithify-replica.service": UNITS,
    "cleaner.yaml": ("kubernetes-validate", "--strict"),
}


WRONG = ("Security.Delegate: ", "InvalidSetting: LoadCredential is not supported")
"""Findings of systemdlint's: no value of `Delegate` ends the one, and it is older than systemd's `LoadCredential`."""


def findings(name: str, text: str, folder: Path) -> list[str]:
    linter, *flags = LINTERS[name]
    (folder / name).write_text(text, "utf-8")
    command = [str(Path(sys.executable).parent / linter), *flags, name]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    lines = [line for line in (done.stdout + done.stderr).splitlines() if not line.startswith(WRONG)]
    return lines if done.returncode else []


@pytest.mark.parametrize("name", sorted(LINTERS))
def test_a_linter_finds_nothing(name: str, tmp_path: Path) -> None:
    assert findings(name, (DEPLOY / name).read_text("utf-8"), tmp_path) == []


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("Containerfile", "WORKDIR /source", "WORKDIR source"),
        ("lithify-cleaner.service", "Restart=always", "Restart=sometimes"),
        ("lithify-kafka-ingest.service", "Restart=always", "Restart=sometimes"),
        ("lithify-replica.service", "Restart=always", "Restart=sometimes"),
        ("cleaner.yaml", "replicas: 2", "replica: 2"),
    ],
)
def test_a_mistake_would_be_found(name: str, right: str, wrong: str, tmp_path: Path) -> None:
    text = (DEPLOY / name).read_text("utf-8")
    assert right in text
    assert findings(name, text.replace(right, wrong), tmp_path) != []


def test_each_file_has_a_linter() -> None:
    """But for what has a test of its own: `unit/metrics/test_alerts_and_dashboard.py`."""
    others = ["alerts.yaml", "grafana-dashboard.json"]
    assert sorted(file.name for file in DEPLOY.iterdir()) == sorted([*LINTERS, *others])


def test_the_image_has_the_version_of_the_program() -> None:
    assert f"lithify:{lithify.__version__}\n" in (DEPLOY / "cleaner.yaml").read_text("utf-8")


@pytest.mark.parametrize("unit", sorted(name for name in LINTERS if name.endswith(".service")))
def test_a_unit_runs_a_command_that_there_is(unit: str) -> None:
    """With options that the command has."""
    (line,) = re.findall("^ExecStart=/opt/lithify/bin/lithify (.*)$", (DEPLOY / unit).read_text("utf-8"), re.MULTILINE)
    words = shlex.split(line)
    command = list(takewhile(lambda word: not word.startswith("-"), words))
    told = subprocess.run(
        [sys.executable, "-m", "lithify", *command, "--help"], capture_output=True, text=True, check=True
    ).stdout
    options = [word for word in words if word.startswith("--")]
    assert options and not [option for option in options if option not in told]
