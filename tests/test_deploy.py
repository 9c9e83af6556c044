"""What is in `deploy/` passes the linter of its kind."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path

import pytest
import yaml

import lithify

DEPLOY = Path(__file__).resolve().parent.parent / "deploy"
UNITS = ("systemdlint", "--norootfs", "--messageformat", "{id}: {msg}")
MANIFESTS = ("kubernetes-validate", "--strict")
PARSE_COMPOSE = """
import json, sys, compose_spec, yaml
with open(sys.argv[1]) as file:
    compose_spec.PyCompose.from_json(json.dumps(yaml.safe_load(file))).validate()
"""
LINTERS = {
    "Containerfile": ("hadolint",),
    "lithify-cleaner.service": UNITS,
    "lithify-gateway.service": UNITS,
    "lithify-kafka-ingest.service": UNITS,
    "lithify-replica.service": UNITS,
    "cleaner.yaml": MANIFESTS,
    "gateway.yaml": MANIFESTS,
    "kafka-ingest.yaml": MANIFESTS,
    "replica.yaml": MANIFESTS,
    "compose.yaml": ("python", "-c", PARSE_COMPOSE),
}
OF_KUBERNETES = sorted(name for name, linter in LINTERS.items() if linter == MANIFESTS)
IMAGE = "lithify:test"


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
        ("lithify-gateway.service", "Restart=always", "Restart=sometimes"),
        ("lithify-kafka-ingest.service", "Restart=always", "Restart=sometimes"),
        ("lithify-replica.service", "Restart=always", "Restart=sometimes"),
        ("cleaner.yaml", "replicas: 2", "replica: 2"),
        ("gateway.yaml", "targetPort: https", "targetport: https"),
        ("kafka-ingest.yaml", "secretName: lithify", "secretname: lithify"),
        ("replica.yaml", "emptyDir: {}", "emptyDir: []"),
        ("compose.yaml", "healthcheck:", "health-check:"),
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


@pytest.mark.parametrize("name", OF_KUBERNETES)
def test_the_image_has_the_version_of_the_program(name: str) -> None:
    assert f"lithify:{lithify.__version__}\n" in (DEPLOY / name).read_text("utf-8")


@pytest.mark.parametrize("unit", sorted(name for name in LINTERS if name.endswith(".service")))
def test_a_unit_runs_a_command_that_there_is(unit: str) -> None:
    """With options that the command has."""
    (line,) = re.findall("^ExecStart=/opt/lithify/bin/lithify (.*)$", (DEPLOY / unit).read_text("utf-8"), re.MULTILINE)
    assert unknown_options(shlex.split(line)) == []


@pytest.mark.parametrize("name", OF_KUBERNETES)
def test_a_pod_runs_a_command_that_there_is(name: str) -> None:
    deployment = next(yaml.safe_load_all((DEPLOY / name).read_text("utf-8")))
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert unknown_options(container["args"]) == []


def unknown_options(words: Sequence[str]) -> list[str]:
    """The options in a command line of Lithify that the command does not have; a command that there is not fails."""
    command = list(takewhile(lambda word: not word.startswith("-"), words))
    told = subprocess.run(
        [sys.executable, "-m", "lithify", *command, "--help"], capture_output=True, text=True, check=True
    ).stdout
    options = [word.partition("=")[0] for word in words if word.startswith("--")]
    assert options
    return [option for option in options if not re.search(rf"{option}\b", told)]


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_the_image_is_built_and_starts() -> None:
    docker = shutil.which("docker")
    if docker is None or subprocess.run([docker, "info"], capture_output=True, check=False).returncode:
        pytest.skip("no Docker runs here: the Containerfile is only linted")
    try:
        subprocess.run([docker, "build", "-q", "-f", DEPLOY / "Containerfile", "-t", IMAGE, DEPLOY.parent], check=True)
        for arguments, printed in (
            (["--version"], lithify.__version__),
            (["demo", "--json"], "records_after"),
            (["gateway", "run", "--help"], "--listen"),
        ):
            run = [docker, "run", "--rm", IMAGE, *arguments]
            done = subprocess.run(run, capture_output=True, text=True, check=False)
            assert (done.returncode, printed in done.stdout) == (0, True), done
    finally:
        subprocess.run([docker, "image", "rm", "--force", IMAGE], capture_output=True, check=False)
