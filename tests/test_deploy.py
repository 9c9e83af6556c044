"""What is in `deploy/` passes the linter of its kind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import lithify

DEPLOY = Path(__file__).resolve().parent.parent / "deploy"
LINTERS = {
    "Containerfile": ("hadolint",),
    "lithify-cleaner.service": ("systemdlint", "--norootfs", "--messageformat", "{id}: {msg}"),
    "cleaner.yaml": ("kubernetes-validate", "--strict"),
}


WRONG = "Security.Delegate: "
"""A finding of systemdlint's that no value of `Delegate` ends, as it accepts none."""


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
        ("cleaner.yaml", "replicas: 2", "replica: 2"),
    ],
)
def test_a_mistake_would_be_found(name: str, right: str, wrong: str, tmp_path: Path) -> None:
    text = (DEPLOY / name).read_text("utf-8")
    assert right in text
    assert findings(name, text.replace(right, wrong), tmp_path) != []


def test_each_file_has_a_linter() -> None:
    assert sorted(file.name for file in DEPLOY.iterdir()) == sorted(LINTERS)


def test_the_image_has_the_version_of_the_program() -> None:
    assert f"lithify:{lithify.__version__}\n" in (DEPLOY / "cleaner.yaml").read_text("utf-8")
