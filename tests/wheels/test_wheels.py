"""The wheel and the sdist: each installs in an empty environment, by their own requirements, and passes the demo.

No lock file is used, so this is also where a new release of a library is seen that Lithify does not work with.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

import lithify
import other_pythons

ROOT = Path(__file__).resolve().parent.parent.parent
UV = (other_pythons.UV, "--system-certs")


def run(*command: object, cwd: Path | None = None) -> str:
    """Runs a command without what this environment sets; its output. Fails with the output if the command does."""
    bare = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False, cwd=cwd, env=bare)
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the sdist."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT)
    return folder


@pytest.fixture(scope="module")
def installed(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment in which the wheel was installed with its extra `kafka`.

    PySpark comes as source: pip has a wheel of the version that it has built for this environment. A newer one that the
    requirements allow is taken all the same.
    """
    folder, wheels = tmp_path_factory.mktemp("empty") / "venv", tmp_path_factory.mktemp("wheels")
    same = f"pyspark=={pyspark.__version__}"
    run(sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", wheels, same)
    run(*UV, "venv", "--python", sys.executable, folder)
    (wheel,) = built.glob("*.whl")
    run(*UV, "pip", "install", "--quiet", "--python", folder, "--find-links", wheels, f"{wheel}[kafka]")
    return folder / "bin"


def test_the_version_is_everywhere_the_same(built: Path, installed: Path) -> None:
    assert sorted(file.name for file in built.iterdir()) == [
        f"lithify-{lithify.__version__}-py3-none-any.whl",
        f"lithify-{lithify.__version__}.tar.gz",
    ]
    assert run(installed / "lithify", "--version") == f"lithify {lithify.__version__}\n"


def test_the_wheel_passes_the_demo(installed: Path, tmp_path: Path) -> None:
    run(*UV, "pip", "check", "--python", installed.parent)
    assert "nothing lost" in run(installed / "lithify", "demo", cwd=tmp_path)
    run(installed / "python", "-c", "import confluent_kafka; from lithify.kafka import SnapshotConsumer")


def test_the_sdist_makes_the_same_program(built: Path, installed: Path, tmp_path: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    run(*UV, "build", "--quiet", "--wheel", "--out-dir", tmp_path, sdist)
    (ours,), (theirs,) = built.glob("*.whl"), tmp_path.glob("*.whl")
    listed = [run(sys.executable, "-m", "zipfile", "-l", wheel) for wheel in (ours, theirs)]
    names = [sorted(line.split()[0] for line in text.splitlines()[1:]) for text in listed]
    assert names[0] == names[1]
